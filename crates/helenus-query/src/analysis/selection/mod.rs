//! The SELECT clause: typed selectors, evaluated over rows and groups.
//!
//! [`super::select`] calls [`Selection::new`] when a statement is planned. For each execution it uses a [`Collector`], which gets rows and
//! writes result rows. Without aggregates and GROUP BY, each added row is finished at once. Otherwise a group's rows are added one by one
//! and then finished. Plain columns are not handled here: SELECT writes them directly from the stored row.

pub(crate) mod cell_times;
pub(crate) mod constants;
pub(crate) mod eval;
mod packed_row;
pub(crate) mod partial;
pub(crate) mod selectable;
pub(crate) mod typed;

#[cfg(test)]
mod selection_tests;

use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::ast;
use helenus_cql::error::CqlError;
use helenus_cql::types::CqlType;
use helenus_cql::value::{json, to_json};

use super::functions::AggregateState;
use super::{PlanContext, column_spec};
use crate::analysis::EvalContext;
use crate::request::BoundValue;
use crate::response::{ColumnSpec, ResultMetadata, RowsBuilder};
use crate::rows::RowView;
use crate::schema::{Column, ColumnKind, Table};
use eval::Evaluation;
use partial::FirstRow;
pub use partial::{NamedGroup, NamedRow, PartialGroup};
use typed::{BoundTerm, Node, Parts, SelectorTypeChecker, Typed};

/// The form of the result rows.
#[derive(Clone, Copy, Debug, Default)]
pub struct SelectionOptions {
    /// True for `SELECT JSON`, whose result has one column, `[json]`.
    pub is_json: bool,
    /// True if the statement has a GROUP BY clause. Columns outside of aggregates then show a group's first row.
    pub is_grouped: bool,
}

/// A SELECT clause, typed.
#[derive(Debug)]
#[repr(C)]
pub struct Selection {
    metadata: Arc<ResultMetadata>,
    plain_columns: Option<Vec<usize>>,
    /// The names of the columns, which are the keys of JSON.
    names: Vec<String>,
    selectors: Vec<Typed>,
    parts: Parts,
    is_json: bool,
}

impl Selection {
    /// Types the selectors of a statement on `table`; no items mean `*`.
    ///
    /// # Errors
    /// Cassandra's, for names that don't exist and calls that don't fit.
    pub fn new(
        ctx: &mut PlanContext<'_>,
        table: &Arc<Table>,
        items: &[ast::SelectItem],
        options: SelectionOptions,
    ) -> Result<Selection, CqlError> {
        let mut typer = SelectorTypeChecker {
            ctx,
            table,
            parts: Parts::default(),
        };
        let mut specs: Vec<ColumnSpec> = Vec::new();
        let mut selectors = Vec::new();
        if items.is_empty() {
            let visible = table.visible_places();
            for (place, column) in visible.filter_map(|place| Some((place, table.columns.get(place)?))) {
                specs.push(column_spec(table, column));
                let name = column.name.clone();
                selectors.push(Typed {
                    node: typer.column(place, column)?,
                    ty: column.ty.clone(),
                    name,
                });
                typer.parts.columns.push(place);
            }
        }
        for item in items {
            let selectable = selectable::prepare(typer.ctx, table, &item.selector)?;
            let typed = typer.typed(&selectable, None)?;
            let name = item
                .alias
                .as_ref()
                .map_or(typed.name.as_str(), |alias| alias.as_str());
            specs.push(ColumnSpec::new(
                table.keyspace.as_str(),
                table.name.as_str(),
                name,
                typed.ty.clone(),
            ));
            selectors.push(typed);
        }
        let parts = typer.parts;
        if !parts.packed_rows.is_empty() && (options.is_grouped || !parts.aggregates.is_empty()) {
            return Err(CqlError::invalid(
                "packed_row cannot be selected with GROUP BY or aggregates: it shows single rows",
            ));
        }
        Ok(Selection::assemble(table, specs, selectors, parts, options))
    }

    fn assemble(
        table: &Table,
        specs: Vec<ColumnSpec>,
        selectors: Vec<Typed>,
        parts: Parts,
        options: SelectionOptions,
    ) -> Selection {
        let plain = selectors.iter().map(|selector| match &selector.node {
            Node::Column(place) => Some(*place),
            _ => None,
        });
        let is_processed = options.is_json || options.is_grouped;
        let plain_columns = plain.collect::<Option<Vec<usize>>>().filter(|_| !is_processed);
        let names = specs.iter().map(|spec| spec.name.to_string()).collect();
        let columns = if options.is_json {
            vec![ColumnSpec::new(
                table.keyspace.as_str(),
                table.name.as_str(),
                "[json]",
                CqlType::TEXT,
            )]
        } else {
            specs
        };
        Selection {
            metadata: Arc::new(ResultMetadata::new(columns)),
            names,
            selectors,
            parts,
            plain_columns,
            is_json: options.is_json,
        }
    }

