//! Planning of a SELECT (Cassandra's `SelectStatement.RawStatement.prepare`).

use std::sync::Arc;
use std::time::Duration;

use helenus_cql::ast;
use helenus_cql::error::CqlError;
use helenus_cql::types::CqlType;

use super::PointKey;
use super::group::Grouping;
use super::similarity::{AnnOrdering, BoundAnnOrdering};
use super::value_order::ValueOrdering;
use crate::analysis::PlanContext;
use crate::analysis::restrictions::{
    REQUIRES_ALLOW_FILTERING, RestrictionOptions, StatementKind, StatementRestrictions, require_column,
};
use crate::analysis::selection::{Selection, SelectionOptions, selects_static_only};
use crate::analysis::terms::Term;
use crate::response::{ColumnSpec, ResultMetadata};
use crate::schema::{ColumnKind, Table};

/// The way in which rows become result rows.
#[derive(Debug)]
pub(crate) enum Aggregation {
    /// Each row becomes one result row.
    None,
    /// All rows become one result row.
    Everything,
    Groups(Box<Grouping>),
}

/// A SELECT ready to run. The fields that every read of a row needs come first. With thousands of statements, no cache holds them all, and
/// each cache line that a request touches is fetched from memory.
#[derive(Debug)]
#[repr(C)]
pub struct SelectPlan {
    pub(crate) table: Arc<Table>,
    timeout: Option<Duration>,
    /// Primary key of the single row that is read, if only plain columns are selected. `None` for other reads.
    pub(crate) point: Option<PointKey>,
    pub(crate) limit: Option<Term>,
    pub(crate) per_partition_limit: Option<Term>,
    /// True if the static row is needed, whatever other rows there are.
    pub(crate) needs_static: bool,
    pub(crate) is_distinct: bool,
    /// True if the rows of a partition are read from the last to the first.
    pub(crate) is_reversed: bool,
    pub(crate) selection: Selection,
    pub(crate) aggregation: Aggregation,
    /// Columns by which rows of several partitions are sorted after they are read.
    pub(crate) sort_columns: Vec<usize>,
    /// True if the text of `SELECT JSON *` is sorted, because Cassandra no longer finds the columns there.
    pub(crate) sorts_json: bool,
    /// The ordering of `ORDER BY … ANN OF`.
    pub(crate) nearest: Option<AnnOrdering>,
    /// The ordering of ORDER BY a column by its index.
    pub(crate) by_value: Option<ValueOrdering>,
    /// True if the statement has ALLOW FILTERING.
    pub(crate) allows_filtering: bool,
    pub(crate) restrictions: StatementRestrictions,
}

impl SelectPlan {
    /// Returns the timeout that the statement sets. `None` if it sets no timeout.
    pub fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// Returns true if the statement names no partitions, or also reads index entries of other partitions.
    pub fn reads_range(&self) -> bool {
        self.restrictions.is_key_range || self.by_value.is_some()
    }

    /// Returns true if a partition that has only static content counts as a row.
    pub(crate) fn returns_static_alone(&self) -> bool {
        let is_of_row = |ordering: &ValueOrdering| {
            let column = self.table.columns.get(ordering.column);
            column.is_some_and(|column| matches!(column.kind, ColumnKind::Clustering | ColumnKind::Regular))
        };
        self.restrictions.returns_static_alone() && !self.by_value.as_ref().is_some_and(is_of_row)
    }

    /// Returns true if a selected column has a mask.
    pub fn selects_masked(&self) -> bool {
        let columns = self.selection.columns().iter();
        let mut columns = columns.filter_map(|place| self.table.columns.get(*place));
        columns.any(|column| column.mask.is_some())
    }

    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    pub fn metadata(&self) -> &Arc<ResultMetadata> {
        self.selection.metadata()
    }
}

