//! CREATE TABLE … WITH COMPACT STORAGE (`CreateTableStatement.validateCompactTable` and `fixupCompactTable`).

use std::sync::Arc;

use helenus_cql::error::CqlError;
use helenus_cql::types::CqlType;
use helenus_row::{ColumnId, Order};

use crate::schema::{Column, ColumnKind, Compact};

fn invalid<T>(message: impl Into<String>) -> Result<T, CqlError> {
    Err(CqlError::invalid(message))
}

fn is_key(column: &&Column) -> bool {
    column.is_primary_key()
}

/// Checks the declared columns, and adds those that the table has without a declaration.
///
/// # Errors
/// The columns are none that a Thrift table could have had.
pub(crate) fn complete(columns: &mut Vec<Column>) -> Result<Compact, CqlError> {
    check(columns)?;
    if columns.iter().any(|column| column.kind == ColumnKind::Clustering) {
        if columns.iter().all(Column::is_primary_key) {
            add(columns, "value", ColumnKind::Regular, CqlType::EMPTY);
        }
        return Ok(Compact::Dense);
    }
    let has_counters = columns.iter().any(|column| column.ty.is_counter());
    for column in columns.iter_mut().filter(|column| !column.is_primary_key()) {
        column.kind = ColumnKind::Static;
    }
    add(columns, "column1", ColumnKind::Clustering, CqlType::TEXT);
    let value = if has_counters {
        CqlType::COUNTER
    } else {
        CqlType::BLOB
    };
    add(columns, "value", ColumnKind::Regular, value);
    Ok(Compact::Static)
}

fn check(columns: &[Column]) -> Result<(), CqlError> {
    let others = || columns.iter().filter(|column| !is_key(column));
    if others().any(|column| column.ty.is_multicell()) {
        return invalid("Non-frozen collections and UDTs are not supported with COMPACT STORAGE");
    }
    if others().any(Column::is_static) {
        return invalid("Static columns are not supported in COMPACT STORAGE tables");
    }
    let is_dense = columns.iter().any(|column| column.kind == ColumnKind::Clustering);
    let mut names: Vec<&str> = others().map(|column| column.name.as_str()).collect();
    if !is_dense && names.is_empty() {
        return invalid("No definition found that is not part of the PRIMARY KEY");
    }
    if is_dense && names.len() > 1 {
        names.sort_unstable();
        return invalid(format!(
            "COMPACT STORAGE with composite PRIMARY KEY allows no more than one column not part of the PRIMARY KEY (got: {})",
            names.join(", ")
        ));
    }
    Ok(())
}

/// Adds a column that was not declared. If the name is taken, a number is appended.
fn add(columns: &mut Vec<Column>, name: &str, kind: ColumnKind, ty: CqlType) {
    let stem = name.trim_end_matches('1');
    let numbered = (1..).map(|number| format!("{stem}{number}"));
    let free = std::iter::once(name.to_owned())
        .chain(numbered)
        .find(|name| columns.iter().all(|column| column.name != *name));
    columns.push(Column {
        name: free.unwrap_or_default(),
        ty,
        kind,
        position: 0,
        id: ColumnId(u32::try_from(columns.len()).unwrap_or(u32::MAX)),
        order: Order::Asc,
        mask: None,
        constraints: Arc::default(),
    });
}
