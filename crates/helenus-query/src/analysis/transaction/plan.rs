//! Planning of a parsed transaction (Cassandra 6's `TransactionStatement.Parsed.prepare`).

use std::collections::BTreeSet;
use std::sync::Arc;

use helenus_cql::ast::{self, Located, Modification, RowReference, Term};
use helenus_cql::error::CqlError;

use super::check::{self, invalid};
use super::condition::Condition;
use super::reference::{self, KnownRow, Reference};
use super::{Branch, Returning, RowRead, TransactionPlan};
use crate::analysis::PlanContext;
use crate::analysis::context::WrittenReferences;
use crate::analysis::modification::{ModificationPlan, plan_one};
use crate::analysis::select::{self, SelectPlan};
use crate::response::{ColumnSpec, ResultMetadata};

/// Plans a transaction.
///
/// # Errors
/// Cassandra's.
pub(crate) fn plan(
    ctx: &mut PlanContext<'_>,
    statement: &ast::Transaction,
) -> Result<TransactionPlan, CqlError> {
    let is_empty = statement.writes().next().is_none();
    if is_empty && matches!(statement.returning, ast::Returning::Nothing) {
        return invalid("Transaction contains no reads or writes");
    }
    let (selects, rows) = plan_assignments(ctx, &statement.assignments)?;
    for reference in references(statement) {
        reference::column(&rows, reference)?;
    }
    let returning = plan_returning(ctx, &rows, &statement.returning)?;
    let (planned, written) = plan_writes(ctx, &rows, statement)?;
    let mut branches = Vec::with_capacity(statement.branches.len());
    let mut writes_end = 0;
    for branch in &statement.branches {
        writes_end += branch.writes.len();
        let conditions = branch.conditions.iter();
        let conditions = conditions.map(|condition| Condition::plan(ctx, &rows, condition));
        branches.push(Branch {
            conditions: conditions.collect::<Result<_, _>>()?,
            writes_end,
        });
    }
    let returned: &[Reference] = match &returning {
        Returning::References { references, .. } => references,
        Returning::Nothing | Returning::Select { .. } => &[],
    };
    let conditions = branches.iter().flat_map(|branch| &branch.conditions);
    let tested = conditions.filter_map(Condition::reference);
    let used = written.iter().chain(returned).chain(tested);
    let columns = referenced_columns(selects.len(), used);
    let reads = selects.into_iter().zip(columns);
    let reads = reads.map(|((select, position), columns)| RowRead {
        select,
        position,
        columns: columns.into_iter().collect(),
    });
    let reads = reads.collect();
    Ok(TransactionPlan {
        reads,
        returning,
        branches,
        writes: planned,
        unconditional: statement.unconditional.len(),
        references: written,
    })
}

fn position<T>(located: &Located<T>) -> String {
    format!("at [{}:{}]", located.line, located.column)
}

/// Returns all references.
fn references(statement: &ast::Transaction) -> Vec<&RowReference> {
    let mut found: Vec<&RowReference> = match &statement.returning {
        ast::Returning::References(references) => references.iter().collect(),
        ast::Returning::Nothing | ast::Returning::Select(_) => Vec::new(),
    };
    let conditions = statement.branches.iter().flat_map(|branch| &branch.conditions);
    found.extend(conditions.map(|condition| &condition.reference));
    found.extend(
        statement
            .writes()
            .flat_map(|write| written_terms(&write.statement))
            .filter_map(|term| match term {
                Term::Reference(reference) => Some(reference.as_ref()),
                _ => None,
            }),
    );
    found
}

/// Returns the written values of a modification.
fn written_terms(modification: &Modification) -> Vec<&Term> {
    match modification {
        Modification::Insert(insert) => insert.values.iter().collect(),
        Modification::Update(update) => {
            let operations = update.assignments.iter().map(|one| &one.operation);
            operations.map(value_of).collect()
        }
        Modification::InsertJson(_) | Modification::Delete(_) => Vec::new(),
    }
}

fn value_of(operation: &ast::AssignmentOperation) -> &Term {
    use ast::AssignmentOperation as Operation;
    match operation {
        Operation::Set(value)
        | Operation::Add(value)
        | Operation::Subtract(value)
        | Operation::Prepend(value)
        | Operation::SetElement { value, .. }
        | Operation::SetField { value, .. } => value,
    }
}

