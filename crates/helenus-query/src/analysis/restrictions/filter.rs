//! Tests on rows for restrictions that no slice and no index has answered (Cassandra's `RowFilter`).

use bytes::Bytes;
use helenus_cql::ast::Operator;
use helenus_cql::error::CqlError;
use helenus_cql::value;

use super::restriction::{
    BoundTuple, Contains, InList, Restriction, Slice, SliceBound, Test, Tuple, column_name, complete,
    unset_column,
};
use super::restriction_set::RestrictionSet;
use super::{StatementRestrictions, is_filter};
use crate::analysis::EvalContext;
use crate::analysis::terms::Term;
use crate::index::choice;
use crate::index::pattern::Pattern;
use crate::request::BoundValue;
use crate::rows::RowView;

use crate::schema::expression::comparable;
use crate::schema::{ColumnKind, Expression, IndexKind, Operand, Table};

/// The filter's expressions. Those on partition key and static columns hold for whole partitions, and are separate from the others.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub partition: Vec<Expression>,
    pub row: Vec<Expression>,
}

impl Filter {
    pub fn is_empty(&self) -> bool {
        self.partition.is_empty() && self.row.is_empty()
    }

    /// Returns all expressions, those on partitions first.
    pub fn expressions(&self) -> impl Iterator<Item = &Expression> {
        self.partition.iter().chain(&self.row)
    }

    /// Returns the indexes of the columns that the filter reads.
    pub fn columns(&self) -> impl Iterator<Item = usize> {
        self.expressions().map(|expression| expression.column)
    }

    /// Returns true if the partition's key and static row pass the filter.
    pub fn accepts_partition(&self, table: &Table, view: &dyn RowView) -> bool {
        self.partition
            .iter()
            .all(|expression| expression.accepts(&table.columns, view))
    }

    /// Returns true if the row passes the filter.
    pub fn accepts_row(&self, table: &Table, view: &dyn RowView) -> bool {
        self.row
            .iter()
            .all(|expression| expression.accepts(&table.columns, view))
    }

    fn push(&mut self, table: &Table, column: usize, operator: Operator, operand: Operand) {
        let kind = table.columns.get(column).map(|column| column.kind);
        let list = match kind {
            Some(ColumnKind::PartitionKey | ColumnKind::Static) => &mut self.partition,
            _ => &mut self.row,
        };
        list.push(Expression {
            column,
            operator,
            operand,
            analysis: None,
            skips_empty: false,
        });
    }

    /// Makes expressions compare as the storage-attached indexes do that answer them. If an ordinary index answers any expression,
    /// Cassandra uses that index, and filters by the text as it is.
    fn analyze(&mut self, table: &Table) {
        let is_ordinary = |expression: &Expression| {
            let column = table.columns.get(expression.column);
            let mut indexes = table.indexes.iter();
            column.is_some_and(|column| {
                indexes.any(|index| {
                    index.kind != IndexKind::Custom
                        && crate::index::kinds::supports(index, column, expression.operator)
                })
            })
        };
        if self.expressions().any(is_ordinary) {
            return;
        }
        for expression in self.partition.iter_mut().chain(&mut self.row) {
            analyze(expression, table);
        }
    }
}

/// Makes the expression compare as the index does that answers it.
fn analyze(expression: &mut Expression, table: &Table) {
    let Some(column) = table.columns.get(expression.column) else {
        return;
    };
    let mut indexes = table.indexes.iter();
    expression.skips_empty = indexes.clone().any(|index| {
        index.skips_empty(column) && crate::index::kinds::supports(index, column, expression.operator)
    });
    let analysis = indexes
        .find(|index| {
            crate::index::kinds::supports(index, column, expression.operator) && index.analysis().is_some()
        })
        .and_then(|index| index.analysis());
    let Some(analysis) = analysis else { return };
    match &mut expression.operand {
        Operand::Value(value) => *value = analysis.apply(value),
        Operand::Like(pattern) => *pattern = pattern.analyzed(analysis),
        Operand::List(_) | Operand::Entry { .. } => return,
    }
    expression.analysis = Some(analysis);
}

impl StatementRestrictions {
    /// Returns the filter for one request.
    ///
    /// # Errors
    /// `Unsupported null value for column v` and others, for bound values that can't be compared with.
    pub fn filter(&self, ctx: &EvalContext<'_>) -> Result<Filter, CqlError> {
        let mut filter = Filter::default();
        if self.filters_partition {
            self.add_set(&mut filter, &self.partition.set, ctx)?;
        }
        if self.filters_clustering {
            let mut position = self.table.partition_key_count;
            for restriction in self.clustering.iter() {
                if is_filter(restriction, position)
                    || choice::has_supporting_index(&self.table, &restriction.index_use())
                {
                    add_restriction(&mut filter, &self.table, restriction, ctx)?;
                } else if !restriction.is_slice() {
                    position = restriction.last_column() + 1;
                }
            }
        }
        self.add_set(&mut filter, &self.regular, ctx)?;
        if self.uses_index {
            filter.analyze(&self.table);
        }
        Ok(filter)
    }

