//! The writes of a statement: its operations as operands, row by row.

use std::cell::OnceCell;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_row::header::PartitionHeader;
use helenus_row::row::{Deletion, Liveness};
use helenus_row::{Cell, ColumnId, KeyKind, RowBuilder};

use super::apply::{WriteParams, apply, counter_delta, counter_state};
use super::cas::PreconditionRows;
use crate::analysis::modification::BoundModification;
use crate::analysis::modification::bound::{RowName, RowsBound};
use crate::analysis::modification::operation::{Action, Operation};
use crate::analysis::restrictions::RangeBounds;
use crate::analysis::restrictions::StatementKind;
use crate::analysis::restrictions::restriction::null_column;
use crate::execution::writes::WriteSet;
use crate::execution::writes::counters::{CounterKey, CounterState};
use crate::limits::scope::{self, LONG_ROW_BYTES};
use crate::rows::{OwnedRow, PartitionKey, StoredRow};
use crate::schema::Table;
use crate::storage::ExecutionContext;
use crate::storage::row_reads::{read_header, read_row, read_static, read_stored_row, read_stored_static};

/// The location of a row.
struct RowLocation<'p> {
    partition: &'p PartitionKey,
    /// `Static` or `Row`.
    kind: KeyKind,
    clustering: &'p Bytes,
}

/// A statement whose writes are being collected.
struct WriteBuilder<'g> {
    context: &'g ExecutionContext,
    bound: &'g BoundModification<'g>,
    params: WriteParams<'g>,
    writes: &'g mut WriteSet,
    /// The rows by which conditions were tested. `None` if the request has no conditions.
    tested: Option<&'g PreconditionRows>,
}

impl WriteSet {
    /// Adds the writes of a statement. The caller has locked the partitions if [`BoundModification::needs_lock`]. `tested` are the rows
    /// that a conditional request has read. Its statements see no others.
    ///
    /// # Errors
    /// Cassandra's, for invalid values.
    pub(crate) async fn add(
        &mut self,
        context: &ExecutionContext,
        bound: &BoundModification<'_>,
        timestamp_us: i64,
        now_s: i64,
        tested: Option<&PreconditionRows>,
    ) -> Result<(), CqlError> {
        // In this case, static columns are not written either, and no other errors are reported.
        if bound.names_no_rows() {
            return Ok(());
        }
        let plan = bound.plan;
        let params = WriteParams {
            table: &plan.table,
            eval: bound.eval,
            timestamp_us,
            now_s,
            expiry: match plan.kind {
                StatementKind::Delete => None,
                _ => plan.attributes.expiry(&bound.eval, &plan.table, now_s)?,
            },
        };
        let mut gathering = WriteBuilder {
            context,
            bound,
            params,
            writes: self,
            tested,
        };
        for partition in &bound.partitions {
            scope::checkpoint().await?;
            if plan.kind == StatementKind::Delete {
                gathering.delete(partition).await?;
            } else {
                gathering.upsert(partition).await?;
            }
            if !bound.updates_static_row() {
                continue;
            }
            // As in Cassandra, static operations are applied once for each named row. This shows in counters and lists.
            let times = match &bound.rows {
                RowsBound::Names(names) => names.len(),
                RowsBound::None | RowsBound::Ranges(_) | RowsBound::Null(_) => 1,
            };
            for _ in 0..times {
                gathering.static_row(partition).await?;
            }
        }
        Ok(())
    }
}

/// Refuses an empty value for the only clustering column of a compact table (`UpdateParameters.newRow`).
pub(super) fn check_name(table: &Table, name: &RowName) -> Result<(), CqlError> {
    let [column] = table.clustering() else {
        return Ok(());
    };
    if !table.is_dense() {
        return Ok(());
    }
    // The encoding fails for types without empty values. A clustering of such a type cannot be empty.
    let empty = table.layout.encode_clustering(&[Bytes::new()]);
    match empty.is_ok_and(|empty| empty.bytes == name.clustering) {
        true => Err(CqlError::invalid(format!(
            "Invalid empty or null value for column {}",
            column.name
        ))),
        false => Ok(()),
    }
}

