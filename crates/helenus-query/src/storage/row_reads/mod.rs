//! Reads of rows with every deletion applied: those of the partition and of ranges in the header, the row's own, and expiry. Single rows
//! are read here, slices of a partition in [`row_cursor`], ranges of tokens in [`range_cursor`].
//!
//! A request that reads before it writes sees pending writes too ([`ReadView`]).
//!
//! A table that never had a partition header ([`super::HeaderTables`]) needs no lookup of headers.

pub(crate) mod passed_rows;
pub(crate) mod range_cursor;
pub(crate) mod reversed_range_cursor;
pub(crate) mod row_cursor;

use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_row::header::PartitionHeader;
use helenus_row::{ByteRange, ClusteringRange, key};
use helenus_tablet::{KeptRows, TokenRange};

use super::key_reads::{self, TabletScan, Undecided};
use super::partition_scan::PartitionScan;
use super::pending::over;
use crate::cluster::ScanRange;
use crate::failure::ExecutionError;
use crate::rows::{OwnedRow, PartitionKey, RowSelection, StoredRow, corrupt};
use crate::schema::Table;
use crate::storage::{ExecutionContext, PartitionGuard};

pub use range_cursor::{FoundPartition, RangeCursor};
pub use reversed_range_cursor::ReversedRangeCursor;
pub use row_cursor::RowCursor;

/// The source of reads: the store, or the store with the pending writes of locked partitions ([`super::pending`]).
#[derive(Clone, Copy)]
pub struct ReadView<'v> {
    context: &'v ExecutionContext,
    /// The locks under which the request reads. `None` if it holds none.
    guard: Option<&'v PartitionGuard>,
}

impl<'v> From<&'v ExecutionContext> for ReadView<'v> {
    fn from(context: &'v ExecutionContext) -> ReadView<'v> {
        ReadView { context, guard: None }
    }
}

impl<'v> From<&'v Arc<ExecutionContext>> for ReadView<'v> {
    fn from(context: &'v Arc<ExecutionContext>) -> ReadView<'v> {
        ReadView::from(context.as_ref())
    }
}

impl<'v> ReadView<'v> {
    /// Returns the source of reads under the given locks.
    pub fn under(context: &'v ExecutionContext, guard: Option<&'v Arc<PartitionGuard>>) -> ReadView<'v> {
        ReadView {
            context,
            guard: guard.map(Arc::as_ref),
        }
    }

    fn undecided(&self, key: &[u8], token: i64) -> Undecided {
        match self.guard.is_some_and(|guard| guard.locks_alone(key, token)) {
            true => Undecided::LockedOut,
            false => Undecided::Awaited,
        }
    }
}

async fn get(view: ReadView<'_>, token: i64, key: &[u8]) -> Result<Option<Bytes>, CqlError> {
    let Some(pending) = view.guard.and_then(|guard| guard.pending_operand(key)) else {
        return get_stored(view, token, key).await;
    };
    let stored = Box::pin(get_stored(view, token, key)).await?;
    over(key, stored.as_ref(), &pending).map(Some)
}

async fn get_stored(view: ReadView<'_>, token: i64, key: &[u8]) -> Result<Option<Bytes>, CqlError> {
    let context = view.context;
    match context.cluster() {
        None => match key_reads::get_here(context, token, key).await {
            // The waiting path is boxed, so that the futures of reads from memory stay small.
            Err(ExecutionError::NotOwned) if context.store.is_read_only() => {
                Box::pin(key_reads::get_refreshed(context, token, key)).await
            }
            found => found.map_err(ExecutionError::into_client_error),
        },
        Some(cluster) => {
            let undecided = view.undecided(key, token);
            key_reads::get(context, cluster.as_ref(), token, key, undecided).await
        }
    }
}

/// Returns a scan of keys within one partition.
async fn scan_partition(
    view: ReadView<'_>,
    token: i64,
    range: ByteRange,
    reversed: bool,
) -> Result<PartitionScan, ExecutionError> {
    let pending = view.guard.map(|guard| guard.pending_operands(&range));
    let stored = scan_stored(view, token, range, reversed).await?;
    Ok(PartitionScan::new(stored, pending.unwrap_or_default(), reversed))
}

async fn scan_stored(
    view: ReadView<'_>,
    token: i64,
    range: ByteRange,
    reversed: bool,
) -> Result<TabletScan, ExecutionError> {
    let context = view.context;
    let undecided = view.undecided(&range.start, token);
    let range = ScanRange {
        tokens: TokenRange::of(token),
        start: range.start,
        end: range.end,
        reversed,
    };
    match context.cluster() {
        None => {
            let scan = key_reads::scan_here(context, &range, undecided).await;
            scan.map(TabletScan::Local)
        }
        Some(cluster) => {
            let scan = key_reads::scan(context, cluster.as_ref(), &range, undecided).await?;
            // A single token is never divided, however often its tablet is split.
            scan.ok_or(ExecutionError::NotOwned)
        }
    }
}