/// Plans a SELECT.
pub fn plan(ctx: &mut PlanContext<'_>, statement: &ast::Select) -> Result<SelectPlan, CqlError> {
    let table = ctx.table(&statement.table)?.clone();
    let is_static_only = selects_static_only(ctx, &table, &statement.items)?;
    let (order_by, nearest_orders) = resolve_order(ctx, &table, &statement.order_by)?;
    let nearest_mistake = BoundAnnOrdering::mistake(&table, &nearest_orders, &statement.order_by);
    let nearest = AnnOrdering::plan(&table, nearest_orders);
    let restrictions = StatementRestrictions::new(
        ctx,
        StatementKind::Select,
        &table,
        &statement.relations,
        RestrictionOptions {
            is_static_only,
            allow_filtering: statement.allow_filtering,
            nearest: nearest.as_ref().map(|nearest| nearest.column),
            nearest_mistake,
        },
    )?;
    let options = SelectionOptions {
        is_json: statement.json,
        is_grouped: !statement.group_by.is_empty(),
    };
    let selection = Selection::new(ctx, &table, &statement.items, options)?;
    let mut sort_columns: Vec<usize> = match restrictions.key_is_in() && nearest.is_none() {
        true => order_by.iter().map(|(place, _)| *place).collect(),
        false => Vec::new(),
    };
    if statement.distinct {
        if statement.per_partition_limit.is_some() {
            return Err(CqlError::invalid(
                "PER PARTITION LIMIT is not allowed with SELECT DISTINCT queries",
            ));
        }
        check_distinct(
            &table,
            &selection,
            &restrictions,
            nearest.is_some(),
            &sort_columns,
        )?;
    }
    let aggregation = plan_aggregation(ctx, &table, &selection, &restrictions, statement)?;
    if matches!(aggregation, Aggregation::Everything) && statement.per_partition_limit.is_some() {
        return Err(CqlError::invalid(
            "PER PARTITION LIMIT is not allowed with aggregate queries.",
        ));
    }
    let mut is_reversed = false;
    let mut by_value = None;
    if !order_by.is_empty() && nearest.is_none() {
        match clustering_order(&table, &order_by, &restrictions) {
            Ok(direction) => is_reversed = direction,
            Err(refusal) => {
                by_value = Some(plan_value_order(
                    &table,
                    &order_by,
                    &aggregation,
                    statement,
                    refusal,
                )?);
                sort_columns.clear();
            }
        }
    }
    check_needs_filtering(statement, &restrictions, nearest.is_some())?;
    check_value_order_filtering(statement, &restrictions, by_value.as_ref())?;
    let limit = plan_limit(ctx, &table, statement.limit.as_ref(), "[limit]")?;
    let per_partition_limit = plan_limit(
        ctx,
        &table,
        statement.per_partition_limit.as_ref(),
        "[per_partition_limit]",
    )?;
    let needs_static = needs_static(&table, &selection, &restrictions, by_value.as_ref());
    let is_point = by_value.is_none() && is_point_read(&table, &selection, &restrictions, statement);
    let point = match is_point {
        true => PointKey::of(&restrictions),
        false => None,
    };
    Ok(SelectPlan {
        table,
        selection,
        restrictions,
        aggregation,
        allows_filtering: statement.allow_filtering,
        is_distinct: statement.distinct,
        is_reversed,
        sorts_json: statement.json && statement.items.is_empty(),
        sort_columns,
        nearest,
        by_value,
        limit,
        per_partition_limit,
        needs_static,
        point,
        timeout: statement.timeout,
    })
}

/// Returns the columns and directions of ORDER BY, and the ANN orderings. A column that is named twice counts once, with its last
/// direction.
fn resolve_order(
    ctx: &mut PlanContext<'_>,
    table: &Table,
    order_by: &[ast::Ordering],
) -> Result<(Vec<(usize, bool)>, Vec<BoundAnnOrdering>), CqlError> {
    let mut resolved: Vec<(usize, bool)> = Vec::with_capacity(order_by.len());
    let mut nearest = Vec::new();
    for ordering in order_by {
        let (place, _) = require_column(table, &ordering.column)?;
        nearest.extend(BoundAnnOrdering::resolve(ctx, table, ordering)?);
        match resolved.iter_mut().find(|(known, _)| *known == place) {
            Some(known) => known.1 = ordering.descending,
            None => resolved.push((place, ordering.descending)),
        }
    }
    Ok((resolved, nearest))
}

