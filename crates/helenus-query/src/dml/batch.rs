//! BATCH: several modifications that happen together (Cassandra's `BatchStatement`).

use std::sync::Arc;

use helenus_cql::ast::{self, BatchKind};
use helenus_cql::error::{CqlError, WriteType};

use super::attributes::{Attributes, check_timestamp};
use super::bound::Bound;
use super::writes::WriteSet;
use super::{ModificationPlan, batch_size, cas, eval_context, keep_part, lock, now_s};
use crate::cluster::writes::Together;
use crate::consistency;
use crate::engine::Engine;
use crate::plan::{Plan, PlanContext, Planned};
use crate::request::{BatchStatement, BoundValue, BoundValues, ClientState, QueryOptions};
use crate::response::{Outcome, Response};
use crate::schema::{Table, TableKind};
use crate::scope;
use crate::storage::read::PartitionKey;
use crate::term::EvalContext;

/// A batch ready to run.
#[derive(Debug)]
pub struct BatchPlan {
    kind: BatchKind,
    attributes: Attributes,
    statements: Vec<ModificationPlan>,
}

/// What Cassandra calls the write of such a batch.
pub fn write_type(kind: BatchKind) -> WriteType {
    match kind {
        BatchKind::Logged => WriteType::Batch,
        BatchKind::Unlogged => WriteType::UnloggedBatch,
        BatchKind::Counter => WriteType::Counter,
    }
}

impl BatchPlan {
    pub fn kind(&self) -> BatchKind {
        self.kind
    }

    /// The statements.
    pub fn modifications(&self) -> impl Iterator<Item = &ModificationPlan> {
        self.statements.iter()
    }

    /// What Cassandra calls the batch's write.
    pub fn write_type(&self) -> WriteType {
        write_type(self.kind)
    }

    /// The table by whose partition key drivers may route the batch: the only one that it writes. Not if a marker
    /// stands for a timestamp of the batch, as in Cassandra.
    pub fn routed_by(&self) -> Option<&Table> {
        let (first, rest) = self.statements.split_first()?;
        let is_alone = rest.iter().all(|other| other.table.number == first.table.number);
        (is_alone && !self.attributes.has_timestamp_marker()).then_some(first.table.as_ref())
    }
}

/// Plans a BATCH statement.
pub fn plan(ctx: &mut PlanContext<'_>, statement: &ast::Batch) -> Result<BatchPlan, CqlError> {
    refuse_virtual(ctx, statement)?;
    let statements = statement.statements.iter().map(|one| super::plan::plan(ctx, one));
    let statements = statements.collect::<Result<Vec<_>, _>>()?;
    let attributes = Attributes::plan(ctx, &statement.using, None)?;
    check(
        statement.kind,
        &attributes,
        &statements.iter().collect::<Vec<_>>(),
    )?;
    Ok(BatchPlan {
        kind: statement.kind,
        attributes,
        statements,
    })
}

/// Virtual tables take part in no log, and their rows are of one node.
fn refuse_virtual(ctx: &PlanContext<'_>, batch: &ast::Batch) -> Result<(), CqlError> {
    let is_virtual = |statement: &ast::Modification| {
        let name = match statement {
            ast::Modification::Insert(statement) => &statement.table,
            ast::Modification::InsertJson(statement) => &statement.table,
            ast::Modification::Update(statement) => &statement.table,
            ast::Modification::Delete(statement) => &statement.table,
        };
        ctx.table(name)
            .is_ok_and(|table| table.kind == TableKind::Virtual)
    };
    let count = batch
        .statements
        .iter()
        .filter(|statement| is_virtual(statement))
        .count();
    match count {
        0 => Ok(()),
        _ if batch.kind == BatchKind::Logged => {
            invalid("Cannot include a virtual table statement in a logged batch")
        }
        count if count < batch.statements.len() => {
            invalid("Cannot mix mutations for virtual and regular tables")
        }
        _ => Ok(()),
    }
}

