//! The changes of one partition, divided by their times and TTLs (ScyllaDB's `cdc/split.cc`).
//!
//! A row of the log has one time and one TTL, so a write becomes several rows if its cells differ in them.

use std::collections::BTreeMap;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_row::header::RangeTombstone;
use helenus_row::row::{CellKind, ColumnData, Complex, Deletion, Row};
use helenus_row::{ColumnId, KeyKind, RowBuilder};

use super::PartitionWrites;
use crate::analysis::restrictions::RangeBounds;
use crate::rows::{corrupt, corrupt_key};

/// Seconds. 0 if the cells do not expire.
pub(super) type Ttl = i32;

/// The changes of a partition.
#[derive(Debug, Default)]
pub(super) struct PartitionChanges {
    /// Changes by write timestamp.
    pub by_time: BTreeMap<i64, TimedChanges>,
    /// Clustering values of the changed rows, by their encoded form.
    pub clusterings: BTreeMap<Bytes, Vec<Bytes>>,
}

/// The changes with one write timestamp, in the order in which they are recorded.
#[derive(Debug, Default)]
pub(super) struct TimedChanges {
    pub static_updates: BTreeMap<Ttl, RowBuilder>,
    /// Rows by encoded clustering.
    pub inserts: BTreeMap<(Bytes, Ttl), RowBuilder>,
    pub updates: BTreeMap<(Bytes, Ttl), RowBuilder>,
    pub row_deletions: BTreeMap<Bytes, Deletion>,
    pub range_deletions: Vec<(RangeTombstone, RangeBounds)>,
    pub deletes_partition: bool,
}

impl PartitionChanges {
    pub fn of(writes: &PartitionWrites<'_>) -> Result<PartitionChanges, CqlError> {
        let mut changes = PartitionChanges::default();
        for write in &writes.rows {
            let row = Row::decode(&write.operand).map_err(corrupt)?;
            match write.kind {
                KeyKind::Static => changes.add_static(&row),
                _ => {
                    if !changes.clusterings.contains_key(&write.clustering) {
                        let values = match &row.exact_clustering {
                            Some(exact) => exact.components.clone(),
                            None => {
                                let layout = &writes.table.layout;
                                layout.decode_clustering(&write.clustering).map_err(corrupt_key)?
                            }
                        };
                        changes.clusterings.insert(write.clustering.clone(), values);
                    }
                    changes.add_row(&write.clustering, row);
                }
            }
        }
        for write in &writes.headers {
            if let Some(deletion) = write.header.deletion {
                changes.at(deletion.timestamp_us).deletes_partition = true;
            }
            for range in &write.header.range_tombstones {
                let at = changes.at(range.deletion.timestamp_us);
                at.range_deletions.push((range.clone(), write.bounds));
            }
        }
        Ok(changes)
    }

    fn at(&mut self, timestamp_us: i64) -> &mut TimedChanges {
        self.by_time.entry(timestamp_us).or_default()
    }

    fn add_static(&mut self, row: &Row) {
        for ((timestamp_us, ttl), part) in parts(row) {
            let updates = &mut self.at(timestamp_us).static_updates;
            add(updates.entry(ttl).or_default(), &part);
        }
    }

    fn add_row(&mut self, clustering: &Bytes, row: Row) {
        let mut parts = parts(&row);
        let marker = row.liveness.map(|liveness| {
            let ttl = liveness.expiry.map_or(0, |expiry| expiry.ttl_s);
            (liveness.timestamp_us, ttl)
        });
        if let (Some(at), Some(liveness)) = (marker, row.liveness) {
            parts.entry(at).or_default().liveness = Some(liveness);
        }
        for ((timestamp_us, ttl), mut part) in parts {
            let key = (clustering.clone(), ttl);
            let group = self.at(timestamp_us);
            if marker != Some((timestamp_us, ttl)) {
                add(group.updates.entry(key).or_default(), &part);
                continue;
            }
            // An INSERT of a collection always deletes what was there. Elements without such a deletion belong to an UPDATE.
            let (with_insert, apart): (Vec<_>, Vec<_>) = part.columns.into_iter().partition(
                |(_, data)| !matches!(data, ColumnData::Complex(complex) if complex.deletion.is_none()),
            );
            if !apart.is_empty() {
                let update = Row {
                    columns: apart,
                    ..Row::default()
                };
                add(group.updates.entry(key.clone()).or_default(), &update);
            }
            part.columns = with_insert;
            add(group.inserts.entry(key).or_default(), &part);
        }
        if let Some(deletion) = row.deletion {
            let deletions = &mut self.at(deletion.timestamp_us).row_deletions;
            let known = deletions.entry(clustering.clone()).or_insert(deletion);
            *known = deletion.max(*known);
        }
    }
}

/// Returns the cells of a row by timestamp and TTL. The deletion of a collection is one microsecond older than the statement that overwrites
/// the collection, and belongs to it.
fn parts(row: &Row) -> BTreeMap<(i64, Ttl), Row> {
    let mut parts: BTreeMap<(i64, Ttl), Row> = BTreeMap::new();
    for (id, data) in &row.columns {
        match data {
            ColumnData::Simple(cell) => {
                let part = parts.entry((cell.timestamp_us, ttl(cell.kind))).or_default();
                part.columns.push((*id, data.clone()));
            }
            ColumnData::Complex(complex) => {
                if let Some(deletion) = complex.deletion {
                    let at = (deletion.timestamp_us.saturating_add(1), 0);
                    complex_of(parts.entry(at).or_default(), *id).deletion = Some(deletion);
                }
                for (path, cell) in &complex.cells {
                    let part = parts.entry((cell.timestamp_us, ttl(cell.kind))).or_default();
                    complex_of(part, *id).cells.push((path.clone(), cell.clone()));
                }
            }
        }
    }
    parts
}

/// Returns the elements of the column that was added last, which is added if it is another one.
fn complex_of(part: &mut Row, id: ColumnId) -> &mut Complex {
    if !matches!(part.columns.last(), Some((last, ColumnData::Complex(_))) if *last == id) {
        part.columns.push((id, ColumnData::Complex(Complex::default())));
    }
    match part.columns.last_mut() {
        Some((_, ColumnData::Complex(complex))) => complex,
        _ => unreachable!("added above"),
    }
}

fn ttl(kind: CellKind) -> Ttl {
    match kind {
        CellKind::Expiring(expiry) => expiry.ttl_s,
        CellKind::Live | CellKind::Counter | CellKind::Tombstone { .. } => 0,
    }
}

fn add(row: &mut RowBuilder, part: &Row) {
    if let Some(liveness) = part.liveness {
        row.liveness(liveness);
    }
    for (id, data) in &part.columns {
        match data {
            ColumnData::Simple(cell) => {
                row.cell(*id, cell.clone());
            }
            ColumnData::Complex(complex) => {
                if let Some(deletion) = complex.deletion {
                    row.delete_complex(*id, deletion);
                }
                row.complex_cells(*id, complex.cells.iter().cloned());
            }
        }
    }
}
