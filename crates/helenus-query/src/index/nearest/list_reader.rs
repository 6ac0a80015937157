//! The entries of posting lists.

use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::error::CqlError;

use crate::failure::ExecutionError;
use crate::index::posting_lists::hidden_rows::{list_partition, stored_cell};
use crate::limits::scope;
use crate::rows::RowsWanted;
use crate::schema::Index;
use crate::storage::ExecutionContext;
use crate::storage::read::RowCursor;

/// Entries between two checkpoints.
const CHECKPOINT_ENTRIES: usize = 64;

/// An entry of a list.
pub(crate) struct ListEntry<'r> {
    /// Encoded, in the hidden table.
    pub clustering: Bytes,
    /// The packed vector.
    pub packed: &'r [u8],
    pub written_us: i64,
}

/// Goes over the entries of a list that are alive.
pub(crate) struct ListReader {
    rows: RowCursor,
    count: usize,
}

impl ListReader {
    pub fn new(index: &Arc<Index>, list: i64) -> ListReader {
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
            let Some((packed, written_us)) = stored_cell(&found.row.packed)? else {
                continue;
            };
            use_it(ListEntry {
                clustering: found.clustering,
                packed,
                written_us,
            })?;
            return Ok(true);
        }
        Ok(false)
    }
}
