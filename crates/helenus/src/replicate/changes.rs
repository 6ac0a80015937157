//! Changes as rows in transfer, from the rows of a table's log.
//!
//! The log has the values of a change in the form that `docs/cdc.md` describes. The write time of `cdc$operation` is that of the change. A deletion of a
//! whole collection is one microsecond older, because it belongs to the statement that overwrites the collection.

use anyhow::{Result, anyhow, bail};
use bytes::Bytes;
use helenus_cql::types::CqlType;
use helenus_cql::value::uuid::unix_micros;
use helenus_cql::value::{read_elements, read_map, read_tuple};
use helenus_row::key::compose_partition_key;
use helenus_row::row::{Deletion, Expiry, Liveness};
use helenus_row::transfer::{TransferBound, TransferItem};
use helenus_row::{Cell, ColumnId, RowBuilder};

use super::columns::PlannedColumn;
use super::plan::TablePlan;
use super::state::{to_bigint, to_int};

/// The time of a row of the log, and its number among those of that time.
pub type Position = (u128, i32);

/// A part of a change, in its partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The serialized partition key.
    pub partition: Bytes,
    pub item: TransferItem,
}

/// Values of `cdc$operation`.
const UPDATE: u8 = 1;
const INSERT: u8 = 2;
const ROW_DELETE: u8 = 3;
const PARTITION_DELETE: u8 = 4;
const RANGE_START_INCLUSIVE: u8 = 5;
const RANGE_START_EXCLUSIVE: u8 = 6;
const RANGE_END_INCLUSIVE: u8 = 7;
const RANGE_END_EXCLUSIVE: u8 = 8;
/// Images of a row, before and after a change.
const IMAGES: [u8; 2] = [0, 9];

/// A row of the log.
pub struct LogRow {
    pub position: Position,
    operation: u8,
    written_us: i64,
    ttl_s: i32,
    partition: Vec<Bytes>,
    /// Values of the first clustering columns. All of them, unless the row is about static columns, a partition or a range.
    clustering: Vec<Bytes>,
    /// Values of the columns, in the order of the plan.
    cells: Vec<LoggedCell>,
}

/// The log's values for a column.
#[derive(Default)]
struct LoggedCell {
    value: Option<Bytes>,
    is_deleted: bool,
    deleted_elements: Option<Bytes>,
}

impl LogRow {
    /// Decodes a row of the plan's statement.
    ///
    /// # Errors
    /// If the row is not one of that statement.
    pub fn decode(plan: &TablePlan, row: Vec<Option<Bytes>>) -> Result<LogRow> {
        let unexpected = || anyhow!("{}: a row of the log has unexpected cells", plan.name);
        let mut cells = row.into_iter();
        let mut next = || cells.next().ok_or_else(unexpected);
        let time = next()?.ok_or_else(unexpected)?;
        let time = u128::from_be_bytes(time.as_ref().try_into().map_err(|_| unexpected())?);
        let sequence = next()?.as_deref().and_then(to_int).ok_or_else(unexpected)?;
        let operation = next()?
            .and_then(|bytes| bytes.first().copied())
            .ok_or_else(unexpected)?;
        let written_us = next()?.as_deref().and_then(to_bigint).ok_or_else(unexpected)?;
        let ttl = next()?.as_deref().and_then(to_bigint).unwrap_or(0);
        let mut partition = Vec::with_capacity(plan.partition_key.len());
        for _ in &plan.partition_key {
            partition.push(next()?.ok_or_else(unexpected)?);
        }
        let mut clustering = Vec::with_capacity(plan.clustering.len());
        for _ in &plan.clustering {
            clustering.extend(next()?);
        }
        let mut logged = Vec::with_capacity(plan.columns.len());
        for column in &plan.columns {
            logged.push(LoggedCell {
                value: next()?,
                is_deleted: next()?.is_some_and(|bytes| bytes.as_ref() == [1]),
                deleted_elements: if column.has_elements() { next()? } else { None },
            });
        }
        Ok(LogRow {
            position: (time, sequence),
            operation,
            written_us,
            ttl_s: i32::try_from(ttl).unwrap_or(i32::MAX),
            partition,
            clustering,
            cells: logged,
        })
    }

    /// Returns the time of the row in µs since 1970.
    pub fn time_us(&self) -> i64 {
        unix_micros(self.position.0)
    }
}

/// Turns rows of the log into changes. The two rows of a deleted range follow each other.
#[derive(Default)]
pub struct Changes {
    /// The start of a deleted range whose end is awaited.
    start: Option<(u128, TransferBound)>,
}

impl Changes {
    /// Returns the change of a row. `None` for images, and for the start of a range. `now_s` is the time of deletions.
    ///
    /// # Errors
    /// If a value is damaged, or the operation is unknown.
    pub fn change(&mut self, plan: &TablePlan, row: LogRow, now_s: i64) -> Result<Option<Change>> {
        let partition = compose_partition_key(&row.partition)
            .map_err(|error| anyhow!("{}: a partition key in the log: {error}", plan.name))?;
        let deletion = Deletion {
            timestamp_us: row.written_us,
            local_deletion_s: now_s,
        };
        let item = match row.operation {
            operation if IMAGES.contains(&operation) => return Ok(None),
            UPDATE | INSERT => written(plan, &row, now_s)?,
            ROW_DELETE => {
                let mut deleted = RowBuilder::new();
                deleted.delete_row(deletion);
                TransferItem::Row {
                    clustering: row.clustering,
                    row: deleted.build(),
                }
            }
            PARTITION_DELETE => TransferItem::PartitionDeletion(deletion),
            operation @ (RANGE_START_INCLUSIVE | RANGE_START_EXCLUSIVE) => {
                let bound = TransferBound {
                    values: row.clustering,
                    is_inclusive: operation == RANGE_START_INCLUSIVE,
                };
                self.start = Some((row.position.0, bound));
                return Ok(None);
            }
            operation @ (RANGE_END_INCLUSIVE | RANGE_END_EXCLUSIVE) => {
                let start = self.start.take().filter(|(time, _)| *time == row.position.0);
                let Some((_, start)) = start else {
                    bail!(
                        "{}: the log has the end of a deleted range without its start",
                        plan.name
                    );
                };
                let end = TransferBound {
                    values: row.clustering,
                    is_inclusive: operation == RANGE_END_INCLUSIVE,
                };
                TransferItem::RangeDeletion { start, end, deletion }
            }
            other => bail!(
                "{}: the log has the operation {other}, which this version does not know; use a newer helenus",
                plan.name
            ),
        };
        Ok(Some(Change { partition, item }))
    }

