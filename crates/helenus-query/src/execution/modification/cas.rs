//! Lightweight transactions: under the partition's lock, conditions are tested and modifications are applied (Cassandra's
//! `CQL3CasRequest`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::error::{Consistency, CqlError};
use helenus_cql::types::CqlType;
use helenus_row::key::split_partition_key;
use helenus_row::read::{LiveColumn, LiveRow};

use super::cas_request::{Request, RowCondition, in_order_of_tests};
use super::require_own;
use super::timestamps::timestamp_after;
use crate::analysis::modification::BoundModification;
use crate::analysis::modification::bound::in_of_conditional;
use crate::analysis::modification::conditions::Conditions;
use crate::analysis::{column_spec, consistency};
use crate::execution::sampling::contended;
use crate::execution::writes::commit::WriteAtomicity;
use crate::execution::writes::{WriteSet, confirm};
use crate::failure::ExecutionError;
use crate::request::QueryParameters;
use crate::response::{ColumnSpec, Outcome, Response, ResultMetadata, Rows, RowsBuilder};
use crate::rows::{OwnedRow, PartitionKey, RowSelection};
use crate::schema::{Column, ColumnKind, Table};
use crate::storage::row_reads::{ReadView, RowCursor, read_header, read_row, read_static, read_stored_row};
use crate::storage::{Access, ExecutionContext, PartitionGuard};
use crate::trace;

fn invalid<T>(message: &str) -> Result<T, CqlError> {
    Err(CqlError::invalid(message))
}

/// The rows that were read to test the conditions. If no condition is on a row, the first row of the partition is read.
pub(crate) struct PreconditionRows {
    /// Live rows, by encoded clustering.
    rows: BTreeMap<Bytes, OwnedRow>,
    statics: Option<OwnedRow>,
}

impl PreconditionRows {
    pub(crate) fn row(&self, clustering: &Bytes) -> Option<&OwnedRow> {
        self.rows.get(clustering)
    }

    pub(crate) fn static_row(&self) -> Option<&OwnedRow> {
        self.statics.as_ref()
    }
}

/// Runs the statements of a conditional request, all on one partition of one table.
///
/// # Errors
/// Cassandra's, for statements and conditions that cannot be combined.
pub(super) async fn execute(
    context: &Arc<ExecutionContext>,
    bounds: &[BoundModification<'_>],
    parameters: &QueryParameters,
    now_s: i64,
    is_batch: bool,
) -> Result<Outcome, ExecutionError> {
    let (table, partition, request) = gather(bounds)?;
    consistency::check_conditional(&context.schema.load(), table, parameters)?;
    let serial = parameters.serial_consistency.unwrap_or(Consistency::Serial);
    consistency::require_replicas(&context.schema.load(), table, serial)?;
    let locked = [(table.number, partition.token, Access::Alone)];
    let lock = context.lock_partitions(locked);
    let named = [(table.as_ref(), &partition)];
    let guard = contended(&context.metrics.sampling, &named, lock).await?;
    require_own(context, bounds)?;
    let conditional = Conditional {
        context,
        bounds,
        now_s,
        is_batch,
        table,
        partition,
        request,
    };
    let tested = match conditional.test(&guard).await {
        Ok(tested) => tested,
        Err(error) => {
            confirm(context, Some(&guard)).await?;
            return Err(error);
        }
    };
    let writes = match tested {
        Tested::Failed(outcome) => {
            confirm(context, Some(&guard)).await?;
            return Ok(outcome);
        }
        Tested::Holds(writes) => writes,
    };
    consistency::require_replicas(&context.schema.load(), table, parameters.consistency)?;
    let together = WriteAtomicity {
        is_locked: true,
        ..WriteAtomicity::default()
    };
    writes.commit(context, together).await?;
    Ok(applied(table))
}

/// A conditional request.
struct Conditional<'c> {
    context: &'c Arc<ExecutionContext>,
    bounds: &'c [BoundModification<'c>],
    now_s: i64,
    is_batch: bool,
    table: &'c Arc<Table>,
    partition: PartitionKey,
    request: Request<'c>,
}

/// The result of testing the conditions.
enum Tested {
    /// The conditions hold. Contains the request's writes.
    Holds(WriteSet),
    /// The conditions do not hold. Contains the answer.
    Failed(Outcome),
}

