//! Statements that a transaction refuses, with Cassandra's words.

use helenus_cql::ast;
use helenus_cql::error::CqlError;

use crate::analysis::EvalContext;
use crate::analysis::modification::ModificationPlan;
use crate::analysis::restrictions::StatementKind;
use crate::analysis::select::SelectPlan;
use crate::analysis::select::limits::{Limits, NO_LIMIT};
use crate::analysis::select::plan::Aggregation;
use crate::schema::{Table, TableKind};

pub(super) fn invalid<T>(message: impl Into<String>) -> Result<T, CqlError> {
    Err(CqlError::invalid(message.into()))
}

fn refuse(problem: &str, statement: &str, position: &str) -> CqlError {
    CqlError::invalid(format!("{problem}; {statement} statement {position}"))
}

/// Refuses the statement with the first problem that applies.
fn refuse_first(problems: &[(bool, &str)], statement: &str, position: &str) -> Result<(), CqlError> {
    match problems.iter().find(|(applies, _)| *applies) {
        Some((_, problem)) => Err(refuse(problem, statement, position)),
        None => Ok(()),
    }
}

/// Returns true if transactions may use the table. The owner of a view's rows is not the owner of its base table's, so a view can't be read.
fn is_transactional(table: &Table) -> bool {
    !table.options.transactional_mode.is_off() && table.kind == TableKind::Stored
}

const DISABLED: &str = "Accord transactions are disabled on table (See transactional_mode in table options)";
const COUNTERS: &str = "Counter columns cannot be accessed within a transaction";
const IN_WITH_LIMIT: &str =
    "Partition key is present in IN clause and there is a LIMIT... this is currently not supported";

/// Refuses clauses of a SELECT, before it is planned.
pub(super) fn clauses(select: &ast::Select, position: &str) -> Result<(), CqlError> {
    let refused = [
        (
            !select.order_by.is_empty(),
            "No ORDER BY clause allowed within a transaction",
        ),
        (
            !select.group_by.is_empty(),
            "No GROUP BY clause allowed within a transaction",
        ),
        (
            select.as_of.is_some(),
            "AS OF is not allowed within a transaction, which reads the present",
        ),
        (
            select.timeout.is_some(),
            "USING TIMEOUT is not allowed within a transaction, whose time is limited as a whole",
        ),
    ];
    refuse_first(&refused, "SELECT", position)
}

/// Checks a planned SELECT.
pub(super) fn select(plan: &SelectPlan, position: &str) -> Result<(), CqlError> {
    let aggregates = !matches!(plan.aggregation, Aggregation::None);
    let has_limit = plan.limit.as_ref().is_some_and(|limit| !limit.has_markers());
    let refused = [
        (!is_transactional(plan.table()), DISABLED),
        (plan.table().is_counter, COUNTERS),
        (
            aggregates,
            "No aggregation functions allowed within a transaction",
        ),
        (plan.restrictions.key_is_in() && has_limit, IN_WITH_LIMIT),
    ];
    refuse_first(&refused, "SELECT", position)
}

/// Checks that a LET reads at most one row.
pub(super) fn one_row(plan: &SelectPlan, name: &str, position: &str) -> Result<(), CqlError> {
    if plan.restrictions.is_key_range {
        return invalid(format!(
            "Range queries are not allowed for reads within a transaction; {name} {position}"
        ));
    }
    let is_later = plan.limit.as_ref().is_some_and(|limit| limit.has_markers());
    match names_row(plan) || is_later {
        true => Ok(()),
        false => one_of_several(plan, None, name, position),
    }
}

/// Checks that the answer's SELECT names its partitions.
pub(super) fn named_partitions(plan: &SelectPlan, position: &str) -> Result<(), CqlError> {
    match plan.reads_range() {
        true => invalid(format!(
            "SELECT must specify either all partition key elements. Partition key elements must be always specified with \
             equality operators; returning select {position}"
        )),
        false => Ok(()),
    }
}

