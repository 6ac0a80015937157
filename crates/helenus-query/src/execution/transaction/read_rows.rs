//! The rows of LET, read under the locks of their partitions.

use std::collections::HashMap;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_row::key::split_partition_key;
use helenus_row::read::LiveRow;

use crate::analysis::EvalContext;
use crate::analysis::restrictions::Filter;
use crate::analysis::transaction::condition::ReadValues;
use crate::analysis::transaction::{RowRead, TransactionPlan};
use crate::execution::select::stored_row::{Live, View, clustering_values};
use crate::failure::ExecutionError;
use crate::limits::scope;
use crate::rows::{PartitionKey, RowAt, RowView, StoredRow, corrupt_key};
use crate::storage::row_reads::{ReadView, RowCursor, read_header, read_stored_static};

/// The rows that a transaction has read.
pub(super) struct ReadRows {
    rows: Vec<ReadRow>,
}

/// The row of a LET.
#[derive(Default)]
struct ReadRow {
    /// False if only static columns were found, or nothing.
    exists: bool,
    /// The referenced columns that are not null, by their indexes in the table.
    values: HashMap<usize, Bytes>,
    /// The newest timestamp of the row and of the static row. `None` if nothing was found.
    newest_us: Option<i64>,
}

impl ReadRows {
    /// Reads the row of each LET.
    pub async fn read(
        view: ReadView<'_>,
        plan: &TransactionPlan,
        partitions: &[PartitionKey],
        eval: &EvalContext<'_>,
        now_s: i64,
    ) -> Result<ReadRows, ExecutionError> {
        let mut rows = Vec::with_capacity(partitions.len());
        for (read, partition) in plan.reads.iter().zip(partitions) {
            scope::checkpoint().await?;
            rows.push(read_row(view, read, partition, eval, now_s).await?);
        }
        Ok(ReadRows { rows })
    }

    /// Returns the value of a column of a row. `None` if it is null.
    pub fn value(&self, read: usize, column: usize) -> Option<Bytes> {
        self.rows.get(read)?.values.get(&column).cloned()
    }

    /// Returns the newest timestamp of all rows. `None` if none was found.
    pub fn newest_us(&self) -> Option<i64> {
        self.rows.iter().filter_map(|row| row.newest_us).max()
    }
}

impl ReadValues for ReadRows {
    fn exists(&self, read: usize) -> bool {
        self.rows.get(read).is_some_and(|row| row.exists)
    }

    fn column(&self, read: usize, column: usize) -> Option<Bytes> {
        self.value(read, column)
    }
}

/// Reads the first row of the partition that the SELECT selects.
async fn read_row(
    view: ReadView<'_>,
    read: &RowRead,
    partition: &PartitionKey,
    eval: &EvalContext<'_>,
    now_s: i64,
) -> Result<ReadRow, ExecutionError> {
    let (plan, table) = (&read.select, read.select.table());
    let filter = plan.restrictions.filter(eval)?;
    let selection = plan.restrictions.row_selection(eval)?;
    let key = split_partition_key(&partition.bytes, table.partition_key_count).map_err(corrupt_key)?;
    let header = read_header(view, table, partition).await?;
    let statics = match table.has_static() {
        true => read_stored_static(view, table, partition, header.as_ref()).await?,
        false => None,
    };
    let live_statics = live(statics.as_ref(), now_s)?;
    let static_part = statics.as_ref().zip(live_statics.as_ref());
    let base = View {
        table,
        key: &key,
        clustering: &[],
        row: None,
        statics: static_part.map(|(stored, row)| Live {
            packed: &stored.packed,
            row,
        }),
        now_s,
    };
    let mut found = ReadRow::default();
    if let Some(statics) = &statics {
        found.newest_us = Some(statics.newest_us()?);
    }
    if !filter.accepts_partition(table, &base) {
        return Ok(found);
    }
    let mut cursor = RowCursor::new(table, partition.clone(), header, selection, false);
    while let Some(at) = cursor.next(view).await? {
        scope::checkpoint().await?;
        found.newest_us = found.newest_us.max(Some(at.row.newest_us()?));
        if found.take(read, &filter, &at, &base)? {
            return Ok(found);
        }
    }
    if live_statics.is_some() {
        found.values = values(read, &base);
    }
    Ok(found)
}

fn live(stored: Option<&StoredRow>, now_s: i64) -> Result<Option<LiveRow<'_>>, CqlError> {
    stored.map_or(Ok(None), |stored| stored.live(now_s))
}

/// Returns the referenced columns that are not null.
fn values(read: &RowRead, view: &View<'_>) -> HashMap<usize, Bytes> {
    let value = |place: &usize| Some((*place, view.value(*place)?));
    read.columns.iter().filter_map(value).collect()
}

impl ReadRow {
    /// Takes a row if it is alive and fits the WHERE clause. Returns true if it was taken.
    fn take(
        &mut self,
        read: &RowRead,
        filter: &Filter,
        at: &RowAt,
        base: &View<'_>,
    ) -> Result<bool, CqlError> {
        let Some(row) = at.row.live(base.now_s)? else {
            return Ok(false);
        };
        let clustering = clustering_values(base.table, at)?;
        let view = View {
            clustering: &clustering,
            row: Some(Live {
                packed: &at.row.packed,
                row: &row,
            }),
            ..*base
        };
        if !filter.accepts_row(base.table, &view) {
            return Ok(false);
        }
        self.exists = true;
        self.values = values(read, &view);
        Ok(true)
    }
}
