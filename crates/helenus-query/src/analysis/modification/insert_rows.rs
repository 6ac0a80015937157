//! `INSERT INTO … ROWS ?`: rows with their timestamps, TTLs and deletions, in one blob ([`helenus_row::transfer`]). `helenus import` sends
//! such statements.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::ast;
use helenus_cql::error::CqlError;
use helenus_cql::types::CqlType;

use crate::analysis::terms::Term;
use crate::analysis::{EvalContext, PlanContext};
use crate::request::BoundValue;
use crate::response::ColumnSpec;
use crate::schema::names::is_system_name;
use crate::schema::{Table, TableKind};

/// An `INSERT … ROWS` ready to run.
#[derive(Debug)]
pub struct InsertRowsPlan {
    pub(crate) table: Arc<Table>,
    /// Indexes in [`Table::columns`] of the statement's columns, in the order of its list.
    pub(crate) columns: Vec<usize>,
    /// True if the rows are not captured.
    pub(crate) without_cdc: bool,
    rows: Term,
}

impl InsertRowsPlan {
    /// Plans the statement.
    ///
    /// # Errors
    /// The table takes no imported rows, or the list has a column that is unknown, part of the key, or named twice.
    pub(crate) fn plan(
        ctx: &mut PlanContext<'_>,
        statement: &ast::InsertRows,
    ) -> Result<InsertRowsPlan, CqlError> {
        let table = ctx.table(&statement.table)?.clone();
        check_table(&table)?;
        let mut columns = Vec::with_capacity(statement.columns.len());
        let mut named = HashSet::with_capacity(statement.columns.len());
        for name in &statement.columns {
            // Hidden columns of compact tables count too: their cells are what makes some rows exist.
            let Some((place, column)) = table.column(name.as_str()) else {
                return Err(CqlError::invalid(format!(
                    "Undefined column name {} in table {}",
                    name.to_cql(),
                    table.cql_name()
                )));
            };
            if column.is_primary_key() {
                return Err(CqlError::invalid(format!(
                    "PRIMARY KEY part {} found in the columns of INSERT … ROWS; the rows contain their keys, name only \
                     regular and static columns",
                    column.name
                )));
            }
            if !named.insert(place) {
                return Err(CqlError::invalid("The column names contains duplicates"));
            }
            columns.push(place);
        }
        let spec = ColumnSpec::new(
            table.keyspace.as_str(),
            table.name.as_str(),
            "[rows]",
            CqlType::BLOB,
        );
        Ok(InsertRowsPlan {
            rows: Term::prepare(ctx, &statement.rows, &spec)?,
            table,
            columns,
            without_cdc: statement.without_cdc,
        })
    }

    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// Returns the blob of the rows.
    ///
    /// # Errors
    /// The value is null or unset.
    pub(crate) fn rows(&self, eval: &EvalContext<'_>) -> Result<Bytes, CqlError> {
        match self.rows.bind(eval)? {
            BoundValue::Set(rows) => Ok(rows),
            BoundValue::Null => Err(CqlError::invalid(
                "Invalid null value for the rows of INSERT … ROWS",
            )),
            BoundValue::Unset => Err(CqlError::invalid(
                "Invalid unset value for the rows of INSERT … ROWS",
            )),
        }
    }

    /// Returns the lines of the plan for tests.
    #[cfg(test)]
    pub(crate) fn explain(&self) -> Vec<String> {
        let columns = self
            .columns
            .iter()
            .filter_map(|place| self.table.columns.get(*place));
        let columns: Vec<String> = columns
            .map(|column| format!("{} ({:?})", column.name, column.kind))
            .collect();
        let mut lines = vec![format!("columns: {}", columns.join(", ")).trim_end().to_owned()];
        if self.without_cdc {
            lines.push("without cdc".to_owned());
        }
        lines
    }
}

/// Refuses tables whose rows the server makes.
fn check_table(table: &Table) -> Result<(), CqlError> {
    if table.is_cdc_log() {
        return Err(super::unmodifiable_log(table));
    }
    let refused = match table.kind {
        TableKind::View => return Err(CqlError::invalid("Cannot directly modify a materialized view")),
        TableKind::Virtual | TableKind::Index => true,
        TableKind::Stored => is_system_name(&table.keyspace),
    };
    match refused {
        true => Err(CqlError::invalid(format!(
            "INSERT … ROWS is not supported by table {}, whose rows the server makes",
            table.full_name()
        ))),
        false => Ok(()),
    }
}
