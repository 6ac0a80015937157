//! Rows of a log table, for the changes with one time.

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_cql::types::CqlType;
use helenus_cql::value::uuid::{from_ticks, ticks_at_micros};
use helenus_cql::value::{pack_map, pack_set};
use helenus_row::read::{Elements, complex_value, sort_elements};
use helenus_row::row::{CellKind, ColumnData, Complex, Expiry, Row};
use helenus_row::{Cell, CellRef, ColumnId, RowBuilder, key};
use helenus_tablet::Op;

use super::PartitionWrites;
use super::bounds::{end_bound, start_bound};
use super::changes::{PartitionChanges, TimedChanges, Ttl};
use crate::rows::{PartitionKey, corrupt_key};
use crate::schema::cdc_log::{
    END_OF_BATCH, OPERATION, TTL, deleted_column, deleted_elements_column, path_type, value_column,
};
use crate::schema::table_options::cdc::Delta;
use crate::schema::{Column, Table};
use crate::storage::change_streams::{ChangeTime, POSITION_BITS};

/// The values of `cdc$operation` (`cdc::operation`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Preimage = 0,
    Update = 1,
    Insert = 2,
    RowDelete = 3,
    PartitionDelete = 4,
    RangeStartInclusive = 5,
    RangeStartExclusive = 6,
    RangeEndInclusive = 7,
    RangeEndExclusive = 8,
    Postimage = 9,
}

/// Rows of a log with one time.
pub(super) struct LogRows<'a> {
    table: &'a Table,
    log: &'a Table,
    stream: &'a PartitionKey,
    /// Values of the partition key.
    partition: Vec<Bytes>,
    /// Write timestamp of the log's cells in µs: that of the change.
    write_us: i64,
    expiry: Option<Expiry>,
    /// Value of `cdc$time`.
    time: Bytes,
    rows: Vec<RowBuilder>,
}

/// Number of the last 62 bits of a `timeuuid`, and its variant.
const NODE_BITS: u64 = 0x3fff_ffff_ffff_ffff;
const VARIANT: u64 = 0x8000_0000_0000_0000;
/// The highest bits of the last seven bytes.
const SIGNS: u64 = 0x0080_8080_8080_8080;

impl<'a> LogRows<'a> {
    /// Creates an empty batch. `write_us` is the write timestamp, and `time` the value of `cdc$time`.
    pub fn new(
        writes: &'a PartitionWrites<'_>,
        log: &'a Table,
        stream: &'a PartitionKey,
        now_us: i64,
        (write_us, time): (i64, Bytes),
    ) -> Result<LogRows<'a>, CqlError> {
        let table: &Table = writes.table;
        let partition = key::split_partition_key(&writes.partition.bytes, table.partition_key_count)
            .map_err(|error| CqlError::Server(error.to_string()))?;
        let ttl_s = table.options.cdc.ttl_s;
        Ok(LogRows {
            table,
            log,
            stream,
            partition,
            write_us,
            expiry: (ttl_s > 0).then(|| Expiry {
                ttl_s,
                expires_at_s: now_us.div_euclid(1_000_000) + i64::from(ttl_s),
            }),
            time,
            rows: Vec::new(),
        })
    }

    fn cell(&self, value: impl Into<Bytes>) -> Cell {
        match self.expiry {
            Some(expiry) => Cell::expiring(self.write_us, expiry, value),
            None => Cell::live(self.write_us, value),
        }
    }

    /// Adds a row. `clustering` are the values of the first clustering columns, or of all of them.
    pub fn add(
        &mut self,
        operation: Operation,
        clustering: &[Bytes],
        ttl: Ttl,
        values: Vec<(ColumnId, Bytes)>,
    ) {
        let mut row = RowBuilder::new();
        row.cell(OPERATION, self.cell(vec![operation as u8]));
        if ttl > 0 {
            row.cell(TTL, self.cell(i64::from(ttl).to_be_bytes().to_vec()));
        }
        let keys = self.table.partition_key().iter().zip(&self.partition);
        let keys = keys.chain(self.table.clustering().iter().zip(clustering));
        for (column, value) in keys {
            row.cell(value_column(column.id), self.cell(value.clone()));
        }
        for (column, value) in values {
            row.cell(column, self.cell(value));
        }
        self.rows.push(row);
    }

    /// Adds the changes themselves.
    pub fn add_changes(&mut self, changes: &PartitionChanges, group: &TimedChanges) {
        let clustering = |row: &Bytes| changes.clusterings.get(row).map_or(&[][..], Vec::as_slice);
        for (ttl, row) in &group.static_updates {
            self.add(Operation::Update, &[], *ttl, self.delta(row.row()));
        }
        for ((row, ttl), insert) in &group.inserts {
            self.add(Operation::Insert, clustering(row), *ttl, self.delta(insert.row()));
        }
        for ((row, ttl), update) in &group.updates {
            self.add(Operation::Update, clustering(row), *ttl, self.delta(update.row()));
        }
        for row in group.row_deletions.keys() {
            self.add(Operation::RowDelete, clustering(row), 0, Vec::new());
        }
        for (range, bounds) in &group.range_deletions {
            let start = start_bound(*bounds, &self.table.layout, &range.start);
            let operation = match start.is_inclusive {
                true => Operation::RangeStartInclusive,
                false => Operation::RangeStartExclusive,
            };
            self.add(operation, &start.values, 0, Vec::new());
            let end = end_bound(*bounds, &self.table.layout, range.end.as_ref());
            let operation = match end.is_inclusive {
                true => Operation::RangeEndInclusive,
                false => Operation::RangeEndExclusive,
            };
            self.add(operation, &end.values, 0, Vec::new());
        }
        if group.deletes_partition {
            self.add(Operation::PartitionDelete, &[], 0, Vec::new());
        }
    }

    /// Returns the log's values for the changed columns of a row.
    fn delta(&self, row: &Row) -> Vec<(ColumnId, Bytes)> {
        let mut values = Vec::new();
        if self.table.options.cdc.delta == Delta::Keys {
            return values;
        }
        for (id, data) in &row.columns {
            // A column that was dropped since the write was planned is left out.
            let Some((_, column)) = self.table.column_by_id(*id) else {
                continue;
            };
            match data {
                ColumnData::Simple(cell) if is_dead(cell) => values.push((deleted_column(*id), truth())),
                ColumnData::Simple(cell) => values.push((value_column(*id), cell.value.clone())),
                ColumnData::Complex(complex) => delta_of_elements(column, complex, &mut values),
            }
        }
        values
    }

    /// Adds the operands of the rows. The last row is marked as the end of the batch.
    pub fn finish(mut self, ops: &mut Vec<Op>) -> Result<(), CqlError> {
        let end = self.cell(truth());
        if let Some(last) = self.rows.last_mut() {
            last.cell(END_OF_BATCH, end);
        }
        for (at, row) in self.rows.iter().enumerate() {
            let sequence = i32::try_from(at).unwrap_or(i32::MAX);
            let clustering = clustering(self.log, &self.time, sequence)?;
            let token = self.stream.token;
            ops.push(Op {
                token,
                key: key::row_key(self.log.number, token, &self.stream.bytes, &clustering),
                operand: row.build(),
            });
        }
        Ok(())
    }
}

