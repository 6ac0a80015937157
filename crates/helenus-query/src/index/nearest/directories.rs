//! Directories of posting lists: the stored ones and the node's copies.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_tablet::Op;

use crate::failure::ExecutionError;
use crate::index::posting_lists::directory::{Directory, List};
use crate::index::posting_lists::hidden_rows::{
    Change, VERSION_ROW, cell, decode_list, decode_list_row, directory_partition, encode_list, list_row,
    row_op,
};
use crate::rows::RowSelection;
use crate::schema::{Index, Table};
use crate::storage::ExecutionContext;
use crate::storage::row_reads::{RowCursor, read_stored_row_under};
use crate::storage::writes::write_anywhere;

/// Maximum age of a writer's copy of a directory. Entries are moved only once all writers know where they are moved to.
pub(crate) const WRITERS_KNOW: Duration = Duration::from_secs(1);

/// Loads the directories of the table's indexes before a write, unless they are recent.
pub(crate) async fn prepare(context: &ExecutionContext, table: &Table) -> Result<(), ExecutionError> {
    for index in table.indexes.iter().filter(|index| index.has_posting_lists) {
        let known = context.indexes.posting_lists.known(index);
        if known.is_none_or(|(_, checked)| checked.elapsed() > WRITERS_KNOW) {
            Box::pin(current(context, index)).await?;
        }
    }
    Ok(())
}

/// Returns the directory as it is stored now.
pub(crate) async fn current(
    context: &ExecutionContext,
    index: &Index,
) -> Result<Arc<Directory>, ExecutionError> {
    let checked = Instant::now();
    let version = stored_version(context, index).await?;
    let known = || {
        let known = context.indexes.posting_lists.known(index).map(|(known, _)| known);
        known.filter(|known| known.version >= version)
    };
    let mut directory = known();
    if directory.is_none() && version != 0 {
        // The lock makes one request read the directory for all that wait for it.
        let _loading = context.indexes.posting_lists.loading.lock().await;
        directory = known();
        if directory.is_none() {
            directory = Some(Arc::new(read(context, index).await?));
        }
    }
    let directory = directory.unwrap_or_default();
    context
        .indexes
        .posting_lists
        .set(index, directory.clone(), checked);
    Ok(directory)
}

async fn stored_version(context: &ExecutionContext, index: &Index) -> Result<i64, CqlError> {
    let partition = directory_partition();
    let row = list_row(index, VERSION_ROW)?;
    let stored = read_stored_row_under(context, &index.table, &partition, &row, None).await?;
    let live = stored
        .as_ref()
        .map(|stored| stored.live(0))
        .transpose()?
        .flatten();
    Ok(live.as_ref().and_then(cell).map_or(0, version_of))
}

fn version_of(cell: &[u8]) -> i64 {
    cell.try_into().map_or(0, i64::from_be_bytes)
}

async fn read(context: &ExecutionContext, index: &Index) -> Result<Directory, ExecutionError> {
    let partition = directory_partition();
    let mut rows = RowCursor::new(&index.table, partition, None, RowSelection::all(), false);
    let mut version = 0;
    let mut lists = Vec::new();
    while let Some(found) = rows.next(context).await? {
        let live = found.row.live(0)?;
        let Some(cell) = live.as_ref().and_then(cell) else {
            continue;
        };
        let damaged = || CqlError::Server(format!("the directory of index {} is damaged", index.name));
        match decode_list_row(index, &found.clustering).ok_or_else(damaged)? {
            VERSION_ROW => version = version_of(cell),
            list => lists.push(decode_list(list, cell).ok_or_else(damaged)?),
        }
    }
    Ok(Directory::new(version, lists))
}

/// Writes the lists that differ from the directory `since`, and a new version. Versions grow even if the clocks of nodes differ.
pub(crate) async fn publish(
    context: &ExecutionContext,
    index: &Index,
    since: &Directory,
    changed: &[List],
) -> Result<(), CqlError> {
    let timestamp_us = context.next_timestamp_us().max(since.version.saturating_add(1));
    let partition = directory_partition();
    let written = |cell| Change::Written { cell, timestamp_us };
    let mut ops = Vec::with_capacity(changed.len() + 1);
    for list in changed {
        let row = list_row(index, list.id)?;
        ops.push(row_op(index, &partition, &row, written(encode_list(list))));
    }
    let version = Bytes::copy_from_slice(&timestamp_us.to_be_bytes());
    let row = list_row(index, VERSION_ROW)?;
    ops.push(row_op(index, &partition, &row, written(version)));
    write(context, ops).await
}

/// Writes operands of the hidden table to their owners.
pub(crate) async fn write(context: &ExecutionContext, ops: Vec<Op>) -> Result<(), CqlError> {
    write_anywhere(context, ops, context.deadline()).await
}
