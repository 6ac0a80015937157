//! INSERT, UPDATE, DELETE and BATCH.
//!
//! A modification is planned once ([`plan`]): keys restricted, operations typed, conditions resolved. Running it
//! binds its values ([`bound`]), turns operations into cells ([`apply`]) and gathers what is written ([`writes`]),
//! which becomes one batch of the store together with the index entries ([`index`]) and the rows of views ([`view`]) that follow from it. Writes
//! that need to know what is there (counters, list elements, conditions, indexes) hold the partition's lock
//! meanwhile; the others are blind.

mod apply;
mod attributes;
mod batch;
mod batch_size;
mod bound;
pub(crate) mod build;
mod cas;
mod cas_request;
mod conditions;
#[cfg(test)]
mod explain;
mod followers;
mod gather;
pub mod index;
mod json;
mod list_ids;
mod operation;
mod plan;
pub mod stale;
mod traces;
mod view;
mod writes;

use std::sync::Arc;

use helenus_cql::ast;
use helenus_cql::error::{CqlError, WriteType};
use helenus_cql::types::CqlType;
use smallvec::SmallVec;

use crate::cluster::writes::Together;
use crate::cluster::{Owner, moved};
use crate::consistency;
use crate::engine::Engine;
use crate::plan::PlanContext;
use crate::request::{BoundValue, Place, QueryOptions};
use crate::response::{Outcome, Response};
use crate::schema::{Table, TableKind};
use crate::select::PointKey;
use crate::select::restrictions::{StatementKind, StatementRestrictions};
use crate::storage::read::PartitionKey;
use crate::storage::{Access, PartitionGuard, Wanted};
use crate::term::EvalContext;

use attributes::{Attributes, check_timestamp};
pub use batch::{BatchPlan, PlannedBatch, write_type as batch_write_type};
pub(crate) use bound::Bound;
use conditions::Conditions;
pub(crate) use followers::IndexedOps;
use json::JsonSource;
use operation::Operation;
pub(crate) use writes::WriteSet;

/// A modification ready to run. What every request looks at comes first: where there are thousands of statements, no cache holds them
/// all, and each line of one that is looked at is fetched from memory.
#[derive(Debug)]
#[repr(C)]
pub struct ModificationPlan {
    table: Arc<Table>,
    kind: StatementKind,
    /// A function gives something else each time.
    is_volatile: bool,
    operations: SmallVec<[Operation; 1]>,
    /// The key, if each of its columns is given by `=`.
    point: Option<PointKey>,
    conditions: Conditions,
    attributes: Attributes,
    /// INSERT JSON: keys and operations come from the document.
    json: Option<JsonSource>,
    restrictions: StatementRestrictions,
}

