//! Reading rows with every deletion applied: the partition's and the ranges' in its header, the row's own, and
//! what time has taken. Points here, slices of a partition in [`rows`], ranges of tokens in [`range`].
//!
//! A table that never had a partition header ([`super::HeaderTables`]) costs no look-up for it.

#[path = "read_range.rs"]
mod range;
#[path = "read_rows.rs"]
mod rows;

use std::ops::Bound;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_row::header::PartitionHeader;
use helenus_row::merge::merge;
use helenus_row::packed::RowRef;
use helenus_row::read::{LiveRow, live_row, tombstones_of_dead};
use helenus_row::row::{CellRules, Deletion};
use helenus_row::{ByteRange, ClusteringRange, ColumnRef, KeyKind, RowError, key, murmur3_token};
use helenus_tablet::{Scan, Tablet, TokenRange};

pub use range::{FoundPartition, RangeCursor};
pub use rows::{RowCursor, RowsWanted};

use crate::cluster::reads::{self, TabletScan};
use crate::cluster::{ScanRange, moved};
use crate::engine::{Engine, store_error};
use crate::schema::Table;

/// A partition's serialized key and its token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionKey {
    pub token: i64,
    pub bytes: Bytes,
}

impl PartitionKey {
    /// The key, its token computed.
    pub fn new(bytes: Bytes) -> PartitionKey {
        PartitionKey {
            token: murmur3_token(&bytes),
            bytes,
        }
    }
}

/// A row as it is stored, with what shadows it.
#[derive(Clone, Debug)]
pub struct StoredRow {
    pub packed: RowRef,
    /// The deletion that the partition's header puts over the row.
    pub shadow: Option<Deletion>,
    rules: CellRules,
}

impl StoredRow {
    /// What is alive of it; nothing if it is all gone.
    pub fn live(&self, now_s: i64) -> Result<Option<LiveRow<'_>>, CqlError> {
        live_row(&self.packed, self.shadow, &self.rules, now_s).map_err(corrupt)
    }

    /// The tombstones that it is made of, if nothing of it is alive.
    pub fn tombstones_of_dead(&self, now_s: i64) -> Result<usize, CqlError> {
        tombstones_of_dead(&self.packed, self.shadow, &self.rules, now_s).map_err(corrupt)
    }

    /// The newest timestamp of anything in it, deletions included.
    pub fn newest_us(&self) -> Result<i64, CqlError> {
        let row = &self.packed;
        let mut newest_us = i64::MIN;
        let mut see = |timestamp_us: Option<i64>| newest_us = newest_us.max(timestamp_us.unwrap_or(i64::MIN));
        see(row.liveness().map(|liveness| liveness.timestamp_us));
        see(row.deletion().map(|deletion| deletion.timestamp_us));
        see(self.shadow.map(|deletion| deletion.timestamp_us));
        for column in row.columns() {
            match column.map_err(corrupt)?.1 {
                ColumnRef::Simple(cell) => see(Some(cell.timestamp_us)),
                ColumnRef::Complex(complex) => {
                    see(complex.deletion.map(|deletion| deletion.timestamp_us));
                    for element in complex.cells() {
                        see(Some(element.map_err(corrupt)?.1.timestamp_us));
                    }
                }
            }
        }
        Ok(newest_us)
    }

    pub(crate) fn parse(
        packed: Bytes,
        shadow: Option<Deletion>,
        rules: &CellRules,
    ) -> Result<StoredRow, CqlError> {
        Ok(StoredRow {
            packed: RowRef::parse(packed).map_err(corrupt)?,
            shadow,
            rules: rules.clone(),
        })
    }
}

/// A stored row and its place in the partition.
#[derive(Clone, Debug)]
pub struct RowAt {
    /// Encoded ([`helenus_row::KeyLayout`]).
    pub clustering: Bytes,
    pub row: StoredRow,
}

/// A row that is alive, kept beyond the read.
#[derive(Clone, Debug)]
pub struct OwnedRow {
    stored: StoredRow,
    now_s: i64,
}

impl OwnedRow {
    /// What is alive of the row.
    pub fn live(&self) -> Result<LiveRow<'_>, CqlError> {
        self.stored
            .live(self.now_s)?
            .ok_or_else(|| CqlError::Server("a row that was alive is not".to_owned()))
    }

    /// The packed row, to make [`Bytes`] of what [`OwnedRow::live`] borrows ([`RowRef::slice`]).
    pub fn packed(&self) -> &RowRef {
        &self.stored.packed
    }

    /// The row, if there is one, as it will be with what is about to be written to it; `None` if nothing of it is alive then.
    pub fn with(
        existing: Option<&OwnedRow>,
        written: Bytes,
        now_s: i64,
    ) -> Result<Option<OwnedRow>, CqlError> {
        let Some(existing) = existing else {
            return OwnedRow::of(StoredRow::parse(written, None, &CellRules::default())?, now_s);
        };
        let StoredRow {
            packed,
            shadow,
            rules,
        } = &existing.stored;
        let merged = merge(KeyKind::Row, Some(packed.bytes()), &[written]).map_err(corrupt)?;
        OwnedRow::of(StoredRow::parse(merged, *shadow, rules)?, now_s)
    }

    fn of(stored: StoredRow, now_s: i64) -> Result<Option<OwnedRow>, CqlError> {
        let is_live = stored.live(now_s)?.is_some();
        Ok(is_live.then_some(OwnedRow { stored, now_s }))
    }
}

