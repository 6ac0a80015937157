//! The meaning of a WHERE clause for a table: the partitions, their slices, the filters, and whether an index can help (Cassandra's
//! `StatementRestrictions`). Used by SELECT, UPDATE and DELETE.

mod bound_slice;
pub(crate) mod bounds;
pub(crate) mod check;
#[cfg(test)]
mod explain;
pub(crate) mod filter;
pub(crate) mod nearest;
pub(crate) mod packed_filter;
mod range_bounds;
pub(crate) mod relation;
pub mod restriction;
pub(crate) mod restriction_set;
pub(crate) mod token;
pub(crate) mod view_filter;

pub use filter::Filter;
pub use range_bounds::RangeBounds;
pub use relation::{relation_source, relation_text, require_column};

use std::fmt;
use std::sync::Arc;

use helenus_cql::ast::{Ident, Operator, QualifiedName, Relation};
use helenus_cql::error::CqlError;

use super::PlanContext;
use crate::index::choice::{self, IndexUse};
use crate::schema::names::is_virtual_keyspace;
use crate::schema::{ColumnKind, Table, TableKind, is_text};
use relation::{Typed, unindexed_like};
use restriction::{Restriction, Test};
use restriction_set::{PartitionRestrictions, RestrictionSet};

/// Cassandra's error for a statement that needs ALLOW FILTERING.
pub const REQUIRES_ALLOW_FILTERING: &str = "Cannot execute this query as it might involve data filtering and thus may have unpredictable performance. If you want to execute this query despite the performance unpredictability, use ALLOW FILTERING";

/// The kind of statement that the restrictions belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementKind {
    Insert,
    Update,
    Delete,
    Select,
}

impl fmt::Display for StatementKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StatementKind::Insert => "INSERT",
            StatementKind::Update => "UPDATE",
            StatementKind::Delete => "DELETE",
            StatementKind::Select => "SELECT",
        })
    }
}

impl StatementKind {
    fn is_select(self) -> bool {
        self == StatementKind::Select
    }

    fn allows_clustering_slices(self) -> bool {
        matches!(self, StatementKind::Select | StatementKind::Delete)
    }
}

/// Other parts of a statement that affect its restrictions.
#[derive(Clone, Copy, Debug, Default)]
pub struct RestrictionOptions {
    /// True if the statement selects or modifies only static columns (and partition key columns).
    pub is_static_only: bool,
    pub allow_filtering: bool,
    /// Column of `ORDER BY … ANN OF`, whose vector index is used. `None` without such an ordering.
    pub nearest: Option<usize>,
    /// Error of an invalid ANN ordering. `None` if the ordering is valid.
    pub nearest_mistake: Option<&'static str>,
}

/// The restrictions of a statement.
#[derive(Clone, Debug)]
pub struct StatementRestrictions {
    pub kind: StatementKind,
    pub table: Arc<Table>,
    pub partition: PartitionRestrictions,
    pub clustering: RestrictionSet,
    /// Restrictions on static and regular columns.
    pub regular: RestrictionSet,
    /// True if an index must be read.
    pub uses_index: bool,
    /// True if more than the partitions of given keys are read.
    pub is_key_range: bool,
    pub(crate) filters_partition: bool,
    pub(crate) filters_clustering: bool,
}

impl StatementRestrictions {
    /// Returns restrictions that restrict nothing.
    pub fn none(kind: StatementKind, table: &Arc<Table>) -> StatementRestrictions {
        StatementRestrictions {
            kind,
            table: table.clone(),
            partition: PartitionRestrictions::default(),
            clustering: RestrictionSet::default(),
            regular: RestrictionSet::default(),
            uses_index: false,
            is_key_range: false,
            filters_partition: false,
            filters_clustering: false,
        }
    }

