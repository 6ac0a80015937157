//! Checks of a statement's restrictions together: first each part of the primary key, then the other columns.

use helenus_cql::ast::QualifiedName;
use helenus_cql::error::CqlError;
use helenus_cql::types::CqlType;

use super::restriction::column_name;
use super::restriction_set::RestrictionSet;
use super::{REQUIRES_ALLOW_FILTERING, RestrictionOptions, StatementRestrictions};
use crate::index::choice;
use crate::schema::IndexKind;

impl StatementRestrictions {
    pub(crate) fn analyze(&mut self, options: RestrictionOptions) -> Result<(), CqlError> {
        let table = self.table.clone();
        let has_index = |set: &RestrictionSet| {
            set.iter()
                .any(|one| choice::has_supporting_index(&table, &one.index_use()))
        };
        let is_select = self.kind.is_select();
        let has_clustering_index = is_select && has_index(&self.clustering);
        let has_queriable_index =
            is_select && (has_clustering_index || has_index(&self.partition.set) || has_index(&self.regular));
        // Restrictions next to an ANN ordering are checked at the end.
        let is_nearest_indexed = options.nearest.is_some_and(|place| self.is_indexed(place));
        let may_filter = options.allow_filtering || is_nearest_indexed;
        self.check_partition(has_queriable_index, may_filter)?;
        self.filters_partition = self.uses_index || self.partition.needs_filtering(&table);
        if options.is_static_only && !self.clustering.is_empty() {
            return Err(CqlError::invalid(if is_select {
                "Cannot restrict clustering columns when selecting only static columns".to_owned()
            } else {
                format!(
                    "Invalid restrictions on clustering columns since the {} statement modifies only static columns",
                    self.kind
                )
            }));
        }
        self.check_clustering(has_queriable_index, options)?;
        self.uses_index |= self.is_key_range && has_clustering_index;
        self.filters_clustering = self.uses_index || self.clustering_needs_filtering();
        if options.nearest.is_some() && !is_nearest_indexed {
            return Err(CqlError::invalid(
                "ANN ordering by vector requires the column to be indexed",
            ));
        }
        self.check_regular(has_queriable_index, options)?;
        if (self.uses_index || options.nearest.is_some()) && self.partition.has_in(&table) {
            return Err(CqlError::invalid(
                "Select on indexed columns and with IN clause for the PRIMARY KEY are not supported",
            ));
        }
        match options.nearest {
            Some(_) => self.check_nearest(options.allow_filtering),
            None => Ok(()),
        }
    }

    fn check_partition(&mut self, has_queriable_index: bool, allow_filtering: bool) -> Result<(), CqlError> {
        let (table, partition) = (&self.table, &self.partition);
        if !self.kind.is_select() {
            if partition.is_on_token(table) {
                return Err(CqlError::invalid(format!(
                    "The token function cannot be used in WHERE clauses for {} statements",
                    self.kind
                )));
            }
            if partition.has_unrestricted(table) {
                return Err(CqlError::invalid(format!(
                    "Some partition key parts are missing: {}",
                    partition.unrestricted_names(table)
                )));
            }
            if partition.has_slice() {
                return Err(CqlError::invalid(format!(
                    "Only EQ and IN relation are supported on the partition key (unless you use the token() function) for {} statements",
                    self.kind
                )));
            }
            return Ok(());
        }
        let needs_filtering = partition.needs_filtering(table);
        self.is_key_range = partition.is_on_token(table);
        if partition.is_empty() {
            self.is_key_range = true;
            self.uses_index = has_queriable_index;
        }
        if needs_filtering {
            if !allow_filtering && !has_queriable_index && self.must_allow_filtering() {
                return Err(CqlError::invalid(REQUIRES_ALLOW_FILTERING));
            }
            self.is_key_range = true;
            self.uses_index = has_queriable_index;
        }
        Ok(())
    }