    fn add_set(
        &self,
        filter: &mut Filter,
        set: &RestrictionSet,
        ctx: &EvalContext<'_>,
    ) -> Result<(), CqlError> {
        set.iter()
            .try_for_each(|restriction| add_restriction(filter, &self.table, restriction, ctx))
    }
}

pub(crate) fn add_restriction(
    filter: &mut Filter,
    table: &Table,
    restriction: &Restriction,
    ctx: &EvalContext<'_>,
) -> Result<(), CqlError> {
    let column = restriction.first_column();
    match &restriction.test {
        Test::Eq(tuple) => {
            let bound = bind_for_filter(table, &restriction.columns, tuple, ctx)?;
            for (place, value) in restriction.columns.iter().zip(bound) {
                let value = require_value(value, table, *place)?;
                filter.push(table, *place, Operator::Eq, Operand::Value(value));
            }
        }
        Test::In(_) if restriction.columns.len() > 1 => {
            return Err(CqlError::invalid("Multicolumn IN filters are not supported"));
        }
        Test::In(list) => {
            let values = bind_list(table, restriction, list, ctx)?;
            filter.push(table, column, Operator::In, Operand::List(values));
        }
        Test::Slice(_) if restriction.is_multi => {
            return Err(CqlError::invalid(
                "Multi-column slice restrictions cannot be used for filtering.",
            ));
        }
        Test::Slice(slice) => add_slice(filter, table, restriction, slice, ctx)?,
        Test::Contains(contains) => add_contains(filter, table, column, contains, ctx)?,
        Test::Like(term) => {
            // As in Cassandra, an unset pattern is empty.
            let value = match term.bind(ctx)? {
                BoundValue::Unset => Some(Bytes::new()),
                _ => bind(term, "", table, column, ctx)?,
            };
            let value = require_value(value, table, column)?;
            let pattern = match choice::has_supporting_index(table, &restriction.index_use()) {
                true => {
                    let pattern = Pattern::of(&value)?;
                    choice::check_like(table, column, &pattern)?;
                    pattern
                }
                false => Pattern::unindexed(&value)?,
            };
            filter.push(table, column, Operator::Like, Operand::Like(pattern));
        }
        Test::IsNotNull => {}
    }
    Ok(())
}

/// Returns the values that one column may have. As in Cassandra, an unset value is empty, and the values after a null are ignored.
fn bind_list(
    table: &Table,
    restriction: &Restriction,
    list: &InList,
    ctx: &EvalContext<'_>,
) -> Result<Vec<Bytes>, CqlError> {
    let bound: Vec<Option<Bytes>> = match list {
        InList::Values(_) | InList::Markers(_) | InList::MarkerTuples(_) => {
            let mut bound = Vec::new();
            for tuple in list.values() {
                match &*tuple {
                    Tuple::Value(term) if matches!(term.bind(ctx)?, BoundValue::Unset) => {
                        bound.push(Some(Bytes::new()));
                    }
                    _ => bound.push(
                        tuple
                            .bind(table, &restriction.columns, ctx)?
                            .into_iter()
                            .next()
                            .flatten(),
                    ),
                }
            }
            bound
        }
        InList::Marker { .. } => {
            let tuples = list
                .bind(table, &restriction.columns, restriction.is_multi, ctx)?
                .into_iter();
            tuples.map(|tuple| tuple.into_iter().next().flatten()).collect()
        }
    };
    Ok(bound.into_iter().map_while(|value| value).collect())
}

/// Binds a tuple. An unset value has the error of filters.
fn bind_for_filter(
    table: &Table,
    columns: &[usize],
    tuple: &Tuple,
    ctx: &EvalContext<'_>,
) -> Result<BoundTuple, CqlError> {
    match (tuple, columns) {
        (Tuple::Value(term), [place]) => Ok(vec![bind(term, "", table, *place, ctx)?]),
        _ => tuple.bind(table, columns, ctx),
    }
}

fn bind(
    term: &Term,
    what: &str,
    table: &Table,
    column: usize,
    ctx: &EvalContext<'_>,
) -> Result<Option<Bytes>, CqlError> {
    match term.bind(ctx)? {
        BoundValue::Set(value) => Ok(Some(value)),
        BoundValue::Null => Err(CqlError::invalid(format!(
            "Unsupported null {what}value for column {}",
            column_name(table, column)
        ))),
        BoundValue::Unset => Err(CqlError::invalid(format!(
            "Unsupported unset {what}value for column {}",
            column_name(table, column)
        ))),
    }
}