impl ModificationPlan {
    /// What Cassandra calls such a write.
    pub fn write_type(&self) -> WriteType {
        match (self.conditions.is_empty(), self.table.is_counter) {
            (false, _) => WriteType::Cas,
            (true, true) => WriteType::Counter,
            (true, false) => WriteType::Simple,
        }
    }

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
            operations: operations.into_iter().collect(),
            attributes,
            conditions,
            json,
            is_volatile: false,
        }
    }

    /// True if making it again, at the same timestamp, changes nothing.
    pub(crate) fn is_repeatable(&self) -> bool {
        let is_list = |operation: &Operation| {
            let column = self.table.columns.get(operation.column);
            // Its elements have ids that are made anew.
            column.is_none_or(|column| matches!(column.ty, CqlType::List { frozen: false, .. }))
        };
        !self.is_volatile
            && !self.table.is_counter
            && self.conditions.is_empty()
            && self.json.is_none()
            && !self.operations.iter().any(is_list)
    }

    /// True if it says USING TIMESTAMP.
    pub(crate) fn has_timestamp(&self) -> bool {
        self.attributes.has_timestamp()
    }

    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// What is wrong with it though it can be planned (Cassandra's `ModificationStatement.validate`): told of by PREPARE, and by
    /// a request that brings its values once there are enough of them.
    ///
    /// # Errors
    /// Cassandra's.
    pub(crate) fn validate(&self) -> Result<(), CqlError> {
        let (table, attributes) = (&self.table, &self.attributes);
        let is_virtual = table.kind == TableKind::Virtual;
        let refused = [
            (
                table.is_counter && attributes.has_timestamp(),
                "Cannot provide custom timestamp for counter updates",
            ),
            (
                table.is_counter && attributes.has_ttl(),
                "Cannot provide custom TTL for counter updates",
            ),
            (table.is_view(), "Cannot directly modify a materialized view"),
            (
                is_virtual && attributes.has_timestamp(),
                "Custom timestamp is not supported by virtual tables",
            ),
            (
                is_virtual && attributes.has_ttl(),
                "Expiring columns are not supported by virtual tables",
            ),
            (
                is_virtual && self.is_conditional(),
                "Conditional updates are not supported by virtual tables",
            ),
        ];
        match refused.into_iter().find(|(applies, _)| *applies) {
            Some((_, message)) => Err(CqlError::invalid(message)),
            None => Ok(()),
        }
    }

    /// No virtual table here takes writes.
    fn refuse_virtual(&self) -> Result<(), CqlError> {
        match self.table.kind == TableKind::Virtual {
            true => Err(CqlError::invalid(format!(
                "Modification is not supported by table {}",
                self.table.full_name()
            ))),
            false => Ok(()),
        }
    }

    /// True if it has an IF.
    pub fn is_conditional(&self) -> bool {
        !self.conditions.is_empty()
    }

    /// Whether there are operations on static columns, and on regular ones.
    fn operation_kinds(&self) -> (bool, bool) {
        (
            self.operations.iter().any(|operation| operation.is_static),
            self.operations.iter().any(|operation| !operation.is_static),
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

/// Locks held for statements.
struct Locked {
    guard: Arc<PartitionGuard>,
    /// Some of what is written depends on what was there.
    is_alone: bool,
}

/// Locks the partitions of the statements, each as it needs.
async fn lock(engine: &Engine, bounds: &[Bound<'_>]) -> Result<Locked, CqlError> {
    let mut partitions: SmallVec<[Wanted; 4]> = SmallVec::new();
    for bound in bounds {
        let access = if bound.needs_lock() {
            Access::Alone
        } else {
            Access::Shared
        };
        let table = bound.plan.table.number;
        partitions.extend(bound.partitions.iter().map(|key| (table, key.token, access)));
    }
    let locked = Locked {
        guard: engine.lock_partitions(partitions).await?,
        is_alone: bounds.iter().any(Bound::needs_lock),
    };
    if locked.is_alone {
        require_own(engine, bounds)?;
    }
    Ok(locked)
}

/// The partitions that a modification names.
///
/// # Errors
/// Cassandra's, for keys that make no sense.
pub(crate) fn partitions(
    engine: &Engine,
    plan: &ModificationPlan,
    values: &[BoundValue],
    options: &QueryOptions,
) -> Result<Vec<PartitionKey>, CqlError> {
    Ok(Bound::new(plan, eval_context(engine, values, options))?.partitions)
}

/// The partitions that each statement of a batch names.
///
/// # Errors
/// Cassandra's, for keys that make no sense.
pub(crate) fn batch_partitions(
    engine: &Engine,
    plan: &BatchPlan,
    values: &[BoundValue],
    options: &QueryOptions,
) -> Result<Vec<Vec<PartitionKey>>, CqlError> {
    plan.modifications()
        .map(|one| partitions(engine, one, values, options))
        .collect()
}

/// In a cluster, what is written under locks must be this node's own.
fn require_own(engine: &Engine, bounds: &[Bound<'_>]) -> Result<(), CqlError> {
    let Some(cluster) = engine.cluster() else {
        return Ok(());
    };
    let mut partitions = bounds.iter().flat_map(|bound| &bound.partitions);
    match partitions.all(|key| cluster.owner(key.token) == Owner::Here) {
        true => Ok(()),
        false => Err(moved()),
    }
}

/// Leaves only the partitions that this node is to modify.
fn keep_part(bounds: &mut [Bound<'_>], place: &Place) {
    let Place::Part(parts) = place else { return };
    for (bound, keys) in bounds.iter_mut().zip(parts.iter()) {
        bound.partitions = keys.iter().cloned().map(PartitionKey::new).collect();
    }
}

/// Runs a modification.
pub async fn execute(
    engine: &Arc<Engine>,
    plan: &ModificationPlan,
    values: &[BoundValue],
    options: &QueryOptions,
) -> Result<Outcome, CqlError> {
    let now_s = now_s(engine, options);
    let is_virtual = plan.table.kind == TableKind::Virtual;
    if plan.conditions.is_empty() && !is_virtual {
        consistency::check_write(plan.table(), options.consistency)?;
    }
    let mut bounds = [Bound::new(plan, eval_context(engine, values, options))?];
    keep_part(&mut bounds, &options.place);
    if is_virtual {
        let [bound] = &bounds;
        if traces::delete(engine, bound) {
            return Ok(Response::Void.into());
        }
        plan.refuse_virtual()?;
    }
    if !plan.conditions.is_empty() {
        return cas::execute(engine, &bounds, options, now_s, false).await;
    }
    let locked = lock(engine, &bounds).await?;
    let [bound] = &bounds;
    // Dated under the lock: what comes after a condition is newer than what that wrote.
    let timestamp_us = match bound.timestamp_us.or(options.timestamp_us) {
        Some(timestamp_us) => timestamp_us,
        None => engine.timestamps.next_us(engine.clock.as_ref()),
    };
    check_timestamp(timestamp_us)?;
    consistency::check_read_of_write(engine, bound, options.consistency)?;
    let mut writes = WriteSet::under(Some(locked.guard));
    writes.add(engine, bound, timestamp_us, now_s, None).await?;
    if !bound.writes_nothing() {
        consistency::require_replicas(engine, plan.table(), options.consistency)?;
    }
    let together = Together {
        is_logged: false,
        is_locked: locked.is_alone,
        is_spread: false,
    };
    writes.commit(engine, together).await?;
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
pub async fn run_batch_message(
    engine: &Arc<Engine>,
    batch: &PlannedBatch,
    options: &QueryOptions,
) -> Result<Outcome, CqlError> {
    batch::execute_message(engine, batch, options).await
}

#[cfg(test)]
mod compact_tests;
#[cfg(test)]
mod dml_tests;
#[cfg(test)]
mod view_tests;
