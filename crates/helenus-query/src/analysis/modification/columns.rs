//! The columns that a modification names.

use std::sync::Arc;

use helenus_cql::ast::Ident;
use helenus_cql::error::CqlError;
use helenus_cql::identifier::quote_identifier;

use crate::schema::{Column, Table};

/// Returns the column of that name (`TableMetadata.getExistingColumn`).
pub(crate) fn existing<'t>(table: &'t Table, name: &Ident) -> Result<(usize, &'t Arc<Column>), CqlError> {
    table.visible_column(name.as_str()).ok_or_else(|| {
        CqlError::invalid(format!(
            "Undefined column name {} in table {}.{}",
            name.to_cql(),
            quote_identifier(&table.keyspace),
            quote_identifier(&table.name)
        ))
    })
}