/// Returns true if each column of the primary key is given by `=`.
fn names_row(plan: &SelectPlan) -> bool {
    let restrictions = &plan.restrictions;
    restrictions.partition.has_only_equality(plan.table())
        && !restrictions.key_is_in()
        && restrictions.clustering.len() == plan.table().clustering_count
        && restrictions.clustering.has_only_equality()
        && !restrictions.clustering.has_in
}

fn one_of_several(
    plan: &SelectPlan,
    eval: Option<&EvalContext<'_>>,
    name: &str,
    position: &str,
) -> Result<(), CqlError> {
    let empty = EvalContext {
        values: &[],
        clock: &crate::clock::SystemClock,
        protocol_version: 5,
    };
    let limits = Limits::bind(plan.limit.as_ref(), None, eval.unwrap_or(&empty))?;
    match limits.rows == 1 {
        true => Ok(()),
        false => invalid(format!(
            "SELECT must specify either all primary key elements or all partition key elements and LIMIT 1. In both cases \
             partition key elements must be always specified with equality operators; {name} {position}"
        )),
    }
}

/// Checks the limit of a LET, which may be bound to a marker.
pub(crate) fn bound_limit(plan: &SelectPlan, eval: &EvalContext<'_>, position: &str) -> Result<(), CqlError> {
    if !names_row(plan) {
        one_of_several(plan, Some(eval), "LET assignment", position)?;
    }
    bound_limit_of_in(plan, eval, position)
}

/// Refuses a LIMIT on partitions that IN lists.
pub(crate) fn bound_limit_of_in(
    plan: &SelectPlan,
    eval: &EvalContext<'_>,
    position: &str,
) -> Result<(), CqlError> {
    if !plan.restrictions.key_is_in() {
        return Ok(());
    }
    let limits = Limits::bind(plan.limit.as_ref(), None, eval)?;
    match limits.rows == NO_LIMIT {
        true => Ok(()),
        false => Err(refuse(IN_WITH_LIMIT, "SELECT", position)),
    }
}

/// Refuses a reference as the value of a key column, before the INSERT is planned.
pub(super) fn inserted_key(insert: &ast::Insert, table: &Table) -> Result<(), CqlError> {
    for (name, value) in insert.columns.iter().zip(&insert.values) {
        let column = table.visible_column(name.as_str()).map(|(_, column)| column);
        if let (ast::Term::Reference(reference), Some(column)) = (value, column)
            && column.is_primary_key()
        {
            return invalid(format!(
                "Value reference {reference} cannot be used to insert PRIMARY KEY column {}",
                column.name
            ));
        }
    }
    Ok(())
}

/// Checks a planned write.
pub(super) fn write(plan: &ModificationPlan, position: &str) -> Result<(), CqlError> {
    let statement = match plan.kind {
        StatementKind::Insert => "INSERT",
        StatementKind::Delete => "DELETE",
        _ => "UPDATE",
    };
    let refused = [
        (!is_transactional(&plan.table), DISABLED),
        (
            plan.is_conditional(),
            "Updates within transactions may not specify their own conditions",
        ),
        (
            plan.attributes.has_timestamp(),
            "Updates within transactions may not specify custom timestamps",
        ),
        (
            plan.attributes.has_ttl(),
            "Updates within transactions may not specify custom ttls",
        ),
        (plan.table.is_counter, COUNTERS),
        (
            deletes_range(plan),
            "Range deletions are not allowed within a transaction: a DELETE must specify the whole primary key",
        ),
    ];
    refuse_first(&refused, statement, position)
}

/// Returns true for a DELETE of rows that it does not name one by one.
fn deletes_range(plan: &ModificationPlan) -> bool {
    let (statics, regulars) = plan.operation_kinds();
    let deletes_rows = regulars || !statics;
    plan.kind == StatementKind::Delete
        && plan.table.clustering_count > 0
        && deletes_rows
        && (plan.restrictions.clustering.is_empty() || plan.restrictions.names_slices())
}