fn invalid<T>(message: &str) -> Result<T, CqlError> {
    Err(CqlError::invalid(message))
}

/// The checks of `BatchStatement.validate`.
fn check(kind: BatchKind, attributes: &Attributes, statements: &[&ModificationPlan]) -> Result<(), CqlError> {
    if attributes.has_ttl() {
        return invalid("Global TTL on the BATCH statement is not supported.");
    }
    let has_conditions = statements.iter().any(|statement| statement.is_conditional());
    let has_timestamp = attributes.has_timestamp();
    if has_timestamp && has_conditions {
        return invalid("Cannot provide custom timestamp for conditional BATCH");
    }
    if has_timestamp && kind == BatchKind::Counter {
        return invalid("Cannot provide custom timestamp for counter BATCH");
    }
    if has_timestamp
        && statements
            .iter()
            .any(|statement| statement.attributes.has_timestamp())
    {
        return invalid("Timestamp must be set either on BATCH or individual statements");
    }
    let has_counters = statements.iter().any(|statement| statement.table.is_counter);
    let has_others = statements.iter().any(|statement| !statement.table.is_counter);
    if has_timestamp && has_counters {
        return invalid("Cannot provide custom timestamp for a BATCH containing counters");
    }
    if kind == BatchKind::Counter && has_others {
        return invalid("Cannot include non-counter statement in a counter batch");
    }
    if has_counters && has_others {
        return invalid("Counter and non-counter mutations cannot exist in the same batch");
    }
    if kind == BatchKind::Logged && has_counters {
        return invalid("Cannot include a counter statement in a logged batch");
    }
    let is_virtual = |statement: &&ModificationPlan| statement.table.kind == TableKind::Virtual;
    let has_virtual = statements.iter().any(is_virtual);
    if kind == BatchKind::Logged && has_virtual {
        return invalid("Cannot include a virtual table statement in a logged batch");
    }
    if has_virtual && !statements.iter().all(is_virtual) {
        return invalid("Mutations for virtual and regular tables cannot exist in the same batch");
    }
    if has_conditions && has_virtual {
        return invalid("Conditional BATCH statements cannot include mutations for virtual tables");
    }
    if has_conditions {
        let mut tables = statements.iter().map(|statement| statement.table.full_name());
        let first = tables.next();
        if tables.any(|table| Some(&table) != first.as_ref()) {
            return invalid("Batch with conditions cannot span multiple tables");
        }
    }
    Ok(())
}

/// Runs a BATCH statement.
pub async fn execute(
    engine: &Arc<Engine>,
    plan: &BatchPlan,
    values: &[BoundValue],
    options: &QueryOptions,
) -> Result<Outcome, CqlError> {
    let eval = eval_context(engine, values, options);
    let bounds = bind_all(plan.statements.iter().map(|statement| (statement, eval)))?;
    let timestamp_us = plan.attributes.timestamp_us(&eval)?;
    run(engine, plan.kind, bounds, timestamp_us, options).await
}

/// The statements of a BATCH message with their plans, each with its own values.
#[derive(Debug)]
pub struct PlannedBatch {
    pub(crate) kind: BatchKind,
    statements: Vec<(Arc<Planned>, Arc<[BoundValue]>)>,
}

