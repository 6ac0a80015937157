//! The batch that SlateDB writes to an SSTable: the rows of the memtables, and a copy of their tombstones for the archive.

use bytes::Bytes;
use slatedb::WriteBatch;

use super::memory::Merged;
use super::rows::EntryKind;
use super::{Tree, Versions};
use crate::data_model::{DataModel, DataModelError};

/// Rows that are in no file, each key once.
pub(crate) struct FlushSource {
    pub batch: WriteBatch,
    /// Sequence number of the newest batch among the rows.
    pub last_seq: u64,
}

impl Tree {
    /// Returns the rows that are in no file, of batches later than `after`. `None` if there are none.
    pub fn unflushed(
        &self,
        model: &dyn DataModel,
        after: u64,
    ) -> Result<Option<FlushSource>, DataModelError> {
        let given = self.memory.partition_point(|table| table.first_seq > after);
        let memory = self.memory.get(..given).unwrap_or_default();
        let Some(last_seq) = memory.first().map(|newest| newest.last_seq) else {
            return Ok(None);
        };
        let mut batch = WriteBatch::new();
        let mut meter = model.partition_meter();
        let mut versions = Versions::default();
        let mut rows = Merged::new(memory).peekable();
        let mut is_first = true;
        while let Some((table, at)) = rows.next() {
            versions.add(&table.rows, at);
            let key = table.rows.key(at);
            if rows.peek().is_some_and(|(next, at)| next.rows.key(*at) == key) {
                continue;
            }
            let (kind, value) = versions.fold(model, key)?;
            if let Some(meter) = meter.as_mut().filter(|_| kind != EntryKind::Deleted) {
                meter.add(key, &value);
            }
            if kind != EntryKind::Deleted
                && let Some((key, tombstones)) = model.archive(key, &value)?
            {
                batch.merge(key, tombstones);
            }
            match (kind, value) {
                (EntryKind::Operand, operand) => batch.merge(key, operand),
                // SlateDB keeps the first and the last key of an SSTable as long as the SSTable exists. A key that is a slice of the
                // memtable would keep all of the memtable in memory as well.
                (EntryKind::Whole, row) if is_first || rows.peek().is_none() => {
                    batch.put_bytes(Bytes::copy_from_slice(key), row);
                }
                (EntryKind::Whole, row) => batch.put_bytes(table.rows.owned_key(at), row),
                (EntryKind::Deleted, _) => batch.delete(key),
            }
            is_first = false;
        }
        if let Some(mut meter) = meter {
            meter.end();
        }
        Ok(Some(FlushSource { batch, last_seq }))
    }
}
