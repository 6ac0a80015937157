//! Refusals of items, and their messages.

use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_cql::value::{hex, to_cql_literal, validate};
use helenus_row::RowError;
use helenus_row::key::split_partition_key;

use crate::schema::{Column, Table};

/// Maximum number of characters of a value in a message.
const SHOWN_MAX: usize = 100;

/// The reason why an item does not fit its table.
pub(super) struct Refusal {
    /// Name of the column. `None` if the reason is not about a single column.
    column: Option<String>,
    problem: String,
}

impl Refusal {
    pub fn new(problem: impl Into<String>) -> Refusal {
        Refusal {
            column: None,
            problem: problem.into(),
        }
    }

    /// Returns the refusal with the name of its column.
    pub fn of_column(self, column: &Column) -> Refusal {
        Refusal {
            column: Some(column.name.clone()),
            ..self
        }
    }
}

impl From<String> for Refusal {
    fn from(problem: String) -> Refusal {
        Refusal::new(problem)
    }
}

impl From<CqlError> for Refusal {
    fn from(error: CqlError) -> Refusal {
        Refusal::new(error.to_string())
    }
}

impl From<RowError> for Refusal {
    fn from(error: RowError) -> Refusal {
        Refusal::new(format!("the packed row cannot be read: {error}"))
    }
}

/// Returns the error of an item. `clustering` is empty for items that are not rows.
pub(super) fn refused(
    table: &Table,
    item: &str,
    partition: &Bytes,
    clustering: &[Bytes],
    refusal: Refusal,
) -> CqlError {
    let mut key = match split_partition_key(partition, table.partition_key_count) {
        Ok(values) => equations(table.partition_key().iter().zip(&values)),
        Err(_) => vec![format!("key {}", shortened(&format!("0x{}", hex(partition))))],
    };
    key.extend(equations(table.clustering().iter().zip(clustering)));
    let column = refusal
        .column
        .map_or(String::new(), |name| format!(", column {name}"));
    CqlError::invalid(format!(
        "INSERT … ROWS into {}: {item} {}{column}: {}. Nothing of the statement was written; correct this and send the rows again",
        table.full_name(),
        key.join(" AND "),
        refusal.problem
    ))
}

/// Returns the error of a blob that cannot be read as a whole.
pub(super) fn refused_blob(table: &Table, problem: &str) -> CqlError {
    CqlError::invalid(format!(
        "INSERT … ROWS into {}: the rows cannot be read: {problem}. Nothing of the statement was written",
        table.full_name()
    ))
}

/// Returns `column = value` in CQL for each value.
fn equations<'v>(values: impl Iterator<Item = (&'v Arc<Column>, &'v Bytes)>) -> Vec<String> {
    values
        .map(|(column, value)| {
            let literal = match validate(&column.ty, value) {
                Ok(()) => to_cql_literal(&column.ty, value).ok(),
                Err(_) => None,
            };
            let literal = literal.unwrap_or_else(|| format!("0x{}", hex(value)));
            format!("{} = {}", column.name, shortened(&literal))
        })
        .collect()
}

fn shortened(literal: &str) -> String {
    match literal.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}…", literal.get(..end).unwrap_or_default()),
        None => literal.to_owned(),
    }
}