fn check_distinct(
    table: &Table,
    selection: &Selection,
    restrictions: &StatementRestrictions,
    is_nearest: bool,
    sort_columns: &[usize],
) -> Result<(), CqlError> {
    if is_nearest || !restrictions.clustering.is_empty() || restrictions.has_regular_column() {
        return Err(CqlError::invalid(
            "SELECT DISTINCT with WHERE clause only supports restriction by partition key and/or static columns.",
        ));
    }
    let columns = selection.columns();
    // The columns by which rows of several partitions are sorted are selected too.
    let read = columns.iter().chain(sort_columns);
    for column in read.filter_map(|place| table.columns.get(*place)) {
        if !matches!(column.kind, ColumnKind::PartitionKey | ColumnKind::Static) {
            return Err(CqlError::invalid(format!(
                "SELECT DISTINCT queries must only request partition key columns and/or static columns (not {})",
                column.name
            )));
        }
    }
    let missing = (0..table.partition_key_count).find(|place| !columns.contains(place));
    if let (true, Some(column)) = (
        restrictions.is_key_range,
        missing.and_then(|place| table.columns.get(place)),
    ) {
        return Err(CqlError::invalid(format!(
            "SELECT DISTINCT queries must request all the partition key columns (missing {})",
            column.name
        )));
    }
    Ok(())
}

fn plan_aggregation(
    ctx: &mut PlanContext<'_>,
    table: &Arc<Table>,
    selection: &Selection,
    restrictions: &StatementRestrictions,
    statement: &ast::Select,
) -> Result<Aggregation, CqlError> {
    if !statement.group_by.is_empty() {
        let grouping = Grouping::plan(ctx, table, restrictions, &statement.group_by, statement.distinct)?;
        return Ok(Aggregation::Groups(Box::new(grouping)));
    }
    Ok(if selection.is_aggregate() {
        Aggregation::Everything
    } else {
        Aggregation::None
    })
}

/// Plans an order by an index. Cassandra has no such order. The statement must return rows one by one.
fn plan_value_order(
    table: &Table,
    order_by: &[(usize, bool)],
    aggregation: &Aggregation,
    statement: &ast::Select,
    refusal: CqlError,
) -> Result<ValueOrdering, CqlError> {
    let is_plain = matches!(aggregation, Aggregation::None)
        && !statement.distinct
        && statement.per_partition_limit.is_none();
    match is_plain {
        true => ValueOrdering::plan(table, order_by, statement, refusal),
        false => Err(refusal),
    }
}

fn check_value_order_filtering(
    statement: &ast::Select,
    restrictions: &StatementRestrictions,
    by_value: Option<&ValueOrdering>,
) -> Result<(), CqlError> {
    let needs_filtering =
        |ordering: &ValueOrdering| ordering.needs_filtering(&restrictions.table, restrictions);
    match !statement.allow_filtering && by_value.is_some_and(needs_filtering) {
        true => Err(CqlError::invalid(REQUIRES_ALLOW_FILTERING)),
        false => Ok(()),
    }
}

/// Returns true if the clustering order must be read backwards.
///
/// # Errors
/// Cassandra's, if the statement can't be answered in that order.
fn clustering_order(
    table: &Table,
    order_by: &[(usize, bool)],
    restrictions: &StatementRestrictions,
) -> Result<bool, CqlError> {
    check_order_allowed(restrictions)?;
    order_direction(table, order_by, restrictions)
}