/// Plans the SELECT of each LET, with its position. Also returns the rows for references.
fn plan_assignments(
    ctx: &mut PlanContext<'_>,
    assignments: &[ast::LetAssignment],
) -> Result<(Vec<(SelectPlan, String)>, Vec<KnownRow>), CqlError> {
    let mut selects = Vec::with_capacity(assignments.len());
    let mut rows: Vec<KnownRow> = Vec::with_capacity(assignments.len());
    for assignment in assignments {
        let name = assignment.name.as_str();
        if rows.iter().any(|row| row.name == name) {
            return invalid(format!(
                "The name '{name}' has already been used by a LET assignment."
            ));
        }
        let position = position(&assignment.select);
        let select = plan_select(ctx, &assignment.select.statement, &position)?;
        check::one_row(&select, &format!("LET assignment {name}"), &position)?;
        rows.push(KnownRow {
            name: name.to_owned(),
            table: select.table().clone(),
            selected: select.selection.columns().to_vec(),
        });
        selects.push((select, position));
    }
    Ok((selects, rows))
}

fn plan_select(
    ctx: &mut PlanContext<'_>,
    statement: &ast::Select,
    position: &str,
) -> Result<SelectPlan, CqlError> {
    check::clauses(statement, position)?;
    let plan = select::plan(ctx, statement)?;
    check::select(&plan, position)?;
    Ok(plan)
}

fn plan_returning(
    ctx: &mut PlanContext<'_>,
    rows: &[KnownRow],
    returning: &ast::Returning,
) -> Result<Returning, CqlError> {
    match returning {
        ast::Returning::Nothing => Ok(Returning::Nothing),
        ast::Returning::Select(select) => {
            let position = position(select);
            let plan = plan_select(ctx, &select.statement, &position)?;
            check::named_partitions(&plan, &position)?;
            Ok(Returning::Select {
                plan: Box::new(plan),
                position,
            })
        }
        ast::Returning::References(references) => {
            let mut resolved: Vec<Reference> = Vec::with_capacity(references.len());
            let mut specs = Vec::with_capacity(references.len());
            for reference in references {
                let Some(found) = reference::resolve(ctx, rows, reference)? else {
                    return invalid("SELECT references must specify a column.");
                };
                let ColumnSpec {
                    keyspace, table, ty, ..
                } = found.spec;
                specs.push(ColumnSpec {
                    keyspace,
                    table,
                    name: found.result_name.as_str().into(),
                    ty,
                });
                resolved.push(found.reference);
            }
            Ok(Returning::References {
                references: resolved,
                metadata: Arc::new(ResultMetadata::new(specs)),
            })
        }
    }
}

/// Plans all writes. Also returns the references in their values, in the order of the markers that stand for them.
fn plan_writes(
    ctx: &mut PlanContext<'_>,
    rows: &[KnownRow],
    statement: &ast::Transaction,
) -> Result<(Vec<ModificationPlan>, Vec<Reference>), CqlError> {
    ctx.written_references = Some(WrittenReferences {
        marker_count: ctx.markers.len(),
        found: Vec::new(),
    });
    let planned = statement.writes().map(|write| plan_write(ctx, write));
    let planned = planned.collect::<Result<Vec<_>, _>>()?;
    let found = ctx.written_references.take().map(|written| written.found);
    let found = found.unwrap_or_default();
    let references = found
        .iter()
        .map(|(reference, receiver)| reference::written(ctx, rows, reference, receiver));
    let references = references.collect::<Result<Vec<_>, _>>()?;
    Ok((planned, references))
}

fn plan_write(
    ctx: &mut PlanContext<'_>,
    write: &Located<Modification>,
) -> Result<ModificationPlan, CqlError> {
    if let Modification::Insert(insert) = &write.statement {
        let table = ctx.table(&insert.table)?.clone();
        check::inserted_key(insert, &table)?;
    }
    let plan = plan_one(ctx, &write.statement)?;
    check::write(&plan, &position(write))?;
    Ok(plan)
}

/// Returns the columns of each read row that are referenced, in ascending order.
fn referenced_columns<'r>(
    count: usize,
    references: impl Iterator<Item = &'r Reference>,
) -> Vec<BTreeSet<usize>> {
    let mut columns = vec![BTreeSet::new(); count];
    for reference in references {
        if let Some(of_row) = columns.get_mut(reference.read) {
            of_row.insert(reference.column);
        }
    }
    columns
}