impl PlannedBatch {
    /// Plans the statements of a message, which come prepared or as text.
    ///
    /// # Errors
    /// Cassandra's, for statements that make no sense or can't go together.
    pub async fn plan(
        engine: &Engine,
        client: &ClientState,
        keyspace: Option<&str>,
        kind: BatchKind,
        statements: &[BatchStatement],
    ) -> Result<PlannedBatch, CqlError> {
        let mut planned: Vec<(Arc<Planned>, Arc<[BoundValue]>)> = Vec::with_capacity(statements.len());
        for statement in statements {
            scope::checkpoint().await?;
            let (plan, values) = match statement {
                BatchStatement::Text(text, values) => {
                    let (_, planned) = engine.parse_and_plan(client, keyspace, text)?;
                    (Arc::new(planned), values)
                }
                BatchStatement::Prepared(prepared, values) => (engine.current_plan(prepared)?, values),
            };
            let values = plan
                .markers
                .bind(&BoundValues::Positional(values.clone()))
                .map_err(|_| wrong_count(plan.markers.len(), values.len()))?
                .into_owned()
                .into();
            planned.push((plan, values));
        }
        if planned
            .iter()
            .any(|(plan, _)| !matches!(plan.plan, Plan::Modification(_)))
        {
            return invalid(
                "Invalid statement in batch: only UPDATE, INSERT and DELETE statements are allowed.",
            );
        }
        let batch = PlannedBatch {
            kind,
            statements: planned,
        };
        check(
            kind,
            &Attributes::default(),
            &batch.modifications().collect::<Vec<_>>(),
        )?;
        Ok(batch)
    }

    fn bound(&self) -> impl Iterator<Item = (&ModificationPlan, &[BoundValue])> + Clone {
        self.statements
            .iter()
            .filter_map(|(planned, values)| match &planned.plan {
                Plan::Modification(plan) => Some((plan, values.as_ref())),
                _ => None,
            })
    }

    /// What was planned for each.
    pub(crate) fn planned(&self) -> impl Iterator<Item = &Planned> {
        self.statements.iter().map(|(planned, _)| planned.as_ref())
    }

    /// The statements' plans.
    pub(crate) fn modifications(&self) -> impl Iterator<Item = &ModificationPlan> {
        self.bound().map(|(plan, _)| plan)
    }

    /// The partitions that each statement names.
    pub(crate) fn partitions(
        &self,
        engine: &Engine,
        options: &QueryOptions,
    ) -> Result<Vec<Vec<PartitionKey>>, CqlError> {
        self.bound()
            .map(|(plan, values)| super::partitions(engine, plan, values, options))
            .collect()
    }
}

/// As BATCH words it.
fn wrong_count(expected: usize, got: usize) -> CqlError {
    CqlError::invalid(format!(
        "There were {expected} markers(?) in CQL but {got} bound variables"
    ))
}

/// Runs a BATCH message of the protocol.
pub async fn execute_message(
    engine: &Arc<Engine>,
    batch: &PlannedBatch,
    options: &QueryOptions,
) -> Result<Outcome, CqlError> {
    let statements = batch
        .bound()
        .map(|(plan, values)| (plan, eval_context(engine, values, options)));
    let bounds = bind_all(statements)?;
    run(engine, batch.kind, bounds, None, options).await
}

/// Binds statements in turn. What is wrong with one's partition key is told before what is wrong with the rest of any. With conditions,
/// one that names another partition than those before it is refused before what is wrong with its rows or with later statements, and
/// after what is wrong with those before it.
fn bind_all<'p>(
    statements: impl Iterator<Item = (&'p ModificationPlan, EvalContext<'p>)> + Clone,
) -> Result<Vec<Bound<'p>>, CqlError> {
    if !statements.clone().any(|(plan, _)| plan.is_conditional()) {
        let bounds = statements.clone().map(|(plan, eval)| Bound::new(plan, eval));
        let bounds = bounds.collect::<Result<Vec<_>, _>>();
        if bounds.is_err() {
            for (plan, eval) in statements.filter(|(plan, _)| plan.json.is_none()) {
                plan.restrictions.partition_keys(&eval)?;
            }
        }
        return bounds;
    }
    let mut bounds: Vec<Bound<'p>> = Vec::new();
    for (plan, eval) in statements {
        let bound = Bound::new(plan, eval);
        let unbound;
        let named = match &bound {
            Ok(bound) => bound.partitions.as_slice(),
            Err(_) if plan.json.is_some() => &[],
            Err(_) => {
                unbound = plan.restrictions.partition_keys(&eval).unwrap_or_default();
                unbound.as_slice()
            }
        };
        let first = bounds.first().and_then(|first| first.partitions.first());
        let bound = match (named, first) {
            ([key], Some(first)) if key != first => Err(cas::spans_partitions()),
            _ => bound,
        };
        match bound {
            Ok(bound) => bounds.push(bound),
            Err(error) => return Err(cas::refusal(&bounds).unwrap_or(error)),
        }
    }
    Ok(bounds)
}

