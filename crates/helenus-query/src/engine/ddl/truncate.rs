//! TRUNCATE. The table, its indexes and its views get new numbers. Compaction sweeps the rows under the old numbers, unless a snapshot
//! contains them.

use std::sync::Arc;

use helenus_cql::ast;
use helenus_cql::error::CqlError;

use super::renumber::renumbered;
use super::{DdlContext, snapshots};
use crate::schema::{Schema, Table, TableKind, views_of};
use crate::trace::Traces;

pub fn truncate(ctx: &DdlContext<'_>, name: &ast::QualifiedName) -> Result<Schema, CqlError> {
    let table = ctx
        .schema
        .require_table(ctx.keyspace_of(name)?, name.name.as_str())?;
    match table.kind {
        TableKind::Virtual => Err(CqlError::invalid(format!(
            "Truncation is not supported by table {}",
            table.full_name()
        ))),
        TableKind::View => Err(CqlError::invalid(
            "Cannot TRUNCATE materialized view directly; must truncate base table instead",
        )),
        TableKind::Stored | TableKind::Index => {
            let mut truncated = renumber(ctx.schema, table)?;
            snapshots::before_truncate(ctx, &mut truncated, table);
            Ok(truncated)
        }
    }
}

/// Truncates a table of this node's traces, which are in memory. Returns false if the name is not that of such a table.
pub fn forget_traces(traces: &Traces, keyspace: Option<&str>, name: &ast::QualifiedName) -> bool {
    let named = name.keyspace.as_ref().map(|name| name.as_str());
    if named.or(keyspace) != Some("system_traces") {
        return false;
    }
    match name.name.as_str() {
        "sessions" => traces.change_all(|trace| trace.deleted.is_whole = true),
        "events" => traces.change_all(|trace| trace.events.clear()),
        _ => return false,
    }
    true
}

fn renumber(schema: &Schema, table: &Table) -> Result<Schema, CqlError> {
    let mut schema = schema.clone();
    let empty = renumbered(&mut schema, table, true)?;
    let views: Vec<Arc<Table>> = views_of(&schema, table).cloned().collect();
    for view in views {
        let empty = renumbered(&mut schema, &view, true)?;
        schema = schema.with_table(empty);
    }
    Ok(schema.with_table(empty))
}