fn check_order_allowed(restrictions: &StatementRestrictions) -> Result<(), CqlError> {
    if restrictions.uses_index {
        return Err(CqlError::invalid(
            "ORDER BY with 2ndary indexes is not supported, except for ANN queries.",
        ));
    }
    if restrictions.is_key_range {
        return Err(CqlError::invalid(
            "ORDER BY is only supported when the partition key is restricted by an EQ or an IN.",
        ));
    }
    Ok(())
}

/// Returns true if the clustering order must be read backwards. Any order but the clustering order and its reverse is refused.
fn order_direction(
    table: &Table,
    order_by: &[(usize, bool)],
    restrictions: &StatementRestrictions,
) -> Result<bool, CqlError> {
    let mut next = table.partition_key_count;
    let mut reversed: Option<bool> = None;
    let mut is_mixed = false;
    for (place, descending) in order_by {
        let Some(column) = table.columns.get(*place) else {
            continue;
        };
        if column.kind != ColumnKind::Clustering {
            return Err(CqlError::invalid(format!(
                "Order by is currently only supported on the clustered columns of the PRIMARY KEY, got {}",
                column.name
            )));
        }
        while next != *place {
            if next > *place || !restrictions.is_restricted_by_eq(next) {
                return Err(CqlError::invalid(
                    "Order by currently only supports the ordering of columns following their declared order in the PRIMARY KEY",
                ));
            }
            next += 1;
        }
        next += 1;
        let this = *descending != (column.order == helenus_row::Order::Desc);
        is_mixed |= reversed.is_some_and(|reversed| reversed != this);
        reversed.get_or_insert(this);
    }
    if is_mixed {
        return Err(CqlError::invalid("Unsupported order by relation"));
    }
    Ok(reversed.unwrap_or(false))
}

fn check_needs_filtering(
    statement: &ast::Select,
    restrictions: &StatementRestrictions,
    is_nearest: bool,
) -> Result<(), CqlError> {
    let is_wide = restrictions.is_key_range || restrictions.uses_index;
    if !statement.allow_filtering
        && is_wide
        && restrictions.must_allow_filtering()
        && restrictions.needs_filtering()
        && !is_nearest
    {
        return Err(CqlError::invalid(REQUIRES_ALLOW_FILTERING));
    }
    Ok(())
}

fn plan_limit(
    ctx: &mut PlanContext<'_>,
    table: &Table,
    limit: Option<&ast::Term>,
    name: &str,
) -> Result<Option<Term>, CqlError> {
    let Some(limit) = limit else { return Ok(None) };
    let spec = ColumnSpec::new(table.keyspace.as_str(), table.name.as_str(), name, CqlType::INT);
    Term::prepare(ctx, limit, &spec).map(Some)
}

fn needs_static(
    table: &Table,
    selection: &Selection,
    restrictions: &StatementRestrictions,
    by_value: Option<&ValueOrdering>,
) -> bool {
    let is_static = |place: &usize| table.columns.get(*place).is_some_and(|column| column.is_static());
    table.has_static()
        && (selection.columns().iter().any(is_static)
            || restrictions.regular.columns().iter().any(is_static)
            || by_value.is_some_and(|ordering| is_static(&ordering.column)))
}

fn is_point_read(
    table: &Table,
    selection: &Selection,
    restrictions: &StatementRestrictions,
    statement: &ast::Select,
) -> bool {
    selection.plain_columns().is_some()
        && table.kind != crate::schema::TableKind::Virtual
        && !statement.distinct
        && !statement.json
        && statement.group_by.is_empty()
        // The conditions of an ANN ordering are checked where rows are sorted.
        && statement.order_by.iter().all(|ordering| ordering.ann_of.is_none())
        && !restrictions.is_key_range
        && !restrictions.uses_index
        && restrictions.partition.token.is_none()
        && restrictions.filter_parts().is_empty()
        && !restrictions.is_column_range()
        && !restrictions.partition.set.has_in
        && !restrictions.clustering.has_in
}