async fn run(
    engine: &Arc<Engine>,
    kind: BatchKind,
    mut bounds: Vec<Bound<'_>>,
    timestamp_us: Option<i64>,
    options: &QueryOptions,
) -> Result<Outcome, CqlError> {
    keep_part(&mut bounds, &options.place);
    let bounds = bounds.as_slice();
    if bounds.is_empty() {
        return Ok(Response::Void.into());
    }
    let now_s = now_s(engine, options);
    if bounds.iter().any(|bound| bound.plan.is_conditional()) {
        return cas::execute(engine, bounds, options, now_s, true).await;
    }
    for bound in bounds {
        bound.plan.refuse_virtual()?;
    }
    // Locks are not held while other nodes take theirs.
    let is_spread = !is_in_one_tablet(engine, bounds);
    let locked = match is_spread {
        true => None,
        false => Some(lock(engine, bounds).await?),
    };
    let default_us = match timestamp_us.or(options.timestamp_us) {
        Some(timestamp_us) => timestamp_us,
        None => engine.timestamps.next_us(engine.clock.as_ref()),
    };
    check_timestamp(default_us)?;
    let is_locked = locked.as_ref().is_some_and(|locked| locked.is_alone);
    let mut writes = WriteSet::under(locked.map(|locked| locked.guard));
    for bound in bounds {
        scope::checkpoint().await?;
        consistency::check_read_of_write(engine, bound, options.consistency)?;
        let timestamp_us = bound.timestamp_us.unwrap_or(default_us);
        writes.add(engine, bound, timestamp_us, now_s, None).await?;
    }
    let mut warnings: Vec<String> = no_grace(kind, bounds).into_iter().collect();
    warnings.extend(batch_size::check(&engine.limits, kind, &writes)?);
    for bound in bounds.iter().filter(|bound| !bound.writes_nothing()) {
        consistency::require_replicas(engine, &bound.plan.table, options.consistency)?;
    }
    let together = Together {
        is_logged: kind == BatchKind::Logged,
        is_locked,
        is_spread,
    };
    writes.commit(engine, together).await?;
    Ok(Response::Void.with(warnings))
}

/// True if all that is written is one tablet's, or the node is alone, where one log record holds all tablets' writes.
fn is_in_one_tablet(engine: &Engine, bounds: &[Bound<'_>]) -> bool {
    let Some(cluster) = engine.cluster() else {
        return true;
    };
    let mut tokens = bounds
        .iter()
        .flat_map(|bound| bound.partitions.iter().map(|key| key.token));
    let Some(first) = tokens.next() else { return true };
    let tablet = cluster.tablet(first);
    tokens.all(|token| tablet.contains(token))
}

/// Warns of tables whose entries in Cassandra's batch log would expire at once.
fn no_grace(kind: BatchKind, bounds: &[Bound<'_>]) -> Option<String> {
    let tables = bounds.iter().map(|bound| bound.plan.table.as_ref());
    let names = batch_size::table_names(tables.filter(|table| table.options.gc_grace_s == 0));
    if kind != BatchKind::Logged || names.is_empty() {
        return None;
    }
    Some(format!(
        "Executing a LOGGED BATCH on table{} [{}], configured with a gc_grace_seconds of 0. The gc_grace_seconds is used to TTL \
         batchlog entries, so setting gc_grace_seconds too low on tables involved in an atomic batch might cause batchlog \
         entries to expire before being replayed.",
        if names.len() == 1 { "" } else { "s" },
        names.join(", ")
    ))
}
