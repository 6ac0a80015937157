//! The entries of posting lists.

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_row::{KeyKind, key};

use crate::failure::ExecutionError;
use crate::index::posting_lists::hidden_rows::{list_partition, stored_cell};
use crate::limits::scope;
use crate::rows::RowsWanted;
use crate::schema::Index;
use crate::storage::ExecutionContext;
use crate::storage::read::{RowCursor, kept_partition};

/// Entries between two checkpoints.
const CHECKPOINT_ENTRIES: usize = 64;

/// An entry of a list that is alive.
pub(crate) struct ListEntry<'r> {
    /// Encoded, in the hidden table.
    pub clustering: &'r [u8],
    /// The packed vector.
    pub packed: &'r [u8],
    pub written_us: i64,
}

/// The entries of a list that are in memory in one piece.
pub(crate) struct ListAtHand {
    rows: helenus_tablet::KeptRows,
    prefix_len: usize,
}

impl ListAtHand {
    /// None if the list is to be read with [`ListReader`]: it is another node's, or long.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn of(
        context: &ExecutionContext,
        index: &Index,
        list: i64,
    ) -> Result<Option<ListAtHand>, ExecutionError> {
        let partition = list_partition(list);
        let prefix = key::partition_prefix(index.table.number, partition.token, &partition.bytes);
        let rows = kept_partition(context, partition.token, &prefix).await?;
        let prefix_len = prefix.len();
        Ok(rows.map(|rows| ListAtHand { rows, prefix_len }))
    }

    /// Returns the bytes that entries are parts of.
    pub fn bytes(&self) -> &Bytes {
        self.rows.bytes()
    }

    /// Gives the entries that are alive to `use_it`.
    ///
    /// # Errors
    /// If an entry is damaged.
    pub fn visit<'r>(&'r self, mut use_it: impl FnMut(ListEntry<'r>)) -> Result<(), CqlError> {
        for (key, row) in self.rows.iter() {
            let in_partition = key.get(self.prefix_len..).and_then(<[u8]>::split_first);
            let Some((_, clustering)) = in_partition.filter(|(kind, _)| **kind == KeyKind::Row as u8) else {
                continue;
            };
            if let Some((packed, written_us)) = stored_cell(row)? {
                use_it(ListEntry {
                    clustering,
                    packed,
                    written_us,
                });
            }
        }
        Ok(())
    }
}

/// Goes over the entries of a list that are alive.
pub(crate) struct ListReader {
    rows: RowCursor,
    count: usize,
}

impl ListReader {
    pub fn new(index: &Index, list: i64) -> ListReader {
        let partition = list_partition(list);
        ListReader {
            rows: RowCursor::new(&index.table, partition, None, RowsWanted::all(), false),
            count: 0,
        }
    }

    /// Gives the next entry to `use_it`; false if there is none.
    pub async fn next(
        &mut self,
        context: &ExecutionContext,
        mut use_it: impl FnMut(ListEntry<'_>) -> Result<(), CqlError>,
    ) -> Result<bool, ExecutionError> {
        while let Some(found) = self.rows.next(context).await? {
            self.count += 1;
            if self.count.is_multiple_of(CHECKPOINT_ENTRIES) {
                scope::checkpoint().await?;
            }
            let Some((packed, written_us)) = stored_cell(found.row.packed.bytes())? else {
                continue;
            };
            use_it(ListEntry {
                clustering: &found.clustering,
                packed,
                written_us,
            })?;
            return Ok(true);
        }
        Ok(false)
    }
}
