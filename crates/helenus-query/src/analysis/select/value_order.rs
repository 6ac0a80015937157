//! ORDER BY a column with an index in the order of its values. The index is read from one end. Cassandra has no such order.

use std::sync::Arc;

use helenus_cql::ast;
use helenus_cql::error::CqlError;

use crate::analysis::restrictions::StatementRestrictions;
use crate::analysis::restrictions::restriction::Restriction;
use crate::index::choice::is_supported_by;
use crate::schema::{Column, Index, IndexTargetKind, Table};

/// The column that rows are ordered by, and the index that gives the order.
#[derive(Debug)]
pub(crate) struct ValueOrdering {
    pub column: usize,
    pub is_descending: bool,
    pub index: Arc<Index>,
}

impl ValueOrdering {
    /// Returns the ordering of a statement that Cassandra refuses, if an index gives the order.
    ///
    /// # Errors
    /// Cassandra's error if no index gives the order, with a hint if only the LIMIT is missing. An error if the index is not complete yet.
    pub fn plan(
        table: &Table,
        order_by: &[(usize, bool)],
        statement: &ast::Select,
        refusal: CqlError,
    ) -> Result<ValueOrdering, CqlError> {
        let [(place, is_descending)] = order_by else {
            return Err(refusal);
        };
        let Some(column) = table.columns.get(*place) else {
            return Err(refusal);
        };
        let in_order = |index: &&Arc<Index>| holds_in_order(index, column);
        let mut indexes: Vec<&Arc<Index>> = table.indexes.iter().filter(in_order).collect();
        indexes.sort_by_key(|index| !index.is_complete);
        let Some(index) = indexes.first() else {
            return Err(refusal);
        };
        if !index.is_complete {
            return Err(CqlError::invalid(format!(
                "ORDER BY {} reads the index {}, which is still being built",
                column.name, index.name
            )));
        }
        if statement.limit.is_none() {
            return Err(CqlError::invalid(format!(
                "{refusal} With a LIMIT, ORDER BY {} reads the index {} in the order of the values.",
                column.name, index.name
            )));
        }
        Ok(ValueOrdering {
            column: *place,
            is_descending: *is_descending,
            index: Arc::clone(index),
        })
    }

    /// Returns true if index entries may lead to rows that the restrictions exclude. This is so if another column is restricted, or if the
    /// index does not serve a restriction.
    pub fn needs_filtering(&self, table: &Table, restrictions: &StatementRestrictions) -> bool {
        let is_other = |place: &usize| *place != self.column;
        let is_unserved =
            |restriction: &Restriction| !is_supported_by(&self.index, table, &restriction.index_use());
        restrictions.columns().iter().any(is_other) || self.restrictions(restrictions).any(is_unserved)
    }

    /// Returns the restrictions on the column.
    fn restrictions<'r>(
        &self,
        restrictions: &'r StatementRestrictions,
    ) -> impl Iterator<Item = &'r Restriction> {
        let column = self.column;
        let sets = [
            &restrictions.partition.set,
            &restrictions.clustering,
            &restrictions.regular,
        ];
        sets.into_iter()
            .flat_map(|set| set.iter())
            .filter(move |restriction| restriction.columns.contains(&column))
    }
}

/// Returns true if the index's entries are in the order of the column's unchanged values.
fn holds_in_order(index: &Index, column: &Column) -> bool {
    index.target.column == column.name
        && index.target.kind == IndexTargetKind::Simple
        && index.order.is_some()
        && index.analysis().is_none()
        && !index.has_posting_lists
}
