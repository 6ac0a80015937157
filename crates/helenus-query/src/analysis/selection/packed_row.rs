//! `packed_row(a, b)`, an extension: the live cells of a row with their write times, TTLs and paths, in the bytes that `INSERT … ROWS` takes.
//! The position of a column among the arguments is its id in the packed row. `helenus replicate` copies tables with it, because CQL shows
//! neither the write time of a row nor the ids of a list's elements.
//!
//! The arguments are static columns, or regular ones. Without any, the result has the write time of the row alone.

use std::sync::Arc;

use helenus_cql::ast::{self, FunctionName};
use helenus_cql::error::CqlError;

use crate::schema::Column;

const NAME: &str = "packed_row";

/// Returns true for a call of this selector.
pub(super) fn is_called(name: &FunctionName) -> bool {
    name.name == NAME && name.keyspace.as_ref().is_none_or(|keyspace| keyspace == "system")
}

/// Returns the columns of the arguments, with their indexes. `column_of` looks up a name.
///
/// # Errors
/// An argument is no column outside of the primary key, or static columns are mixed with others.
pub(super) fn columns(
    args: &[ast::Selector],
    column_of: impl Fn(&ast::Ident) -> Result<(usize, Arc<Column>), CqlError>,
) -> Result<Vec<(usize, Arc<Column>)>, CqlError> {
    let mut columns = Vec::with_capacity(args.len());
    for arg in args {
        let ast::Selector::Column(name) = arg else {
            return Err(CqlError::invalid(
                "The arguments of packed_row are the names of columns",
            ));
        };
        let (place, column) = column_of(name)?;
        if column.is_primary_key() {
            return Err(CqlError::invalid(format!(
                "Cannot use packed_row on PRIMARY KEY part {}; select the column itself",
                column.name
            )));
        }
        columns.push((place, column));
    }
    let statics = columns.iter().filter(|(_, column)| column.is_static()).count();
    if statics > 0 && statics < columns.len() {
        return Err(CqlError::invalid(
            "packed_row takes static columns or others, not both: select it twice",
        ));
    }
    Ok(columns)
}

/// Returns the name of the result's column.
pub(super) fn column_name(columns: &[(usize, Arc<Column>)]) -> String {
    let names: Vec<&str> = columns.iter().map(|(_, column)| column.name.as_str()).collect();
    format!("{NAME}({})", names.join(", "))
}

/// Returns the error for a role that may not see a column's values.
pub(super) fn masked_error(column: &str) -> CqlError {
    CqlError::Unauthorized(format!(
        "packed_row shows the values of the masked column {column}: it needs the permission UNMASK on the table"
    ))
}