impl WriteBuilder<'_> {
    async fn upsert(&mut self, partition: &PartitionKey) -> Result<(), CqlError> {
        let RowsBound::Names(names) = &self.bound.rows else {
            return Ok(());
        };
        let mut beginning = RowBuilder::new();
        if let Some(value) = self.implied_value()? {
            beginning.cell(value, self.params.cell(Bytes::new()));
        }
        // Rows of compact tables have no liveness.
        if self.bound.plan.kind == StatementKind::Insert && self.params.table.compact.is_none() {
            beginning.liveness(Liveness {
                timestamp_us: self.params.timestamp_us,
                expiry: self.params.expiry,
            });
        }
        self.rows(partition, names, beginning).await
    }

    /// Returns the column that is written although the statement does not name it. A row of a compact table exists through its value, even
    /// if the table was declared without a value column.
    fn implied_value(&self) -> Result<Option<ColumnId>, CqlError> {
        let (table, bound) = (self.params.table, self.bound);
        if !table.is_dense() || bound.plan.json.is_some() || bound.regular_operations().next().is_some() {
            return Ok(None);
        }
        match table.regular_columns().first() {
            Some(value) if !table.is_hidden(value) => Err(CqlError::invalid(format!(
                "Column {} is mandatory for this COMPACT STORAGE table",
                value.name
            ))),
            value => Ok(value.map(|value| value.id)),
        }
    }

    async fn delete(&mut self, partition: &PartitionKey) -> Result<(), CqlError> {
        let deletion = self.params.deletion();
        let is_whole = self.bound.operations.is_empty();
        if !is_whole && self.bound.regular_operations().next().is_none() {
            return Ok(());
        }
        match &self.bound.rows {
            RowsBound::Names(names) => {
                let mut beginning = RowBuilder::new();
                if is_whole {
                    beginning.delete_row(deletion);
                }
                return self.rows(partition, names, beginning).await;
            }
            _ if !is_whole => {
                return Err(CqlError::invalid(
                    "Range deletions are not supported for specific columns",
                ));
            }
            RowsBound::Null(column) => return Err(null_column(&self.bound.plan.table, &[*column])),
            RowsBound::Ranges(groups) => {
                let deletion = self.beneath_rows(deletion);
                for (bounds, ranges) in groups {
                    let header = PartitionHeader::deleting_ranges(ranges.iter().cloned(), deletion);
                    self.writes
                        .push_header(&self.bound.plan.table, partition, header, *bounds);
                }
            }
            RowsBound::None => {
                let header = PartitionHeader::deleting_partition(self.beneath_rows(deletion));
                let table = &self.bound.plan.table;
                self.writes
                    .push_header(table, partition, header, RangeBounds::default());
            }
        }
        Ok(())
    }

    /// Returns the deletion of a range or partition. In a conditional request, it is one microsecond older than the other writes
    /// (Cassandra's `PartitionUpdate.Builder.updateAllTimestamp`).
    fn beneath_rows(&self, deletion: Deletion) -> Deletion {
        Deletion {
            timestamp_us: deletion.timestamp_us - i64::from(self.tested.is_some()),
            ..deletion
        }
    }

    /// Adds the writes to the rows of these names. Each row starts as a copy of `beginning`.
    async fn rows(
        &mut self,
        partition: &PartitionKey,
        names: &[RowName],
        beginning: RowBuilder,
    ) -> Result<(), CqlError> {
        let operations: Vec<&Operation> = self.bound.regular_operations().collect();
        for name in names {
            scope::checkpoint().await?;
            check_name(self.params.table, name)?;
            let location = RowLocation {
                partition,
                kind: KeyKind::Row,
                clustering: &name.clustering,
            };
            let mut row = self.applied(&location, &operations, beginning.clone()).await?;
            if row.is_empty() {
                continue;
            }
            if let Some(exact) = &name.exact {
                row.exact_clustering(self.params.timestamp_us, exact.clone());
            }
            self.push(&location, &row);
        }
        Ok(())
    }

    async fn static_row(&mut self, partition: &PartitionKey) -> Result<(), CqlError> {
        let operations: Vec<&Operation> = self.bound.static_operations().collect();
        if operations.is_empty() {
            return Ok(());
        }
        let location = RowLocation {
            partition,
            kind: KeyKind::Static,
            clustering: &Bytes::new(),
        };
        let row = self.applied(&location, &operations, RowBuilder::new()).await?;
        self.push(&location, &row);
        Ok(())
    }

    fn push(&mut self, location: &RowLocation<'_>, row: &RowBuilder) {
        let table = &self.bound.plan.table;
        self.writes.push(
            table,
            location.partition,
            location.kind,
            location.clustering.clone(),
            row,
        );
    }

    /// Returns `row` with the operations applied to it.
    async fn applied(
        &mut self,
        location: &RowLocation<'_>,
        operations: &[&Operation],
        mut row: RowBuilder,
    ) -> Result<RowBuilder, CqlError> {
        let existing: OnceCell<Option<OwnedRow>> = OnceCell::new();
        let stored: OnceCell<Option<StoredRow>> = OnceCell::new();
        for operation in operations {
            let delta = match &operation.action {
                Action::Increment { delta, is_negated } => {
                    let Some(delta) = counter_delta(delta, *is_negated, &self.params.eval)? else {
                        continue;
                    };
                    Some(delta)
                }
                Action::Delete if self.params.table.is_counter => None,
                action => {
                    if action.requires_read() && existing.get().is_none() {
                        let read = self.read_existing(location).await?;
                        if read
                            .as_ref()
                            .is_some_and(|row| row.packed().bytes().len() > LONG_ROW_BYTES)
                        {
                            scope::step_aside().await;
                        }
                        let _ = existing.set(read);
                    }
                    let existing = existing.get().and_then(Option::as_ref);
                    apply(operation, &self.params, existing, &mut row)?;
                    continue;
                }
            };
            if stored.get().is_none() {
                let read = self.read_stored(location).await?;
                let _ = stored.set(read);
            }
            let stored = stored.get().and_then(Option::as_ref);
            self.count(location, operation.id, delta, stored, &mut row)?;
        }
        Ok(row)
    }

    fn counter_key(&self, location: &RowLocation<'_>, id: ColumnId) -> CounterKey {
        (
            self.params.table.number.0,
            location.partition.bytes.clone(),
            location.kind,
            location.clustering.clone(),
            id,
        )
    }

    /// Adds to a counter, or deletes it permanently if there is nothing to add. A new total gets a newer timestamp than the old one,
    /// whatever the clock says, so that merges keep it. In Cassandra, a tombstone takes precedence over a counter, whatever their
    /// timestamps (`Cells.resolveCounter`). So a tombstone is written with a timestamp by which it wins the merge.
    fn count(
        &mut self,
        location: &RowLocation<'_>,
        id: ColumnId,
        delta: Option<i64>,
        stored: Option<&StoredRow>,
        row: &mut RowBuilder,
    ) -> Result<(), CqlError> {
        let key = self.counter_key(location, id);
        let before = match self.writes.counters.get(&key) {
            Some(made) => *made,
            None => counter_state(stored, id)?,
        };
        let (now_us, now_s) = (self.params.timestamp_us, self.params.now_s);
        let counted = |total, timestamp_us| {
            let after = CounterState::Total { total, timestamp_us };
            (after, Cell::counter(timestamp_us, total))
        };
        let deleted = |timestamp_us| (CounterState::Deleted, Cell::tombstone(timestamp_us, now_s));
        let (after, cell) = match (before, delta) {
            (CounterState::Absent, Some(delta)) => counted(delta, now_us),
            (CounterState::Total { total, timestamp_us }, Some(delta)) => counted(
                total.wrapping_add(delta),
                now_us.max(timestamp_us.saturating_add(1)),
            ),
            (CounterState::Deleted, Some(_)) => return Ok(()),
            (CounterState::Total { timestamp_us, .. }, None) => deleted(now_us.max(timestamp_us)),
            (CounterState::Absent | CounterState::Deleted, None) => deleted(now_us),
        };
        self.writes.counters.insert(key, after);
        row.cell(id, cell);
        Ok(())
    }

    /// Returns the row as a reader would see it. `None` if it does not exist.
    async fn read_existing(&self, location: &RowLocation<'_>) -> Result<Option<OwnedRow>, CqlError> {
        if let Some(tested) = self.tested {
            let row = match location.kind {
                KeyKind::Static => tested.static_row(),
                _ => tested.row(location.clustering),
            };
            return Ok(row.cloned());
        }
        let (table, now_s) = (self.params.table, self.params.now_s);
        let (view, partition) = (self.writes.view(self.context), location.partition);
        match location.kind {
            KeyKind::Static => read_static(view, table, partition, now_s).await,
            _ => read_row(view, table, partition, location.clustering, now_s).await,
        }
    }

    /// Returns the stored row or static row, live or dead.
    async fn read_stored(&self, location: &RowLocation<'_>) -> Result<Option<StoredRow>, CqlError> {
        let (view, table) = (self.writes.view(self.context), self.params.table);
        if location.kind == KeyKind::Static {
            let header = read_header(view, table, location.partition).await?;
            return read_stored_static(view, table, location.partition, header.as_ref()).await;
        }
        read_stored_row(view, table, location.partition, location.clustering).await
    }
}
