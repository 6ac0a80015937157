//! Reading the entries of posting lists.

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_row::{KeyKind, key};

use crate::failure::ExecutionError;
use crate::index::posting_lists::hidden_rows::{list_partition, stored_cell};
use crate::limits::scope;
use crate::rows::RowSelection;
use crate::schema::Index;
use crate::storage::ExecutionContext;
use crate::storage::row_reads::{RowCursor, kept_partition};

/// Entries between two checkpoints.
const CHECKPOINT_ENTRIES: usize = 64;

/// A live entry of a list.
pub(crate) struct ListEntry<'r> {
    /// The encoded clustering in the hidden table.
    pub clustering: &'r [u8],
    /// The packed vectors: the row's, and possibly its predecessor.
    pub cell: &'r [u8],
    pub written_us: i64,
}

/// The entries of a list that are in memory as one piece.
pub(crate) struct ListAtHand {
    rows: helenus_tablet::KeptRows,
    prefix_len: usize,
}

impl ListAtHand {
    /// Returns the entries of a list. `None` if another node owns the list or it is too long to be kept as one piece. It must then be read
    /// with [`ListReader`].
    ///
    /// # Errors
    /// The store fails.
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

    /// Returns the bytes that contain all entries.
    pub fn bytes(&self) -> &Bytes {
        self.rows.bytes()
    }

    /// Passes the live entries to `use_it`.
    ///
    /// # Errors
    /// An entry is damaged.
    pub fn visit<'r>(&'r self, mut use_it: impl FnMut(ListEntry<'r>)) -> Result<(), CqlError> {
        for (key, row) in self.rows.iter() {
            let in_partition = key.get(self.prefix_len..).and_then(<[u8]>::split_first);
            let Some((_, clustering)) = in_partition.filter(|(kind, _)| **kind == KeyKind::Row as u8) else {
                continue;
            };
            if let Some((cell, written_us)) = stored_cell(row)? {
                use_it(ListEntry {
                    clustering,
                    cell,
                    written_us,
                });
            }
        }
        Ok(())
    }
}

/// A cursor over the live entries of a list.
pub(crate) struct ListReader {
    rows: RowCursor,
    count: usize,
}

impl ListReader {
    pub fn new(index: &Index, list: i64) -> ListReader {
        let partition = list_partition(list);
        ListReader {
            rows: RowCursor::new(&index.table, partition, None, RowSelection::all(), false),
            count: 0,
        }
    }

    /// Passes the next entry to `use_it`. Returns false if there is none.
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
            let Some((cell, written_us)) = stored_cell(found.row.packed.bytes())? else {
                continue;
            };
            use_it(ListEntry {
                clustering: &found.clustering,
                cell,
                written_us,
            })?;
            return Ok(true);
        }
        Ok(false)
    }
}
