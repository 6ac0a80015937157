//! The SELECT clause: typed selectors, evaluated over rows and groups.
//!
//! What [`crate::select`] asks of it: [`Selection::new`] when a statement is planned; for each execution a
//! [`Collector`], which is given rows and writes result rows. Without aggregates and GROUP BY each row that is added is
//! finished at once; else a group's rows are added one by one and then finished. Plain columns never get here: SELECT
//! writes them straight from the stored row.

use std::sync::Arc;

use helenus_cql::ast;
use helenus_cql::error::CqlError;

use crate::plan::{PlanContext, column_spec};
use crate::response::{ColumnSpec, ResultMetadata, RowsBuilder};
use crate::schema::Table;
use crate::select::RowView;
use crate::term::EvalContext;

/// How the rows are shown.
#[derive(Clone, Copy, Debug, Default)]
pub struct SelectionOptions {
    /// `SELECT JSON`: one column, `[json]`.
    pub is_json: bool,
    /// The statement has a GROUP BY clause: columns outside of aggregates show a group's first row.
    pub is_grouped: bool,
}

/// A SELECT clause, typed.
#[derive(Debug)]
pub struct Selection {
    metadata: Arc<ResultMetadata>,
    columns: Vec<usize>,
    /// Result columns that count rows; the others are plain, in order.
    counts: Vec<bool>,
}

impl Selection {
    /// Types the selectors of a statement on `table`; no items mean `*`.
    ///
    /// # Errors
    /// Cassandra's, for names that don't exist and calls that don't fit.
    pub fn new(
        _ctx: &mut PlanContext<'_>,
        table: &Arc<Table>,
        items: &[ast::SelectItem],
        _options: SelectionOptions,
    ) -> Result<Selection, CqlError> {
        let mut specs: Vec<ColumnSpec> = Vec::new();
        let (mut columns, mut counts) = (Vec::new(), Vec::new());
        for (place, column) in table.columns.iter().enumerate().filter(|_| items.is_empty()) {
            specs.push(column_spec(table, column));
            columns.push(place);
            counts.push(false);
        }
        for item in items {
            let mut spec = match &item.selector {
                ast::Selector::Column(name) => {
                    let (place, column) = crate::select::require_column(table, name)?;
                    columns.push(place);
                    counts.push(false);
                    column_spec(table, column)
                }
                ast::Selector::CountRows => {
                    counts.push(true);
                    let ty = helenus_cql::types::CqlType::BIGINT;
                    ColumnSpec::new(table.keyspace.as_str(), table.name.as_str(), "count", ty)
                }
                _ => return Err(CqlError::invalid("this selector is not supported yet")),
            };
            if let Some(alias) = &item.alias {
                spec.name = alias.as_str().into();
            }
            specs.push(spec);
        }
        Ok(Selection {
            metadata: Arc::new(ResultMetadata { columns: specs }),
            columns,
            counts,
        })
    }

    /// The columns of the result.
    pub fn metadata(&self) -> &Arc<ResultMetadata> {
        &self.metadata
    }

    /// Places in [`Table::columns`] of every column that a selector looks at (Cassandra's `Selection.getColumns`).
    pub fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// If the result is nothing but columns of the table: their places, in the order of the result.
    pub fn plain_columns(&self) -> Option<&[usize]> {
        (!self.is_aggregate()).then_some(self.columns.as_slice())
    }

    /// True if a selector is, or contains, an aggregate.
    pub fn is_aggregate(&self) -> bool {
        self.counts.contains(&true)
    }

    /// What collects the rows of one execution.
    pub fn collector<'a>(&'a self, _ctx: EvalContext<'a>) -> Result<Collector<'a>, CqlError> {
        Ok(Collector {
            selection: self,
            first: None,
            count: 0,
        })
    }
}

/// Collects the rows of one execution.
pub struct Collector<'a> {
    selection: &'a Selection,
    /// Values of the first row of the group under way.
    first: Option<Vec<Option<bytes::Bytes>>>,
    count: i64,
}

impl Collector<'_> {
    /// Takes a row into the group under way.
    pub fn add(&mut self, row: &dyn RowView) -> Result<(), CqlError> {
        self.count += 1;
        let columns = &self.selection.columns;
        self.first
            .get_or_insert_with(|| columns.iter().map(|place| row.value(*place)).collect());
        Ok(())
    }

    /// Appends the group's result row, and begins the next group. An empty group is that of an aggregate over no rows.
    pub fn finish(&mut self, out: &mut RowsBuilder) -> Result<(), CqlError> {
        let mut values = self.first.take().unwrap_or_default().into_iter();
        for is_count in &self.selection.counts {
            match is_count {
                true => out.push(Some(&self.count.to_be_bytes())),
                false => out.push(values.next().flatten().as_deref()),
            }
        }
        self.count = 0;
        Ok(())
    }
}
