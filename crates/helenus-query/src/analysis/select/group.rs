//! GROUP BY: columns of the primary key in order, with or without a function of a clustering column at the end (Cassandra's
//! `AggregationSpecification` and `GroupMaker`).

use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::ast;
use helenus_cql::error::CqlError;

use crate::analysis::restrictions::{StatementRestrictions, require_column};
use crate::analysis::selection::{Selection, SelectionOptions};
use crate::analysis::{EvalContext, PlanContext};
use crate::response::RowsBuilder;
use crate::rows::RowView;
use crate::schema::{ColumnKind, Table};

/// The parts that define a group: the partition, the first clustering columns, and the value of a function.
#[derive(Debug)]
pub(crate) struct Grouping {
    /// Number of clustering columns. With a function, the last of them is its argument.
    pub(super) prefix_len: usize,
    pub(super) function: Option<Selection>,
}

const DECLARED_ORDER: &str =
    "Group by currently only support groups of columns following their declared order in the PRIMARY KEY";

impl Grouping {
    pub fn plan(
        ctx: &mut PlanContext<'_>,
        table: &Arc<Table>,
        restrictions: &StatementRestrictions,
        group_by: &[ast::Selector],
        is_distinct: bool,
    ) -> Result<Grouping, CqlError> {
        let key_len = table.partition_key_count + table.clustering_count;
        let mut function = None;
        let mut next = 0;
        let mut prefix_len = 0;
        for selector in group_by {
            let place = match selector {
                ast::Selector::Column(name) => plain_column(table, name, function.is_some())?,
                call => {
                    let (selection, place) = plan_function(ctx, table, call)?;
                    function = Some(selection);
                    place
                }
            };
            loop {
                if next >= key_len {
                    return Err(CqlError::invalid(DECLARED_ORDER));
                }
                let this = next;
                next += 1;
                prefix_len += usize::from(this >= table.partition_key_count);
                if this == place {
                    break;
                }
                if !restrictions.is_restricted_by_eq(this) {
                    return Err(CqlError::invalid(DECLARED_ORDER));
                }
            }
        }
        if next < table.partition_key_count {
            return Err(CqlError::invalid(
                "Group by is not supported on only a part of the partition key",
            ));
        }
        if prefix_len > 0 && is_distinct {
            return Err(CqlError::invalid(
                "Grouping on clustering columns is not allowed for SELECT DISTINCT queries",
            ));
        }
        if let Some(function) = &function {
            function.validate_for_group_by()?;
        }
        Ok(Grouping { prefix_len, function })
    }

    /// Returns the separator of groups for one execution.
    pub fn maker<'a>(&'a self, ctx: EvalContext<'a>) -> GroupMaker<'a> {
        GroupMaker {
            grouping: self,
            ctx,
            last: None,
        }
    }
}

fn plain_column(table: &Table, name: &ast::Ident, after_function: bool) -> Result<usize, CqlError> {
    let (place, column) = require_column(table, name)?;
    if !column.is_primary_key() {
        return Err(CqlError::invalid(format!(
            "Group by is currently only supported on the columns of the PRIMARY KEY, got {}",
            column.name
        )));
    }
    if after_function {
        return Err(CqlError::invalid(
            "Functions are only supported on the last element of the GROUP BY clause",
        ));
    }
    Ok(place)
}

fn plan_function(
    ctx: &mut PlanContext<'_>,
    table: &Arc<Table>,
    call: &ast::Selector,
) -> Result<(Selection, usize), CqlError> {
    let item = ast::SelectItem {
        selector: call.clone(),
        alias: None,
    };
    // Rows are grouped by their stored values, without masks.
    let options = SelectionOptions::default();
    let selection = ctx.unmasked(|ctx| Selection::new(ctx, table, &[item], options))?;
    if selection.is_aggregate() {
        let name = match call {
            ast::Selector::Function { name, .. } => format!("system.{}", name.name),
            _ => "system.count".to_owned(),
        };
        return Err(CqlError::invalid(format!(
            "Aggregate functions are not supported within the GROUP BY clause, got: {name}"
        )));
    }
    let mut columns = selection.columns().to_vec();
    columns.dedup();
    let place = match columns.as_slice() {
        [] => {
            return Err(CqlError::invalid(
                "GROUP BY functions must have one clustering column name as parameter",
            ));
        }
        [place] => *place,
        several => {
            let names = several
                .iter()
                .filter_map(|place| table.columns.get(*place))
                .map(|column| column.cql_name());
            return Err(CqlError::invalid(format!(
                "GROUP BY functions accept only one clustering column as parameter, got: {}",
                names.collect::<Vec<_>>().join(",")
            )));
        }
    };
    match table.columns.get(place) {
        Some(column) if column.kind == ColumnKind::Clustering => Ok((selection, place)),
        column => Err(CqlError::invalid(format!(
            "Group by functions are only supported on clustering columns, got {}",
            column.map_or("", |column| column.name.as_str())
        ))),
    }
}

/// Finds the boundaries between groups.
pub(crate) struct GroupMaker<'a> {
    grouping: &'a Grouping,
    ctx: EvalContext<'a>,
    last: Option<GroupKey>,
}

/// The values that the rows of a group have in common.
#[derive(PartialEq, Eq)]
struct GroupKey {
    partition: Bytes,
    /// First clustering values. `None` for static content without a row.
    prefix: Option<Vec<Bytes>>,
    function: Option<Bytes>,
}

impl GroupMaker<'_> {
    /// Returns true if the row belongs to another group than the previous row.
    pub fn is_new(
        &mut self,
        partition: &Bytes,
        clustering: &[Bytes],
        row: &dyn RowView,
    ) -> Result<bool, CqlError> {
        let fixed = self.grouping.prefix_len - usize::from(self.grouping.function.is_some());
        let key = GroupKey {
            partition: partition.clone(),
            // The prefix is shorter if the row of a compact table has no values for the last clustering columns.
            prefix: clustering
                .get(..fixed.min(clustering.len()))
                .map(<[Bytes]>::to_vec)
                .filter(|_| !clustering.is_empty()),
            function: match &self.grouping.function {
                Some(function) => Some(self.compute(function, row)?),
                None => None,
            },
        };
        let is_new = self.last.as_ref() != Some(&key);
        self.last = Some(key);
        Ok(is_new)
    }

    fn compute(&self, function: &Selection, row: &dyn RowView) -> Result<Bytes, CqlError> {
        let mut out = RowsBuilder::new(1);
        match function.plain_columns() {
            Some(columns) => columns
                .iter()
                .for_each(|place| out.push(row.value(*place).as_deref())),
            None => {
                let mut collector = function.collector(self.ctx)?;
                collector.add(row)?;
                collector.finish(&mut out)?;
            }
        }
        let first = out.finish().iter().next().and_then(|row| row.into_iter().next());
        Ok(first.flatten().unwrap_or_default())
    }
}
