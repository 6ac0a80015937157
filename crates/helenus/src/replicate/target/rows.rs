//! Changes as rows in transfer, which Helenus writes without capturing them again.

use anyhow::Result;
use bytes::Bytes;
use helenus_cql::frame::BoundValue;
use helenus_import::batch::{BATCH_BYTES, ITEMS_MAX};
use helenus_row::transfer::TransferWriter;

use super::super::changes::Change;
use crate::node_session::NodeSession;

/// A blob of changes.
#[derive(Default)]
pub struct RowBatch {
    writer: TransferWriter,
    /// The partition that began last. `None` before the first one.
    partition: Option<Bytes>,
    items: u64,
}

impl RowBatch {
    pub fn add(&mut self, change: &Change) {
        if self.partition.as_ref() != Some(&change.partition) {
            self.writer.partition(&change.partition);
            self.partition = Some(change.partition.clone());
            self.items += 1;
        }
        self.writer.push(&change.item);
        self.items += 1;
    }

    pub fn is_full(&self) -> bool {
        self.writer.len() >= BATCH_BYTES || self.items >= ITEMS_MAX
    }

    pub fn send(&mut self, statement: &str, session: &mut NodeSession) -> Result<()> {
        let batch = std::mem::take(self);
        if batch.writer.is_empty() {
            return Ok(());
        }
        let blob = batch.writer.finish();
        session.execute(statement, &[BoundValue::Set(blob)])?;
        Ok(())
    }
}
