//! The operations of which writes consist.

use bytes::Bytes;

/// A blind write: `operand` is merged into the row at `key`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Op {
    /// The partition's token, which selects the tablet.
    pub token: i64,
    pub key: Bytes,
    pub operand: Bytes,
}

/// Bytes of memory that an operation takes besides its key and operand.
const OVERHEAD_BYTES: usize = 96;

impl Op {
    /// Returns the bytes that operations take in memory.
    pub fn bytes_of(ops: &[Op]) -> u64 {
        let bytes = |op: &Op| OVERHEAD_BYTES + op.key.len() + op.operand.len();
        ops.iter().map(bytes).sum::<usize>() as u64
    }
}