    fn check_clustering(
        &mut self,
        has_queriable_index: bool,
        options: RestrictionOptions,
    ) -> Result<(), CqlError> {
        if !self.kind.allows_clustering_slices() {
            if self.clustering.has_slice {
                return Err(CqlError::invalid(format!(
                    "Slice restrictions are not supported on the clustering columns in {} statements",
                    self.kind
                )));
            }
            let missing = self.unrestricted_clustering();
            if !options.is_static_only && !missing.is_empty() && !self.may_name_prefix() {
                return Err(CqlError::invalid(format!(
                    "Some clustering keys are missing: {}",
                    missing.join(", ")
                )));
            }
            if !self.may_name_prefix() {
                return Ok(());
            }
        }
        if self.clustering.has_contains() && !has_queriable_index && !options.allow_filtering {
            return Err(CqlError::invalid(
                "Clustering columns can only be restricted with CONTAINS with a secondary index or filtering",
            ));
        }
        if self.clustering.is_empty() || !self.clustering_needs_filtering() {
            return Ok(());
        }
        if has_queriable_index {
            self.uses_index = true;
        } else if !options.allow_filtering {
            let key = self.table.partition_key_count;
            let restricted = self.clustering.columns();
            let gap = restricted
                .iter()
                .enumerate()
                .find(|(at, place)| **place != key + at);
            if let Some((at, place)) = gap {
                return Err(CqlError::invalid(format!(
                    "PRIMARY KEY column \"{}\" cannot be restricted as preceding column \"{}\" is not restricted",
                    column_name(&self.table, *place),
                    column_name(&self.table, key + at)
                )));
            }
        }
        Ok(())
    }

    fn unrestricted_clustering(&self) -> Vec<&str> {
        let restricted = self.clustering.columns();
        let clustering =
            self.table.partition_key_count..self.table.partition_key_count + self.table.clustering_count;
        let missing = clustering.filter(|place| !restricted.contains(place));
        missing.map(|place| column_name(&self.table, place)).collect()
    }

    fn check_regular(
        &mut self,
        has_queriable_index: bool,
        options: RestrictionOptions,
    ) -> Result<(), CqlError> {
        if self.regular.is_empty() {
            return Ok(());
        }
        if !self.kind.is_select() {
            let columns = self.regular.columns();
            let names: Vec<&str> = columns
                .iter()
                .map(|place| column_name(&self.table, *place))
                .collect();
            return Err(CqlError::invalid(format!(
                "Non PRIMARY KEY columns found in where clause: {} ",
                names.join(", ")
            )));
        }
        let is_indexed_vector = |place: &usize| {
            self.table.columns.get(*place).is_some_and(|column| {
                matches!(column.ty, CqlType::Vector { .. })
                    && self
                        .table
                        .indexes
                        .iter()
                        .any(|index| index.target.column == column.name)
            })
        };
        if options.nearest.is_none() && self.regular.columns().iter().any(is_indexed_vector) {
            return Err(CqlError::invalid("Vector indexes only support ANN queries"));
        }
        if has_queriable_index {
            self.uses_index = true;
        } else if !options.allow_filtering && options.nearest.is_none() && self.must_allow_filtering() {
            return Err(CqlError::invalid(REQUIRES_ALLOW_FILTERING));
        }
        Ok(())
    }

    pub(crate) fn check_custom(&self, expressions: &[&QualifiedName]) -> Result<(), CqlError> {
        let Some(first) = expressions.first() else {
            return Ok(());
        };
        if expressions.len() > 1 {
            return Err(CqlError::invalid(
                "Multiple custom index expressions in a single query are not supported",
            ));
        }
        let name = &first.name;
        let table = self.table.full_name();
        if first
            .keyspace
            .as_ref()
            .is_some_and(|keyspace| *keyspace != self.table.keyspace.as_str())
        {
            return Err(CqlError::invalid(format!(
                "Target index {name} cannot be used to query {table}"
            )));
        }
        let Some(index) = self
            .table
            .indexes
            .iter()
            .find(|index| *name == index.name.as_str())
        else {
            return Err(CqlError::invalid(format!(
                "Invalid index expression, index {name} not found for {table}"
            )));
        };
        Err(CqlError::invalid(match index.kind {
            IndexKind::Custom => format!("Index {name} does not support custom expressions"),
            IndexKind::Keys | IndexKind::Composites => {
                format!("Only CUSTOM indexes may be used in custom index expressions, {name} is not valid")
            }
        }))
    }
}
