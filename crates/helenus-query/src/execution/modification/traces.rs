//! DELETE from `system_traces`, whose rows are in memory. Drivers' tests use it to simulate incomplete traces.

use uuid::Uuid;

use crate::analysis::modification::BoundModification;
use crate::analysis::modification::bound::RowsBound;
use crate::analysis::modification::operation::Action;
use crate::analysis::restrictions::StatementKind;
use crate::schema::Table;
use crate::storage::ExecutionContext;
use crate::trace::Trace;

/// Deletes traces or columns of them. Returns false if these tables do not support the statement.
pub(crate) fn delete(context: &ExecutionContext, bound: &BoundModification<'_>) -> bool {
    let table = bound.table();
    if bound.plan.kind != StatementKind::Delete || table.keyspace != "system_traces" {
        return false;
    }
    let Some(columns) = columns(bound, table) else {
        return false;
    };
    let change = |trace: &mut Trace| match table.name.as_str() {
        "events" => trace.events.clear(),
        _ if columns.is_empty() => trace.deleted.is_whole = true,
        _ => trace.deleted.columns.extend(columns.iter().cloned()),
    };
    // Only all events of a trace can be deleted together.
    if table.name == "events" && !(columns.is_empty() && matches!(bound.rows, RowsBound::None)) {
        return false;
    }
    for partition in &bound.partitions {
        if let Ok(id) = Uuid::from_slice(&partition.bytes) {
            context.traces.change(id, change);
        }
    }
    true
}

/// Returns the columns that are deleted as a whole. `None` if there are other operations.
fn columns(bound: &BoundModification<'_>, table: &Table) -> Option<Vec<String>> {
    let column = |operation: &crate::analysis::modification::operation::Operation| match operation.action {
        Action::Delete => table
            .columns
            .get(operation.column)
            .map(|column| column.name.clone()),
        _ => None,
    };
    bound.operations.iter().map(column).collect()
}