    /// Returns the columns of the result.
    pub fn metadata(&self) -> &Arc<ResultMetadata> {
        &self.metadata
    }

    /// Returns the indexes in [`Table::columns`] of every column that a selector reads (Cassandra's `Selection.getColumns`).
    pub fn columns(&self) -> &[usize] {
        &self.parts.columns
    }

    /// Returns the columns' indexes in the order of the result. `None` if the result has more than plain columns of the table.
    pub fn plain_columns(&self) -> Option<&[usize]> {
        self.plain_columns.as_deref()
    }

    /// Returns true if a selector is, or contains, an aggregate.
    pub fn is_aggregate(&self) -> bool {
        !self.parts.aggregates.is_empty()
    }

    /// Returns true if only the number of rows is selected.
    pub fn counts_rows(&self) -> bool {
        let counts = |name: &str| matches!(name, "system.count_rows" | "system.countRows");
        let calls = &self.parts.aggregates;
        self.parts.columns.is_empty()
            && self.is_aggregate()
            && calls
                .iter()
                .all(|call| call.args.is_empty() && counts(call.function.name()))
    }

    /// Returns true if the rows of a group may be collected in parts ([`Collector::merge`]).
    pub fn is_mergeable(&self) -> bool {
        self.parts
            .aggregates
            .iter()
            .all(|call| call.function.is_mergeable())
    }

    /// Checks that the selectors keep adjacent rows together, as GROUP BY requires (Cassandra's `Selector.validateForGroupBy`).
    ///
    /// # Errors
    /// `Only monotonic functions are supported in the GROUP BY clause. Got: …`.
    pub fn validate_for_group_by(&self) -> Result<(), CqlError> {
        self.selectors.iter().try_for_each(validate_for_group_by)
    }

    /// Returns the collector for the rows of one execution.
    ///
    /// # Errors
    /// A bound value does not fit.
    pub fn collector<'a>(&'a self, ctx: EvalContext<'a>) -> Result<Collector<'a>, CqlError> {
        let terms = self.parts.terms.iter().map(|term| bind(term, &ctx));
        Ok(Collector {
            selection: self,
            ctx,
            terms: terms.collect::<Result<_, CqlError>>()?,
            states: self
                .parts
                .aggregates
                .iter()
                .map(|call| call.function.new_state())
                .collect(),
            first: None,
        })
    }
}

/// Returns true if static columns are selected, and no other columns except those of the partition key. Like Cassandra, it looks names up
/// as far as needed, and so reports unknown names before errors in the WHERE clause.
///
/// # Errors
/// A name does not exist.
pub fn selects_static_only(
    ctx: &PlanContext<'_>,
    table: &Table,
    items: &[ast::SelectItem],
) -> Result<bool, CqlError> {
    if !table.has_static() {
        return Ok(false);
    }
    let any = |is_such: &dyn Fn(&Column) -> bool| -> Result<bool, CqlError> {
        for item in items {
            if selectable::prepare(ctx, table, &item.selector)?.any_column(is_such) {
                return Ok(true);
            }
        }
        Ok(false)
    };
    let is_of_rows = |column: &Column| !matches!(column.kind, ColumnKind::Static | ColumnKind::PartitionKey);
    Ok(any(&|column| column.kind == ColumnKind::Static)? && !any(&is_of_rows)?)
}

fn validate_for_group_by(typed: &Typed) -> Result<(), CqlError> {
    let Node::Scalar { function, args } = &typed.node else {
        return match &typed.node {
            Node::Column(_) | Node::Masked { .. } => Ok(()),
            _ => Err(CqlError::invalid(
                "Only column names and monotonic scalar functions are supported in the GROUP BY clause.",
            )),
        };
    };
    let is_term = |arg: &Typed| matches!(arg.node, Node::Term(_));
    let is_monotonic = match function.name() {
        "system.to_date"
        | "system.todate"
        | "system.to_timestamp"
        | "system.totimestamp"
        | "system.to_unix_timestamp"
        | "system.tounixtimestamp" => true,
        "system.floor" => !args.first().is_some_and(is_term) && args.iter().skip(1).all(is_term),
        _ => false,
    };
    if !is_monotonic {
        let signature = super::functions::Function::Scalar(function.clone());
        return Err(CqlError::invalid(format!(
            "Only monotonic functions are supported in the GROUP BY clause. Got: {signature} "
        )));
    }
    args.iter()
        .filter(|arg| !is_term(arg))
        .try_for_each(validate_for_group_by)
}

