//! Plans of BATCH: several modifications that are executed together (Cassandra's `BatchStatement`).

use helenus_cql::ast::{self, BatchKind};
use helenus_cql::error::{CqlError, WriteType};

use super::ModificationPlan;
use super::attributes::Attributes;
use crate::analysis::PlanContext;
use crate::schema::{Table, TableKind};

/// A batch ready to run.
#[derive(Debug)]
pub struct BatchPlan {
    pub(crate) kind: BatchKind,
    pub(crate) attributes: Attributes,
    pub(crate) statements: Vec<ModificationPlan>,
}

/// Returns Cassandra's name for the write of such a batch.
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

    /// Returns the statements.
    pub fn modifications(&self) -> impl Iterator<Item = &ModificationPlan> {
        self.statements.iter()
    }

    /// Returns Cassandra's name for the batch's write.
    pub fn write_type(&self) -> WriteType {
        write_type(self.kind)
    }

    /// Returns the table by whose partition key drivers may route the batch, if it is the only table. As in Cassandra, `None` if a marker
    /// stands for the batch's timestamp.
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

/// Refuses virtual tables in a logged batch, and next to other tables. They have no log, and their rows belong to one node.
pub(crate) fn refuse_virtual(ctx: &PlanContext<'_>, batch: &ast::Batch) -> Result<(), CqlError> {
    let is_virtual = |statement: &ast::Modification| {
        ctx.table(statement.table())
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

pub(crate) fn invalid<T>(message: &str) -> Result<T, CqlError> {
    Err(CqlError::invalid(message))
}

/// Makes the checks of `BatchStatement.validate`.
pub(crate) fn check(
    kind: BatchKind,
    attributes: &Attributes,
    statements: &[&ModificationPlan],
) -> Result<(), CqlError> {
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
