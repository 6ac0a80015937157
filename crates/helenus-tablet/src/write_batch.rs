//! Operations and batches of writes.

use std::any::Any;
use std::sync::Arc;

use bytes::Bytes;

/// One blind write: `operand` is to be merged into the row at `key`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Op {
    /// The partition's token, which finds the tablet.
    pub token: i64,
    pub key: Bytes,
    pub operand: Bytes,
}

/// Writes that become durable and visible together.
#[derive(Clone, Default)]
pub struct WriteBatch {
    pub ops: Vec<Op>,
    /// Kept until the outcome of the write is known, even if its writer is told earlier that it is unknown: a lock under which the write's
    /// inputs were read.
    pub hold: Option<Arc<dyn Any + Send + Sync>>,
}

impl WriteBatch {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a merge. Several of one key are merged in the order in which they were added.
    pub fn merge(&mut self, token: i64, key: Bytes, operand: Bytes) {
        self.ops.push(Op { token, key, operand });
    }

    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }
}