fn bind(term: &BoundTerm, ctx: &EvalContext<'_>) -> Result<Option<Bytes>, CqlError> {
    let kind = if term.is_slice { "slice" } else { "element" };
    match (term.term.bind(ctx)?, &term.element_of) {
        (BoundValue::Set(value), _) => Ok(Some(value)),
        (BoundValue::Null, Some(of)) => Err(CqlError::invalid(format!(
            "Invalid null value for {kind} selection on {of}"
        ))),
        // An unset bound leaves the slice open.
        (BoundValue::Unset, Some(of)) if !term.is_slice => Err(CqlError::invalid(format!(
            "Invalid unset value for {kind} selection on {of}"
        ))),
        (BoundValue::Unset, None) if term.argument_of.is_some() => Err(CqlError::invalid(format!(
            "Invalid unset value for argument in call to function {}",
            term.argument_of.as_deref().unwrap_or_default()
        ))),
        // Cassandra treats an unset value as empty if the value itself is shown.
        (BoundValue::Unset, None) => Ok(Some(Bytes::new())),
        (BoundValue::Null | BoundValue::Unset, _) => Ok(None),
    }
}

/// Collects the rows of one execution.
pub struct Collector<'a> {
    selection: &'a Selection,
    ctx: EvalContext<'a>,
    terms: Vec<Option<Bytes>>,
    states: Vec<Box<dyn AggregateState>>,
    /// The first row of the current group.
    first: Option<FirstRow>,
}

impl Collector<'_> {
    /// Returns the current group, to be merged with others of the same selection.
    pub fn into_partial(self) -> PartialGroup {
        let states = self.states.iter();
        PartialGroup {
            states: states.map(|state| state.partial().unwrap_or_default()).collect(),
            first: self.first,
        }
    }

    /// Adds to the current group a part with later rows. The selection must be mergeable.
    pub fn merge(&mut self, partial: PartialGroup) {
        for (state, partial) in self.states.iter_mut().zip(&partial.states) {
            state.merge(partial);
        }
        if self.first.is_none() {
            self.first = partial.first;
        }
    }

    /// Adds a number of rows to the count. The selection must only count rows.
    pub fn add_counted(&mut self, rows: u64) {
        let count = Bytes::copy_from_slice(&rows.to_be_bytes());
        self.states.iter_mut().for_each(|state| state.merge(&count));
    }

    /// Adds a row to the current group.
    ///
    /// # Errors
    /// A function fails on the row.
    pub fn add(&mut self, row: &dyn RowView) -> Result<(), CqlError> {
        let parts = &self.selection.parts;
        let evaluation = Evaluation {
            ctx: self.ctx,
            terms: &self.terms,
            row: Some(row),
            aggregates: &[],
        };
        for (call, state) in parts.aggregates.iter().zip(&mut self.states) {
            let args = call.args.iter().map(|arg| evaluation.value(arg));
            state.add(&args.collect::<Result<Vec<_>, CqlError>>()?)?;
        }
        if self.first.is_none() {
            self.first = Some(FirstRow {
                values: parts
                    .columns
                    .iter()
                    .map(|place| (*place, row.value(*place)))
                    .collect(),
                cells: parts
                    .attribute_columns
                    .iter()
                    .map(|place| (*place, row.cells(*place)))
                    .collect(),
                packed: parts
                    .packed_rows
                    .iter()
                    .map(|columns| (columns.clone(), row.packed(columns)))
                    .collect(),
            });
        }
        Ok(())
    }

    /// Appends the group's result row and begins the next group. An empty group is one of an aggregate over no rows.
    ///
    /// # Errors
    /// A function fails.
    pub fn finish(&mut self, out: &mut RowsBuilder) -> Result<(), CqlError> {
        let first = self.first.take();
        let row = first.as_ref().map(|row| row as &dyn RowView);
        let evaluation = Evaluation {
            ctx: self.ctx,
            terms: &self.terms,
            row,
            aggregates: &self.states,
        };
        if self.selection.is_json {
            out.push(Some(self.json(&evaluation)?.as_bytes()));
        } else {
            for selector in &self.selection.selectors {
                out.push(evaluation.value(selector)?.as_deref());
            }
        }
        self.states.iter_mut().for_each(|state| state.reset());
        Ok(())
    }

    fn json(&self, evaluation: &Evaluation<'_>) -> Result<String, CqlError> {
        let mut members = Vec::with_capacity(self.selection.selectors.len());
        for (name, selector) in self.selection.names.iter().zip(&self.selection.selectors) {
            let value = match evaluation.value(selector)? {
                Some(value) => to_json(&selector.ty, &value).map_err(CqlError::Server)?,
                None => "null".to_owned(),
            };
            members.push(format!("{}: {value}", json::quote(&json::json_name(name))));
        }
        Ok(format!("{{{}}}", members.join(", ")))
    }
}
