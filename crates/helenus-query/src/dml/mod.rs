//! INSERT, UPDATE, DELETE and BATCH.
//!
//! A modification is planned once ([`plan`]): keys restricted, operations typed, conditions resolved. Running it
//! binds its values ([`bound`]), turns operations into cells ([`apply`]) and gathers what is written ([`writes`]),
//! which becomes one batch of the store together with the index entries that follow from it ([`index`]). Writes
//! that need to know what is there (counters, list elements, conditions, indexes) hold the partition's lock
//! meanwhile; the others are blind.

mod apply;
mod attributes;
mod batch;
mod bound;
mod cas;
mod conditions;
pub mod index;
mod json;
mod list_ids;
mod operation;
mod plan;
mod writes;

use std::sync::Arc;

use helenus_cql::ast;
use helenus_cql::error::CqlError;

use crate::engine::Engine;
use crate::plan::PlanContext;
use crate::request::{BatchStatement, BoundValue, ClientState, QueryOptions};
use crate::response::{Outcome, Response};
use crate::schema::Table;
use crate::select::PointKey;
use crate::select::restrictions::{StatementKind, StatementRestrictions};
use crate::storage::PartitionGuard;
use crate::term::EvalContext;

use attributes::{Attributes, check_timestamp};
pub use batch::BatchPlan;
use bound::Bound;
use conditions::Conditions;
pub use index::build_index;
use json::JsonSource;
use operation::Operation;
use writes::WriteSet;

/// A modification ready to run.
#[derive(Debug)]
pub struct ModificationPlan {
    table: Arc<Table>,
    kind: StatementKind,
    restrictions: StatementRestrictions,
    operations: Vec<Operation>,
    attributes: Attributes,
    conditions: Conditions,
    /// INSERT JSON: keys and operations come from the document.
    json: Option<JsonSource>,
    /// The key, if each of its columns is given by `=`.
    point: Option<PointKey>,
}

impl ModificationPlan {
    fn new(
        table: Arc<Table>,
        kind: StatementKind,
        restrictions: StatementRestrictions,
        operations: Vec<Operation>,
        attributes: Attributes,
        conditions: Conditions,
        json: Option<JsonSource>,
    ) -> ModificationPlan {
        ModificationPlan {
            point: PointKey::of(&restrictions),
            table,
            kind,
            restrictions,
            operations,
            attributes,
            conditions,
            json,
        }
    }

    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// Whether there are operations on static columns, and on regular ones.
    fn operation_kinds(&self) -> (bool, bool) {
        let is_static = |operation: &Operation| {
            self.table
                .columns
                .get(operation.column)
                .is_some_and(|column| column.is_static())
        };
        (
            self.operations.iter().any(is_static),
            self.operations.iter().any(|operation| !is_static(operation)),
        )
    }
}

/// Plans an INSERT, UPDATE or DELETE.
pub fn plan(ctx: &mut PlanContext<'_>, statement: &ast::Statement) -> Result<ModificationPlan, CqlError> {
    let modification = match statement {
        ast::Statement::Insert(insert) => ast::Modification::Insert(insert.as_ref().clone()),
        ast::Statement::InsertJson(insert) => ast::Modification::InsertJson(insert.as_ref().clone()),
        ast::Statement::Update(update) => ast::Modification::Update(update.as_ref().clone()),
        ast::Statement::Delete(delete) => ast::Modification::Delete(delete.as_ref().clone()),
        _ => return Err(CqlError::Server("not a modification".to_owned())),
    };
    plan::plan(ctx, &modification)
}

/// Plans a BATCH statement.
pub fn plan_batch(ctx: &mut PlanContext<'_>, statement: &ast::Batch) -> Result<BatchPlan, CqlError> {
    batch::plan(ctx, statement)
}

fn eval_context<'a>(engine: &'a Engine, values: &'a [BoundValue], options: &QueryOptions) -> EvalContext<'a> {
    EvalContext {
        values,
        clock: engine.clock.as_ref(),
        protocol_version: options.protocol_version,
    }
}

fn now_s(engine: &Engine, options: &QueryOptions) -> i64 {
    options
        .now_s
        .unwrap_or_else(|| engine.clock.now_us().div_euclid(1_000_000))
}

/// Locks the partitions of the statements that need it.
async fn lock(engine: &Engine, bounds: &[Bound<'_>]) -> Option<PartitionGuard> {
    let partitions: Vec<_> = bounds
        .iter()
        .filter(|bound| bound.needs_lock())
        .flat_map(|bound| {
            bound
                .partitions
                .iter()
                .map(|key| (bound.plan.table.number, key.token))
        })
        .collect();
    if partitions.is_empty() {
        return None;
    }
    Some(engine.locks.lock(partitions).await)
}

/// Runs a modification.
pub async fn execute(
    engine: &Arc<Engine>,
    plan: &ModificationPlan,
    values: &[BoundValue],
    options: &QueryOptions,
) -> Result<Outcome, CqlError> {
    let now_s = now_s(engine, options);
    let bounds = [Bound::new(plan, eval_context(engine, values, options))?];
    if !plan.conditions.is_empty() {
        return cas::execute(engine, &bounds, options, now_s, false).await;
    }
    cas::check_plain_consistency(options.consistency)?;
    crate::select::require_replicas(engine, &plan.table().keyspace, options.consistency)?;
    let [bound] = &bounds;
    let timestamp_us = match plan
        .attributes
        .timestamp_us(&bound.eval)?
        .or(options.timestamp_us)
    {
        Some(timestamp_us) => timestamp_us,
        None => engine.timestamps.next_us(engine.clock.as_ref()),
    };
    check_timestamp(timestamp_us)?;
    let guard = lock(engine, &bounds).await;
    let mut writes = WriteSet::default();
    writes.add(engine, bound, timestamp_us, now_s).await?;
    writes.commit(engine).await?;
    drop(guard);
    Ok(Response::Void.into())
}

/// Runs a BATCH statement.
pub async fn execute_batch(
    engine: &Arc<Engine>,
    plan: &BatchPlan,
    values: &[BoundValue],
    options: &QueryOptions,
) -> Result<Outcome, CqlError> {
    batch::execute(engine, plan, values, options).await
}

/// Runs a BATCH message of the protocol, whose statements come prepared or as text, each with its own values.
pub async fn execute_batch_message(
    engine: &Arc<Engine>,
    client: &ClientState,
    kind: ast::BatchKind,
    statements: &[BatchStatement],
    options: &QueryOptions,
) -> Result<Outcome, CqlError> {
    batch::execute_message(engine, client, kind, statements, options).await
}

#[cfg(test)]
mod dml_tests;
