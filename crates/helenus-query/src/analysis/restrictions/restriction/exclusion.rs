//! The values of NOT IN.

use bytes::Bytes;
use helenus_cql::error::CqlError;

use super::{BoundTuple, InList, column_name, names};
use crate::analysis::EvalContext;
use crate::schema::Table;

/// Values that columns must not have.
#[derive(Clone, Debug)]
pub struct Exclusion {
    /// Indexes in [`Table::columns`].
    pub columns: Vec<usize>,
    /// True if NOT IN was written for a tuple of columns.
    pub is_multi: bool,
    pub list: InList,
}

impl Exclusion {
    /// Returns the tuples for one request, in the order written.
    ///
    /// # Errors
    /// `Invalid null value for column c`
    pub fn bind(&self, table: &Table, ctx: &EvalContext<'_>) -> Result<Vec<Vec<Bytes>>, CqlError> {
        let bound = self.list.bind(table, &self.columns, self.is_multi, ctx)?;
        bound
            .into_iter()
            .map(|tuple| complete(tuple, table, &self.columns, self.is_multi))
            .collect()
    }
}

/// Returns the values of a tuple of the new operators, which have no nulls.
///
/// # Errors
/// `Invalid null value for column c`, `Invalid null value for b in tuple (a, b)`
pub(in crate::analysis::restrictions) fn complete(
    tuple: BoundTuple,
    table: &Table,
    columns: &[usize],
    is_multi: bool,
) -> Result<Vec<Bytes>, CqlError> {
    let Some(at) = tuple.iter().position(Option::is_none) else {
        return Ok(tuple.into_iter().flatten().collect());
    };
    let name = columns.get(at).map_or("", |place| column_name(table, *place));
    Err(CqlError::invalid(match is_multi {
        true => format!(
            "Invalid null value for {name} in tuple ({})",
            names(table, columns, ", ")
        ),
        false => format!("Invalid null value for column {name}"),
    }))
}