/// Returns the value of `cdc$time` for a change. `digest` is that of the write.
pub(super) fn change_time(time: ChangeTime, digest: u64) -> Bytes {
    let node = match time.position {
        None => digest & NODE_BITS,
        Some(position) => {
            let free = NODE_BITS.count_ones() - POSITION_BITS;
            let node = (position << free) | (digest & ((1 << free) - 1));
            // Bytes of a `timeuuid` are compared as signed ones. The first one has the variant in its highest bits.
            node ^ SIGNS
        }
    };
    let time = from_ticks(ticks_at_micros(time.time_us), node | VARIANT);
    Bytes::copy_from_slice(&time.to_be_bytes())
}

/// Returns the encoded clustering of a log's row. `sequence` is its value of `cdc$batch_seq_no`.
pub(super) fn clustering(log: &Table, time: &[u8], sequence: i32) -> Result<Bytes, CqlError> {
    let values: [&[u8]; 2] = [time, &sequence.to_be_bytes()];
    let encoded = log.layout.encode_clustering(&values).map_err(corrupt_key)?;
    Ok(encoded.bytes)
}

/// Returns the serialized boolean `true`.
pub(super) fn truth() -> Bytes {
    Bytes::from_static(&[1])
}

fn is_dead(cell: &Cell) -> bool {
    matches!(cell.kind, CellKind::Tombstone { .. })
}

fn delta_of_elements(column: &Column, complex: &Complex, values: &mut Vec<(ColumnId, Bytes)>) {
    let (dead, live): (Vec<_>, Vec<_>) = complex.cells.iter().partition(|(_, cell)| is_dead(cell));
    let mut live: Elements<'_> = live
        .into_iter()
        .map(|(path, cell)| (&**path, cell.borrow()))
        .collect();
    sort_elements(&column.ty, &mut live);
    // A user type always has a value: its fields that were not written are null.
    if !live.is_empty() || matches!(column.ty, CqlType::Udt { .. }) {
        values.push((value_column(column.id), frozen(&column.ty, &live)));
    }
    if complex.deletion.is_some() {
        values.push((deleted_column(column.id), truth()));
    }
    if let (false, Some(path)) = (dead.is_empty(), path_type(&column.ty)) {
        let paths = dead.into_iter().map(|(path, _)| path);
        values.push((deleted_elements_column(column.id), pack_set(&path, paths)));
    }
}

/// Returns the frozen value of elements in CQL order. A list becomes a map with the ids of its elements.
pub(super) fn frozen(ty: &CqlType, elements: &[(&[u8], CellRef<'_>)]) -> Bytes {
    match ty {
        CqlType::List { .. } => {
            let entries = elements.iter().map(|(path, cell)| (path, cell.value));
            pack_map(&CqlType::TIMEUUID, entries)
        }
        _ => complex_value(ty, elements),
    }
}

#[cfg(test)]
#[path = "log_rows_tests.rs"]
mod tests;