fn require_value(value: Option<Bytes>, table: &Table, column: usize) -> Result<Bytes, CqlError> {
    value.ok_or_else(|| {
        CqlError::invalid(format!(
            "Unsupported null value for column {}",
            column_name(table, column)
        ))
    })
}

fn add_slice(
    filter: &mut Filter,
    table: &Table,
    restriction: &Restriction,
    slice: &Slice,
    ctx: &EvalContext<'_>,
) -> Result<(), CqlError> {
    let column = restriction.first_column();
    add_excluded(filter, table, slice, ctx)?;
    if let (Some(first), Some(second), true) = (&slice.start, &slice.end, slice.is_between) {
        return add_between(filter, table, restriction, [first, second], ctx);
    }
    let mut add =
        |bound: &Option<SliceBound>, strict: Operator, inclusive: Operator| -> Result<(), CqlError> {
            let Some(bound) = bound else { return Ok(()) };
            let tuple = bind_for_filter(table, &restriction.columns, &bound.tuple, ctx)?;
            let value = require_value(tuple.into_iter().next().flatten(), table, column)?;
            let operator = if bound.is_inclusive { inclusive } else { strict };
            filter.push(table, column, operator, Operand::Value(value));
            Ok(())
        };
    add(&slice.start, Operator::Gt, Operator::Gte)?;
    add(&slice.end, Operator::Lt, Operator::Lte)
}

/// Adds the tests of NOT IN.
fn add_excluded(
    filter: &mut Filter,
    table: &Table,
    slice: &Slice,
    ctx: &EvalContext<'_>,
) -> Result<(), CqlError> {
    for exclusion in &slice.excluded {
        let values = exclusion.bind(table, ctx)?.into_iter().flatten().collect();
        let column = exclusion.columns.first().copied().unwrap_or_default();
        filter.push(table, column, Operator::NotIn, Operand::List(values));
    }
    Ok(())
}

/// Adds the tests of BETWEEN, whose bounds may be in any order.
fn add_between(
    filter: &mut Filter,
    table: &Table,
    restriction: &Restriction,
    bounds: [&SliceBound; 2],
    ctx: &EvalContext<'_>,
) -> Result<(), CqlError> {
    let place = restriction.first_column();
    let Some(column) = table.columns.get(place) else {
        return Ok(());
    };
    let [first, second] = bounds.map(|bound| {
        let tuple = bound.tuple.bind(table, &restriction.columns, ctx)?;
        let values = complete(tuple, table, &restriction.columns, restriction.is_multi)?;
        Ok(values.into_iter().next().unwrap_or_default())
    });
    let (mut low, mut high) = (first?, second?);
    if value::compare(comparable(&column.ty), &low, &high).is_gt() {
        std::mem::swap(&mut low, &mut high);
    }
    filter.push(table, place, Operator::Gte, Operand::Value(low));
    filter.push(table, place, Operator::Lte, Operand::Value(high));
    Ok(())
}

fn add_contains(
    filter: &mut Filter,
    table: &Table,
    column: usize,
    contains: &Contains,
    ctx: &EvalContext<'_>,
) -> Result<(), CqlError> {
    let value_of = |term: &Term, what: &str| {
        bind(term, what, table, column, ctx).and_then(|value| require_value(value, table, column))
    };
    let mut found = Vec::new();
    for term in &contains.values {
        found.push((Operator::Contains, Operand::Value(value_of(term, "")?)));
    }
    for term in &contains.keys {
        found.push((Operator::ContainsKey, Operand::Value(value_of(term, "")?)));
    }
    for (terms, operator) in [
        (&contains.absent_values, Operator::NotContains),
        (&contains.absent_keys, Operator::NotContainsKey),
    ] {
        for term in terms {
            let tuple = vec![match term.bind(ctx)? {
                BoundValue::Set(value) => Some(value),
                BoundValue::Null => None,
                BoundValue::Unset => return Err(unset_column(table, &[column])),
            }];
            let value = complete(tuple, table, &[column], false)?.into_iter().next();
            found.push((operator, Operand::Value(value.unwrap_or_default())));
        }
    }
    for (key, term) in &contains.entries {
        let key = match key.bind(ctx)? {
            BoundValue::Set(key) => key,
            BoundValue::Null => return Err(unsupported("null map key", table, column)),
            BoundValue::Unset => return Err(unsupported("unset map key", table, column)),
        };
        let value = value_of(term, "map ")?;
        found.push((Operator::Eq, Operand::Entry { key, value }));
    }
    for (operator, operand) in found {
        filter.push(table, column, operator, operand);
    }
    Ok(())
}

fn unsupported(what: &str, table: &Table, column: usize) -> CqlError {
    CqlError::invalid(format!(
        "Unsupported {what} for column {}",
        column_name(table, column)
    ))
}