/// A stored row that can't be understood.
pub(crate) fn corrupt(error: RowError) -> CqlError {
    CqlError::Server(format!("a stored row is damaged: {error}"))
}

/// A stored key that can't be understood.
pub(crate) fn corrupt_key(error: helenus_row::KeyError) -> CqlError {
    CqlError::Server(format!("a stored key is damaged: {error}"))
}

async fn get(engine: &Engine, token: i64, key: &[u8]) -> Result<Option<Bytes>, CqlError> {
    match engine.cluster() {
        None => reads::get_here(engine, token, key).await,
        Some(cluster) => reads::get(engine, cluster.as_ref(), token, key).await,
    }
}

/// A scan of keys of one partition.
async fn scan_partition(
    engine: &Engine,
    token: i64,
    range: ByteRange,
    reversed: bool,
) -> Result<TabletScan, CqlError> {
    let range = ScanRange {
        tokens: TokenRange {
            first: token,
            last: token,
        },
        start: range.start,
        end: range.end,
        reversed,
    };
    match engine.cluster() {
        None => reads::scan_here(engine, &range).await.map(TabletScan::Local),
        Some(cluster) => {
            let scan = reads::scan(engine, cluster.as_ref(), &range).await?;
            // A single token stays whole however often its tablet is split.
            scan.ok_or_else(moved)
        }
    }
}

pub(crate) async fn scan_tablet(tablet: &Tablet, range: ByteRange, reversed: bool) -> Result<Scan, CqlError> {
    let end = range.end.map_or(Bound::Unbounded, Bound::Excluded);
    tablet
        .scan((Bound::Included(range.start), end), reversed)
        .await
        .map_err(store_error)
}

/// The partition's header, if it has one.
pub async fn read_header(
    engine: &Engine,
    table: &Table,
    partition: &PartitionKey,
) -> Result<Option<PartitionHeader>, CqlError> {
    if !engine.headers.contains(table.number) {
        return Ok(None);
    }
    let key = key::header_key(table.number, partition.token, &partition.bytes);
    let found = get(engine, partition.token, &key).await?;
    found
        .map(|packed| PartitionHeader::decode(&packed).map_err(corrupt))
        .transpose()
}

/// The stored row of an encoded clustering, alive or not.
pub async fn read_stored_row(
    engine: &Engine,
    table: &Table,
    partition: &PartitionKey,
    clustering: &[u8],
) -> Result<Option<StoredRow>, CqlError> {
    let header = read_header(engine, table, partition).await?;
    read_stored_row_under(engine, table, partition, clustering, header.as_ref()).await
}

/// The same for a partition whose header is known.
pub async fn read_stored_row_under(
    engine: &Engine,
    table: &Table,
    partition: &PartitionKey,
    clustering: &[u8],
    header: Option<&PartitionHeader>,
) -> Result<Option<StoredRow>, CqlError> {
    let key = key::row_key(table.number, partition.token, &partition.bytes, clustering);
    let Some(packed) = get(engine, partition.token, &key).await? else {
        return Ok(None);
    };
    let shadow = header.and_then(|header| header.deletion_at(clustering));
    StoredRow::parse(packed, shadow, &table.cell_rules).map(Some)
}

/// The row of an encoded clustering (empty for tables without clustering columns), if it is alive at `now_s`.
pub async fn read_row(
    engine: &Engine,
    table: &Table,
    partition: &PartitionKey,
    clustering: &[u8],
    now_s: i64,
) -> Result<Option<OwnedRow>, CqlError> {
    match read_stored_row(engine, table, partition, clustering).await? {
        Some(stored) => OwnedRow::of(stored, now_s),
        None => Ok(None),
    }
}

/// The partition's static row as it is stored. `header` is the partition's.
pub async fn read_stored_static(
    engine: &Engine,
    table: &Table,
    partition: &PartitionKey,
    header: Option<&PartitionHeader>,
) -> Result<Option<StoredRow>, CqlError> {
    let key = key::static_key(table.number, partition.token, &partition.bytes);
    let Some(packed) = get(engine, partition.token, &key).await? else {
        return Ok(None);
    };
    let shadow = header.and_then(|header| header.deletion);
    StoredRow::parse(packed, shadow, &table.cell_rules).map(Some)
}

/// The partition's static row, if any static column is alive at `now_s`.
pub async fn read_static(
    engine: &Engine,
    table: &Table,
    partition: &PartitionKey,
    now_s: i64,
) -> Result<Option<OwnedRow>, CqlError> {
    let header = read_header(engine, table, partition).await?;
    match read_stored_static(engine, table, partition, header.as_ref()).await? {
        Some(stored) => OwnedRow::of(stored, now_s),
        None => Ok(None),
    }
}

/// The live rows of a partition in these ranges of clusterings, which ascend and don't overlap, with their encoded
/// clusterings. For what fits in memory: SELECT goes row by row with [`RowCursor`].
pub async fn read_rows(
    engine: &Engine,
    table: &Table,
    partition: &PartitionKey,
    ranges: &[ClusteringRange],
    now_s: i64,
) -> Result<Vec<(Bytes, OwnedRow)>, CqlError> {
    let header = read_header(engine, table, partition).await?;
    let wanted = RowsWanted::Slices(ranges.into());
    let mut cursor = RowCursor::new(table, partition.clone(), header, wanted, false);
    let mut rows = Vec::new();
    while let Some(found) = cursor.next(engine).await? {
        if let Some(row) = OwnedRow::of(found.row, now_s)? {
            rows.push((found.clustering, row));
        }
    }
    Ok(rows)
}
