//! The columns of a table.

use helenus_cql::identifier::quote_identifier;
use helenus_cql::types::CqlType;

/// A column.
#[derive(Clone, Debug)]
pub struct PlannedColumn {
    pub name: String,
    pub ty: CqlType,
    pub is_static: bool,
    /// True for a clustering column in descending order.
    pub is_descending: bool,
}

impl PlannedColumn {
    /// Returns true if the log lists the deleted elements of the column.
    pub fn has_elements(&self) -> bool {
        self.ty.is_multicell()
    }
}

/// Returns the equations of columns, such as `a = ? AND b = ?`.
pub fn equations<'c>(columns: impl Iterator<Item = &'c PlannedColumn>, separator: &str) -> String {
    let terms: Vec<String> = columns
        .map(|column| format!("{} = ?", quote_identifier(&column.name)))
        .collect();
    terms.join(separator)
}