impl Conditional<'_> {
    /// Tests the conditions under the lock of the partition.
    async fn test(&self, guard: &Arc<PartitionGuard>) -> Result<Tested, ExecutionError> {
        let Conditional {
            context,
            table,
            partition,
            request,
            ..
        } = self;
        let view = ReadView::under(context, Some(guard));
        trace::step(|| "Reading existing values for CAS precondition");
        let current = read(view, table, partition, request, self.now_s).await?;
        if !holds(table, request, &current)? {
            trace::step(|| "CAS precondition does not match current values");
            let answer = failure(table, partition, self.bounds, request, &current, self.is_batch)?;
            return Ok(Tested::Failed(answer));
        }
        trace::step(|| "CAS precondition is met");
        let timestamp_us = self.timestamp_us(view).await?;
        let mut writes = WriteSet::under(Some(guard.clone()));
        for bound in self.bounds {
            writes
                .add(context, bound, timestamp_us, self.now_s, Some(&current))
                .await?;
        }
        Ok(Tested::Holds(writes))
    }

    /// Returns a timestamp newer than those of the tested rows, which a node with a faster clock may have written.
    async fn timestamp_us(&self, view: ReadView<'_>) -> Result<i64, CqlError> {
        let mut newest_us = None;
        if self.context.cluster().is_some() {
            for clustering in self.request.rows.keys() {
                if let Some(row) = read_stored_row(view, self.table, &self.partition, clustering).await? {
                    newest_us = newest_us.max(Some(row.newest_us()?));
                }
            }
        }
        Ok(timestamp_after(self.context, newest_us))
    }
}

/// Returns the answer of a request that was applied.
fn applied(table: &Table) -> Outcome {
    let met = vec![Some(Bytes::from_static(&[1]))];
    answer(true, vec![applied_spec(table)], [met])
}

/// Returns the error of a batch's first statements, whatever statements follow. `None` if they are valid.
pub(crate) fn refusal(bounds: &[BoundModification<'_>]) -> Option<CqlError> {
    (!bounds.is_empty()).then(|| gather(bounds).err()).flatten()
}

pub(crate) fn spans_partitions() -> CqlError {
    CqlError::invalid("Batch with conditions cannot span multiple partitions")
}

/// Returns the partition of all statements, and their combined conditions. Statements are checked one by one, in Cassandra's order
/// (`BatchStatement.makeCasRequest`).
fn gather<'b>(
    bounds: &'b [BoundModification<'b>],
) -> Result<(&'b Arc<Table>, PartitionKey, Request<'b>), CqlError> {
    let mut partition: Option<&PartitionKey> = None;
    let mut request = Request::default();
    for bound in bounds {
        let [key] = bound.partitions.as_slice() else {
            return match bound.partitions.first() {
                Some(_) => invalid(
                    "Batch with conditions cannot span multiple partitions (you cannot use IN on the partition key)",
                ),
                None => Err(spans_partitions()),
            };
        };
        if partition.is_some_and(|known| known != key) {
            return Err(spans_partitions());
        }
        if bound.plan.restrictions.clustering.has_in {
            return Err(in_of_conditional(bound.plan, "clustering key columns"));
        }
        partition = Some(key);
        request.add(bound)?;
    }
    match (bounds.first(), partition) {
        (Some(first), Some(partition)) => Ok((&first.plan.table, partition.clone(), request)),
        _ => invalid("Batch with conditions cannot be empty"),
    }
}

async fn read(
    view: ReadView<'_>,
    table: &Table,
    partition: &PartitionKey,
    request: &Request<'_>,
    now_s: i64,
) -> Result<PreconditionRows, ExecutionError> {
    let mut rows = BTreeMap::new();
    for clustering in request.rows.keys() {
        if let Some(row) = read_row(view, table, partition, clustering, now_s).await? {
            rows.insert(clustering.clone(), row);
        }
    }
    if request.rows.is_empty()
        && let Some((clustering, row)) =
            first_live_row(view, table, partition, request.updates_regular, now_s).await?
    {
        // A partition exists if it has rows, even without static content.
        rows.insert(clustering, row);
    }
    let conditioned: Vec<&Arc<Column>> = request
        .condition_columns()
        .iter()
        .filter_map(|place| table.columns.get(*place))
        .filter(|column| column.is_static())
        .collect();
    let needs_static = table.has_static() && (request.updates_static || !conditioned.is_empty());
    let mut statics = match needs_static {
        true => read_static(view, table, partition, now_s).await?,
        false => None,
    };
    if let Some(row) = &statics
        && !request.updates_static
    {
        // Only columns with conditions are read. A partition in which all of these are null counts as absent.
        let live = row.live()?;
        if !conditioned.iter().any(|column| live.column(column.id).is_some()) {
            statics = None;
        }
    }
    Ok(PreconditionRows { rows, statics })
}