    /// Types the relations and checks them together.
    ///
    /// # Errors
    /// Cassandra's, word by word.
    pub fn new(
        ctx: &mut PlanContext<'_>,
        kind: StatementKind,
        table: &Arc<Table>,
        relations: &[Relation],
        options: RestrictionOptions,
    ) -> Result<StatementRestrictions, CqlError> {
        let mut this = StatementRestrictions::none(kind, table);
        let mut custom: Vec<&QualifiedName> = Vec::new();
        for relation in relations {
            match relation {
                Relation::CustomIndex { index, .. } => custom.push(index),
                relation => this.add(ctx, relation, options)?,
            }
        }
        if let Some(mistake) = options.nearest_mistake {
            return Err(CqlError::invalid(mistake));
        }
        if let Some(place) = options.nearest {
            this.check_nearest_alone(place)?;
        }
        this.check_custom(&custom)?;
        this.analyze(options)?;
        Ok(this)
    }

    fn add(
        &mut self,
        ctx: &mut PlanContext<'_>,
        relation: &Relation,
        options: RestrictionOptions,
    ) -> Result<(), CqlError> {
        if let Relation::Column { operator, .. } = relation
            && matches!(
                operator,
                Operator::Contains | Operator::ContainsKey | Operator::NotContains | Operator::NotContainsKey
            )
            && matches!(self.kind, StatementKind::Update | StatementKind::Delete)
        {
            return Err(CqlError::invalid(format!(
                "Cannot use {} with {}",
                self.kind,
                operator.symbol()
            )));
        }
        if let Relation::IsNotNull { .. } = relation {
            return Err(CqlError::invalid(format!(
                "Unsupported restriction: {}",
                relation_text(relation)
            )));
        }
        let table = self.table.clone();
        let restriction = match relation::resolve(ctx, &table, relation)? {
            Typed::Token(token) => {
                let merged = match &self.partition.token {
                    Some(known) => known.merge(&token, &table)?,
                    None => token,
                };
                self.partition.token = Some(merged);
                return Ok(());
            }
            Typed::Columns(restriction) => restriction,
        };
        let has_index =
            || self.kind.is_select() && choice::has_supporting_index(&table, &restriction.index_use());
        if restriction.is_like() && !has_index() && !self.may_filter_like(&restriction, options) {
            return Err(unindexed_like(relation));
        }
        self.add_restriction(restriction, options)
    }

    /// Returns true if rows may be filtered by a LIKE that no index answers.
    fn may_filter_like(&self, restriction: &Restriction, options: RestrictionOptions) -> bool {
        let column = self.table.columns.get(restriction.first_column());
        self.kind.is_select() && options.allow_filtering && column.is_some_and(|column| is_text(&column.ty))
    }

    fn add_restriction(
        &mut self,
        restriction: Restriction,
        options: RestrictionOptions,
    ) -> Result<(), CqlError> {
        let table = self.table.clone();
        let kind = table
            .columns
            .get(restriction.first_column())
            .map(|column| column.kind);
        match kind {
            Some(ColumnKind::PartitionKey) => self.partition.set.add(restriction, &table),
            Some(ColumnKind::Clustering) => {
                let has_index =
                    self.kind.is_select() && choice::has_supporting_index(&table, &restriction.index_use());
                self.clustering
                    .add_clustering(restriction, &table, options.allow_filtering || has_index)
            }
            _ => self.regular.add(restriction, &table),
        }
    }

    /// Returns true if filtering needs ALLOW FILTERING. Virtual tables are small, and may be filtered without it.
    pub fn must_allow_filtering(&self) -> bool {
        !(self.table.kind == TableKind::Virtual && is_virtual_keyspace(&self.table.keyspace))
    }

    /// Returns true if a restriction on clustering columns can't be a slice and so must be a filter.
    pub(crate) fn clustering_needs_filtering(&self) -> bool {
        let mut position = self.table.partition_key_count;
        for restriction in self.clustering.iter() {
            if is_filter(restriction, position) {
                return true;
            }
            if !restriction.is_slice() {
                position = restriction.last_column() + 1;
            }
        }
        self.clustering.has_contains()
    }