/// Returns all rows of the partition with that key prefix as one piece ([`Tablet::kept_partition`]). `None` if this node does not own the
/// partition, or the row cache does not keep it as one piece.
///
/// [`Tablet::kept_partition`]: helenus_tablet::Tablet::kept_partition
pub(crate) async fn kept_partition(
    context: &ExecutionContext,
    token: i64,
    prefix: &Bytes,
) -> Result<Option<KeptRows>, ExecutionError> {
    match context.store.tablet(token) {
        Ok(tablet) if context.owns(token) => {
            context.await_readable(prefix, TokenRange::of(token)).await?;
            Ok(tablet.kept_partition(prefix).await?)
        }
        _ => Ok(None),
    }
}

/// Returns the partition's header. `None` if it has none.
pub async fn read_header(
    view: impl Into<ReadView<'_>>,
    table: &Table,
    partition: &PartitionKey,
) -> Result<Option<PartitionHeader>, CqlError> {
    let view = view.into();
    if !view.context.hooks.headers.contains(table.number) {
        return Ok(None);
    }
    let key = key::header_key(table.number, partition.token, &partition.bytes);
    let found = get(view, partition.token, &key).await?;
    found
        .map(|packed| PartitionHeader::decode(&packed).map_err(corrupt))
        .transpose()
}

/// Returns the stored row of an encoded clustering, live or dead.
pub async fn read_stored_row(
    view: impl Into<ReadView<'_>>,
    table: &Table,
    partition: &PartitionKey,
    clustering: &[u8],
) -> Result<Option<StoredRow>, CqlError> {
    let view = view.into();
    let header = read_header(view, table, partition).await?;
    read_stored_row_under(view, table, partition, clustering, header.as_ref()).await
}

/// Returns the stored row of an encoded clustering, in a partition whose header the caller has read.
pub async fn read_stored_row_under(
    view: impl Into<ReadView<'_>>,
    table: &Table,
    partition: &PartitionKey,
    clustering: &[u8],
    header: Option<&PartitionHeader>,
) -> Result<Option<StoredRow>, CqlError> {
    let view = view.into();
    let key = key::row_key(table.number, partition.token, &partition.bytes, clustering);
    let Some(packed) = get(view, partition.token, &key).await? else {
        return Ok(None);
    };
    let shadow = header.and_then(|header| header.deletion_at(clustering));
    StoredRow::parse(packed, shadow, &table.cell_rules).map(Some)
}

/// Returns the row of an encoded clustering, which is empty for tables without clustering columns. `None` if the row is dead at `now_s`.
pub async fn read_row(
    view: impl Into<ReadView<'_>>,
    table: &Table,
    partition: &PartitionKey,
    clustering: &[u8],
    now_s: i64,
) -> Result<Option<OwnedRow>, CqlError> {
    let view = view.into();
    match read_stored_row(view, table, partition, clustering).await? {
        Some(stored) => OwnedRow::of(stored, now_s),
        None => Ok(None),
    }
}

/// Returns the partition's stored static row. `header` is that of the partition.
pub async fn read_stored_static(
    view: impl Into<ReadView<'_>>,
    table: &Table,
    partition: &PartitionKey,
    header: Option<&PartitionHeader>,
) -> Result<Option<StoredRow>, CqlError> {
    let view = view.into();
    let key = key::static_key(table.number, partition.token, &partition.bytes);
    let Some(packed) = get(view, partition.token, &key).await? else {
        return Ok(None);
    };
    let shadow = header.and_then(|header| header.deletion);
    StoredRow::parse(packed, shadow, &table.cell_rules).map(Some)
}

/// Returns the partition's static row. `None` if no static column is alive at `now_s`.
pub async fn read_static(
    view: impl Into<ReadView<'_>>,
    table: &Table,
    partition: &PartitionKey,
    now_s: i64,
) -> Result<Option<OwnedRow>, CqlError> {
    let view = view.into();
    let header = read_header(view, table, partition).await?;
    match read_stored_static(view, table, partition, header.as_ref()).await? {
        Some(stored) => OwnedRow::of(stored, now_s),
        None => Ok(None),
    }
}

/// Returns the live rows of a partition within ranges of clusterings, with their encoded clusterings. The ranges are ascending and do not
/// overlap. The rows must fit in memory; SELECT reads row by row with [`RowCursor`].
pub async fn read_rows(
    view: impl Into<ReadView<'_>>,
    table: &Table,
    partition: &PartitionKey,
    ranges: &[ClusteringRange],
    now_s: i64,
) -> Result<Vec<(Bytes, OwnedRow)>, ExecutionError> {
    let view = view.into();
    let header = read_header(view, table, partition).await?;
    let wanted = RowSelection::Slices(ranges.into());
    let mut cursor = RowCursor::new(table, partition.clone(), header, wanted, false);
    let mut rows = Vec::new();
    while let Some(found) = cursor.next(view).await? {
        if let Some(row) = OwnedRow::of(found.row, now_s)? {
            rows.push((found.clustering, row));
        }
    }
    Ok(rows)
}