    /// Returns true if the end of a range is awaited.
    pub fn is_open(&self) -> bool {
        self.start.is_some()
    }
}

/// Returns the written row of an UPDATE or INSERT.
fn written(plan: &TablePlan, row: &LogRow, now_s: i64) -> Result<TransferItem> {
    let is_static = !plan.clustering.is_empty() && row.clustering.is_empty();
    let expiry = (row.ttl_s > 0).then(|| Expiry {
        ttl_s: row.ttl_s,
        expires_at_s: row.time_us().div_euclid(1_000_000) + i64::from(row.ttl_s),
    });
    let writer = CellWriter {
        written_us: row.written_us,
        expiry,
        now_s,
    };
    let mut builder = RowBuilder::new();
    if row.operation == INSERT {
        builder.liveness(Liveness {
            timestamp_us: row.written_us,
            expiry,
        });
    }
    for (position, (column, logged)) in plan.columns.iter().zip(&row.cells).enumerate() {
        if column.is_static == is_static {
            let id = ColumnId(u32::try_from(position)?);
            writer
                .add(&mut builder, id, column, logged)
                .map_err(|problem| anyhow!("{}: column {}: {problem}", plan.name, column.name))?;
        }
    }
    let packed = builder.build();
    Ok(match is_static {
        true => TransferItem::StaticRow(packed),
        false => TransferItem::Row {
            clustering: row.clustering.clone(),
            row: packed,
        },
    })
}

/// Writes the cells of one row.
struct CellWriter {
    written_us: i64,
    expiry: Option<Expiry>,
    now_s: i64,
}

impl CellWriter {
    fn live(&self, value: Bytes) -> Cell {
        match self.expiry {
            Some(expiry) => Cell::expiring(self.written_us, expiry, value),
            None => Cell::live(self.written_us, value),
        }
    }

    fn tombstone(&self) -> Cell {
        Cell::tombstone(self.written_us, self.now_s)
    }

    fn add(
        &self,
        builder: &mut RowBuilder,
        id: ColumnId,
        column: &PlannedColumn,
        logged: &LoggedCell,
    ) -> Result<(), String> {
        if !column.has_elements() {
            if let Some(value) = &logged.value {
                builder.cell(id, self.live(value.clone()));
            } else if logged.is_deleted {
                builder.cell(id, self.tombstone());
            }
            return Ok(());
        }
        if logged.is_deleted {
            builder.delete_complex(
                id,
                Deletion {
                    timestamp_us: self.written_us.saturating_sub(1),
                    local_deletion_s: self.now_s,
                },
            );
        }
        let mut cells = Vec::new();
        if let Some(value) = &logged.value {
            let elements = elements(&column.ty, value)?;
            cells.extend(elements.into_iter().map(|(path, value)| (path, self.live(value))));
        }
        if let Some(paths) = &logged.deleted_elements {
            // The paths are elements of a frozen set, whatever their type.
            let set = CqlType::set(CqlType::BLOB, true);
            let paths = read_elements(&set, paths)?;
            cells.extend(
                paths
                    .into_iter()
                    .map(|path| (logged.slice(path), self.tombstone())),
            );
        }
        if !cells.is_empty() {
            builder.complex_cells(id, cells);
        }
        Ok(())
    }
}

impl LoggedCell {
    /// Returns a part of the deleted elements.
    fn slice(&self, part: &[u8]) -> Bytes {
        match &self.deleted_elements {
            Some(bytes) => bytes.slice_ref(part),
            None => Bytes::copy_from_slice(part),
        }
    }
}

/// Returns the paths and values of the elements of a column's value in the log.
fn elements(ty: &CqlType, value: &Bytes) -> Result<Vec<(Bytes, Bytes)>, String> {
    let own = |part: &[u8]| value.slice_ref(part);
    Ok(match ty {
        CqlType::Set { .. } => {
            let elements = read_elements(&ty.freeze(), value)?;
            elements
                .into_iter()
                .map(|element| (own(element), Bytes::new()))
                .collect()
        }
        CqlType::Udt { .. } => {
            let fields = read_tuple(&ty.freeze(), value)?;
            let fields = fields.into_iter().enumerate().filter_map(|(position, field)| {
                let path = u16::try_from(position).ok()?.to_be_bytes();
                Some((Bytes::copy_from_slice(&path), own(field?)))
            });
            fields.collect()
        }
        // Lists are maps by the ids of their elements.
        _ => {
            let map = CqlType::map(CqlType::BLOB, CqlType::BLOB, true);
            let entries = read_map(&map, value)?;
            entries
                .into_iter()
                .map(|(path, value)| (own(path), own(value)))
                .collect()
        }
    })
}

#[cfg(test)]
#[path = "changes_tests.rs"]
mod tests;
