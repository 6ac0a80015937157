//! The operations that writes are made of.

use bytes::Bytes;

/// One blind write: `operand` is to be merged into the row at `key`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Op {
    /// The partition's token, which finds the tablet.
    pub token: i64,
    pub key: Bytes,
    pub operand: Bytes,
}

/// What an operation takes in memory beside its bytes.
const OVERHEAD_BYTES: usize = 96;

impl Op {
    /// Returns the bytes that operations take in memory.
    pub fn bytes_of(ops: &[Op]) -> u64 {
        let bytes = |op: &Op| OVERHEAD_BYTES + op.key.len() + op.operand.len();
        ops.iter().map(bytes).sum::<usize>() as u64
    }
}
