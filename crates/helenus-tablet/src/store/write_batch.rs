//! Batches of operations.

use std::any::Any;
use std::sync::Arc;

use bytes::Bytes;

use crate::log::WriteTurn;
use crate::operation::Op;
use crate::tablet::OpenTablets;

/// Writes that become durable and visible together.
#[derive(Clone, Default)]
pub struct WriteBatch {
    pub ops: Vec<Op>,
    /// Kept until the outcome of the write is known, even if the caller gets an unknown outcome earlier. Typically a lock under which the
    /// write's inputs were read.
    pub hold: Option<Arc<dyn Any + Send + Sync>>,
    /// The tablets that were open when the write's inputs were read, in a bucket. The batch is written to these tablets. If another process
    /// may have owned one of them since, it is not written at all. `None` for the tablets that are open now.
    pub tablets: Option<OpenTablets>,
    /// The write's order among those that it follows from. `None` if it follows from none, and none follows from it before it is durable.
    pub turn: Option<Arc<dyn WriteTurn>>,
}

impl WriteBatch {
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a batch of operations without inputs.
    pub fn of(ops: Vec<Op>) -> Self {
        WriteBatch {
            ops,
            ..Self::default()
        }
    }

    /// Adds a merge. Several of one key are merged in the order in which they were added.
    pub fn merge(&mut self, token: i64, key: Bytes, operand: Bytes) {
        self.ops.push(Op { token, key, operand });
    }

    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }
}