    /// Returns true if the last clustering columns may be left without a value. This is so in writes to compact tables.
    pub fn may_name_prefix(&self) -> bool {
        self.table.compact.is_some() && !self.kind.allows_clustering_slices() && !self.clustering.is_empty()
    }

    /// Returns true unless every clustering column is fixed by = or IN.
    pub fn is_column_range(&self) -> bool {
        let columns = match self.table.is_static_compact() {
            true => 0,
            false => self.table.clustering_count,
        };
        self.clustering.len() < columns || !self.clustering.has_only_equality()
    }

    /// Returns true if = fixes the column. IN does not count.
    pub fn is_restricted_by_eq(&self, place: usize) -> bool {
        let table = &self.table;
        let Some(column) = table.columns.get(place) else {
            return false;
        };
        let set = match column.kind {
            ColumnKind::PartitionKey => return self.partition.is_eq(place, table),
            ColumnKind::Clustering => &self.clustering,
            ColumnKind::Static | ColumnKind::Regular => &self.regular,
        };
        set.get(place, table)
            .is_some_and(|restriction| matches!(restriction.test, Test::Eq(_)))
    }

    /// Returns the indexes of the restricted columns, including those of `token`.
    pub fn columns(&self) -> Vec<usize> {
        let sets = [&self.partition.set, &self.clustering, &self.regular];
        let mut places: Vec<usize> = sets.into_iter().flat_map(RestrictionSet::columns).collect();
        if self.partition.token.is_some() {
            places.extend(0..self.table.partition_key_count);
        }
        places.sort_unstable();
        places.dedup();
        places
    }

    /// Returns true if the partition key is given by an IN.
    pub fn key_is_in(&self) -> bool {
        self.partition.has_in(&self.table)
    }

    /// Returns true if a regular (not static) column is restricted.
    pub fn has_regular_column(&self) -> bool {
        let is_regular = |place: &usize| {
            self.table
                .columns
                .get(*place)
                .is_some_and(|column| column.kind == ColumnKind::Regular)
        };
        self.regular.columns().iter().any(is_regular)
    }

    /// Returns true if a partition that has only static content counts as a row.
    pub fn returns_static_alone(&self) -> bool {
        self.clustering.is_empty() && !self.has_regular_column() && !self.reads_index_of_rows()
    }

    /// Returns true if the statement reads an index that finds only rows.
    fn reads_index_of_rows(&self) -> bool {
        let mut on_static = self.regular.iter();
        self.uses_index
            && on_static.any(|restriction| choice::has_index_of_rows(&self.table, &restriction.index_use()))
    }

    /// Returns true if rows must be read that are not part of the result (`StatementRestrictions.needFiltering`).
    pub fn needs_filtering(&self) -> bool {
        let parts = self.filter_parts();
        if parts.is_empty() {
            return !self.clustering.is_empty();
        }
        let restrictions = parts.iter().flat_map(|set| set.iter());
        let wanted: Vec<IndexUse<'_>> = restrictions.map(Restriction::index_use).collect();
        if !choice::one_group_covers(&self.table, &wanted) {
            return true;
        }
        parts.iter().all(|set| set.is_empty()) && !self.clustering.is_empty()
    }

    /// Returns the sets of restrictions that are filters, in the order in which they are applied.
    pub(crate) fn filter_parts(&self) -> Vec<&RestrictionSet> {
        let mut parts = Vec::new();
        if self.filters_partition {
            parts.push(&self.partition.set);
        }
        if self.filters_clustering {
            parts.push(&self.clustering);
        }
        if !self.regular.is_empty() {
            parts.push(&self.regular);
        }
        parts
    }
}

/// Returns true if the restriction can't continue a slice that fixes the clustering columns before `position`.
pub(crate) fn is_filter(restriction: &Restriction, position: usize) -> bool {
    restriction.is_contains() || restriction.is_like() || restriction.first_column() != position
}

/// Returns the index of the column of a name, for statements other than SELECT.
pub fn existing_column(table: &Table, name: &Ident) -> Result<usize, CqlError> {
    require_column(table, name).map(|(place, _)| place)
}