/// Returns the first row that a read of the request's columns would return. If it reads no regular columns, a row is live only by its
/// liveness.
async fn first_live_row(
    view: ReadView<'_>,
    table: &Table,
    partition: &PartitionKey,
    reads_cells: bool,
    now_s: i64,
) -> Result<Option<(Bytes, OwnedRow)>, ExecutionError> {
    let header = read_header(view, table, partition).await?;
    let mut cursor = RowCursor::new(table, partition.clone(), header, RowSelection::all(), false);
    while let Some(found) = cursor.next(view).await? {
        let is_seen = |live: LiveRow<'_>| reads_cells || live.liveness.is_some();
        if found.row.live(now_s)?.is_some_and(is_seen)
            && let Some(row) = read_row(view, table, partition, &found.clustering, now_s).await?
        {
            return Ok(Some((found.clustering, row)));
        }
    }
    Ok(None)
}

/// Returns true if all conditions hold. An invalid value, such as null with `<`, is an error only if all conditions before it hold.
fn holds(table: &Table, request: &Request<'_>, current: &PreconditionRows) -> Result<bool, CqlError> {
    if let Some(condition) = &request.statics
        && !row_holds(table, condition, current.statics.as_ref())?
    {
        return Ok(false);
    }
    for (clustering, condition) in &request.rows {
        if !row_holds(table, condition, current.rows.get(clustering))? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn row_holds(table: &Table, condition: &RowCondition<'_>, row: Option<&OwnedRow>) -> Result<bool, CqlError> {
    match condition {
        RowCondition::Exists => Ok(row.is_some()),
        RowCondition::NotExists => Ok(row.is_none()),
        RowCondition::Columns(conditions) => {
            for (condition, eval) in in_order_of_tests(table, conditions)? {
                let column = table.columns.get(condition.column);
                let value = match (row, column) {
                    (Some(row), Some(column)) => cell_value(row, column)?,
                    _ => None,
                };
                if !condition.holds(table, value, eval)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
    }
}

/// Returns the serialized value of a static or regular column.
fn cell_value(row: &OwnedRow, column: &Column) -> Result<Option<Bytes>, CqlError> {
    let live = row.live()?;
    Ok(live.column(column.id).map(|found| match found {
        LiveColumn::Simple(cell) => row.packed().slice(cell.value),
        LiveColumn::Complex(elements) => elements.clone().value(&column.ty),
    }))
}

fn applied_spec(table: &Table) -> ColumnSpec {
    ColumnSpec::new(
        table.keyspace.as_str(),
        table.name.as_str(),
        "[applied]",
        CqlType::BOOLEAN,
    )
}

fn answer(
    is_applied: bool,
    specs: Vec<ColumnSpec>,
    rows: impl IntoIterator<Item = Vec<Option<Bytes>>>,
) -> Outcome {
    let mut builder = RowsBuilder::new(specs.len());
    for value in rows.into_iter().flatten() {
        builder.push(value.as_deref());
    }
    let rows = Rows {
        metadata: Arc::new(ResultMetadata::new(specs)),
        content: builder.finish(),
        paging_state: None,
    };
    Outcome {
        is_applied: Some(is_applied),
        ..Response::Rows(rows).into()
    }
}

/// Returns the answer of a request that was not applied: the current rows that conditions are on.
fn failure(
    table: &Table,
    partition: &PartitionKey,
    bounds: &[BoundModification<'_>],
    request: &Request<'_>,
    current: &PreconditionRows,
    is_batch: bool,
) -> Result<Outcome, CqlError> {
    let not_applied = || Some(Bytes::from_static(&[0]));
    if current.rows.is_empty() && current.statics.is_none() {
        return Ok(answer(false, vec![applied_spec(table)], [vec![not_applied()]]));
    }
    let places = result_columns(table, bounds, is_batch);
    let mut specs = vec![applied_spec(table)];
    specs.extend(
        places
            .iter()
            .filter_map(|place| table.columns.get(*place))
            .map(|column| column_spec(table, column)),
    );
    let view = FailureView::new(table, partition, request, current)?;
    let line = |row: Option<(&Bytes, &OwnedRow)>| -> Result<Vec<Option<Bytes>>, CqlError> {
        let mut values = vec![not_applied()];
        for place in &places {
            values.push(view.value(*place, row)?);
        }
        Ok(values)
    };
    let lines = if current.rows.is_empty() {
        vec![line(None)?]
    } else {
        current
            .rows
            .iter()
            .map(|row| line(Some(row)))
            .collect::<Result<_, _>>()?
    };
    Ok(answer(false, specs, lines))
}

/// Returns the indexes of the columns that the answer shows.
fn result_columns(table: &Table, bounds: &[BoundModification<'_>], is_batch: bool) -> Vec<usize> {
    let on_existence = |bound: &BoundModification<'_>| {
        matches!(bound.plan.conditions, Conditions::Exists | Conditions::NotExists)
    };
    if bounds.iter().any(on_existence) {
        return table.visible_places().collect();
    }
    let mut places = Vec::new();
    if is_batch {
        places.extend(0..table.partition_key_count + table.clustering_count);
    }
    for bound in bounds {
        let Conditions::Columns(conditions) = &bound.plan.conditions else {
            continue;
        };
        let is_static = |place: usize| table.columns.get(place).is_some_and(|column| column.is_static());
        for statics in [false, true] {
            for condition in conditions
                .iter()
                .filter(|condition| is_static(condition.column) == statics)
            {
                if !places.contains(&condition.column) {
                    places.push(condition.column);
                }
            }
        }
    }
    places
}

/// The values of the read rows that the answer shows. Cassandra reads all regular columns if the request updates regular columns, and all
/// static ones if it updates static ones. Otherwise it reads only columns with conditions, and the others are shown as null.
struct FailureView<'v> {
    table: &'v Table,
    key: Vec<Bytes>,
    conditions: BTreeSet<usize>,
    request: &'v Request<'v>,
    current: &'v PreconditionRows,
}

impl<'v> FailureView<'v> {
    fn new(
        table: &'v Table,
        partition: &PartitionKey,
        request: &'v Request<'v>,
        current: &'v PreconditionRows,
    ) -> Result<FailureView<'v>, CqlError> {
        let key = split_partition_key(&partition.bytes, table.partition_key_count)
            .map_err(|error| CqlError::Server(format!("a partition key is damaged: {error}")))?;
        Ok(FailureView {
            table,
            key,
            conditions: request.condition_columns(),
            request,
            current,
        })
    }

    fn value(&self, place: usize, row: Option<(&Bytes, &OwnedRow)>) -> Result<Option<Bytes>, CqlError> {
        let Some(column) = self.table.columns.get(place) else {
            return Ok(None);
        };
        match column.kind {
            ColumnKind::PartitionKey => Ok(self.key.get(place).cloned()),
            ColumnKind::Clustering => {
                let Some((clustering, row)) = row else {
                    return Ok(None);
                };
                let exact = row.packed().exact_clustering().map_err(crate::rows::corrupt)?;
                let values = match exact {
                    Some(exact) => exact.components,
                    None => self
                        .table
                        .layout
                        .decode_clustering(clustering)
                        .map_err(|error| CqlError::Server(format!("a stored key is damaged: {error}")))?,
                };
                Ok(values.get(column.position).cloned())
            }
            ColumnKind::Static if self.request.updates_static || self.conditions.contains(&place) => {
                match &self.current.statics {
                    Some(row) => cell_value(row, column),
                    None => Ok(None),
                }
            }
            ColumnKind::Regular if self.request.updates_regular || self.conditions.contains(&place) => {
                match row {
                    Some((_, row)) => cell_value(row, column),
                    None => Ok(None),
                }
            }
            ColumnKind::Static | ColumnKind::Regular => Ok(None),
        }
    }
}
