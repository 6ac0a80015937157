//! The restrictions on the columns of one kind (Cassandra's `RestrictionSet`), and those on the partition key.

use std::collections::BTreeMap;
use std::sync::Arc;

use helenus_cql::error::CqlError;

use super::restriction::{Restriction, Test, column_name};
use super::token::TokenRestriction;
use crate::schema::{Column, Table};

/// A key that sorts key columns by position, and the others by name.
type SortKey = (usize, String);

/// Restrictions by column, in the order of the columns.
#[derive(Clone, Debug, Default)]
pub struct RestrictionSet {
    by_column: BTreeMap<SortKey, (usize, Arc<Restriction>)>,
    pub has_in: bool,
    pub has_slice: bool,
    has_inequality: bool,
}

fn sort_key(column: &Column) -> SortKey {
    let position = if column.is_primary_key() {
        column.position
    } else {
        0
    };
    (position, column.name.clone())
}

impl RestrictionSet {
    /// Adds a restriction, merged with the present ones on the same columns.
    pub fn add(&mut self, restriction: Restriction, table: &Table) -> Result<(), CqlError> {
        let mut existing: Vec<Arc<Restriction>> = Vec::new();
        for place in &restriction.columns {
            if let Some(found) = self.get(*place, table)
                && !existing.iter().any(|known| Arc::ptr_eq(known, &found))
            {
                existing.push(found);
            }
        }
        let merged = if existing.is_empty() {
            vec![Arc::new(restriction.clone())]
        } else {
            let merge = |known: &Arc<Restriction>| known.merge(&restriction, table).map(Arc::new);
            existing.iter().map(merge).collect::<Result<Vec<_>, _>>()?
        };
        self.has_in |= restriction.is_in();
        self.has_slice |= restriction.is_slice();
        self.has_inequality |= !(restriction.is_eq() || restriction.is_in());
        for new in merged {
            for place in &restriction.columns {
                if let Some(column) = table.columns.get(*place) {
                    self.by_column.insert(sort_key(column), (*place, new.clone()));
                }
            }
        }
        Ok(())
    }

    /// Returns the restriction on the column at that index.
    pub fn get(&self, place: usize, table: &Table) -> Option<Arc<Restriction>> {
        let column = table.columns.get(place)?;
        self.by_column
            .get(&sort_key(column))
            .map(|(_, restriction)| restriction.clone())
    }

    pub fn is_empty(&self) -> bool {
        self.by_column.is_empty()
    }

    /// Returns the number of restricted columns.
    pub fn len(&self) -> usize {
        self.by_column.len()
    }

    pub fn has_only_equality(&self) -> bool {
        !self.has_inequality
    }

    /// Returns the indexes of the restricted columns, in order.
    pub fn columns(&self) -> Vec<usize> {
        self.by_column.values().map(|(place, _)| *place).collect()
    }

    /// Returns the restrictions in order. A restriction on several columns is returned once.
    pub fn iter(&self) -> impl Iterator<Item = &Restriction> {
        let mut previous: Option<&Arc<Restriction>> = None;
        self.by_column.values().filter_map(move |(_, restriction)| {
            if previous.is_some_and(|previous| Arc::ptr_eq(previous, restriction)) {
                return None;
            }
            previous = Some(restriction);
            Some(restriction.as_ref())
        })
    }

    pub fn last(&self) -> Option<&Restriction> {
        self.by_column
            .values()
            .next_back()
            .map(|(_, restriction)| restriction.as_ref())
    }

    pub fn has_contains(&self) -> bool {
        self.iter().any(Restriction::is_contains)
    }

    /// Returns the restricted column after the one at `place`.
    fn column_after(&self, place: usize, table: &Table) -> Option<usize> {
        let key = sort_key(table.columns.get(place)?);
        self.by_column
            .range((std::ops::Bound::Excluded(key), std::ops::Bound::Unbounded))
            .next()
            .map(|(_, (at, _))| *at)
    }

    /// Adds a restriction on clustering columns. Refuses restrictions that no slice of a partition can answer
    /// (`ClusteringColumnRestrictions.mergeWith`). `is_free` is true if filtering is allowed or an index answers the restriction.
    pub fn add_clustering(
        &mut self,
        restriction: Restriction,
        table: &Table,
        is_free: bool,
    ) -> Result<(), CqlError> {
        let before = self.clone();
        let (first, is_slice) = (restriction.first_column(), restriction.is_slice());
        self.add(restriction, table)?;
        let Some(last) = before.last().filter(|_| !is_free) else {
            return Ok(());
        };
        let last_first = last.first_column();
        if last.is_slice() && first > last_first {
            return Err(CqlError::invalid(format!(
                "Clustering column \"{}\" cannot be restricted (preceding column \"{}\" is restricted by a non-EQ relation)",
                column_name(table, first),
                column_name(table, last_first)
            )));
        }
        if first < last_first && is_slice {
            let next = before.column_after(first, table).unwrap_or(last_first);
            return Err(CqlError::invalid(format!(
                "PRIMARY KEY column \"{}\" cannot be restricted (preceding column \"{}\" is restricted by a non-EQ relation)",
                column_name(table, next),
                column_name(table, first)
            )));
        }
        Ok(())
    }
}

/// The restrictions on the partition key: on its columns, on its token, or on both
/// (`PartitionKeySingleRestrictionSet`, `TokenRestriction`, `TokenFilter`).
#[derive(Clone, Debug, Default)]
pub struct PartitionRestrictions {
    pub set: RestrictionSet,
    pub token: Option<TokenRestriction>,
}

impl PartitionRestrictions {
    pub fn is_empty(&self) -> bool {
        self.set.is_empty() && self.token.is_none()
    }

    /// Returns true if the token bounds the read. False if it only filters keys that are all given.
    pub fn is_on_token(&self, table: &Table) -> bool {
        self.token.is_some()
            && (self.set.is_empty()
                || self.needs_filtering(table)
                || self.set.len() < table.partition_key_count)
    }

    pub fn needs_filtering(&self, table: &Table) -> bool {
        !self.set.is_empty()
            && (self.set.len() < table.partition_key_count
                || self.set.has_slice
                || self.set.iter().any(|one| one.is_contains() || one.is_like()))
    }

    pub fn has_unrestricted(&self, table: &Table) -> bool {
        let is_token_alone = self.token.is_some() && self.set.is_empty();
        !is_token_alone && self.set.len() < table.partition_key_count
    }

    pub fn has_in(&self, table: &Table) -> bool {
        !self.is_on_token(table) && self.set.has_in
    }

    pub fn has_only_equality(&self, table: &Table) -> bool {
        !self.is_on_token(table) && self.set.has_only_equality()
    }

    pub fn has_slice(&self) -> bool {
        self.set.has_slice
            || (self.set.is_empty() && self.token.as_ref().is_some_and(TokenRestriction::is_slice))
    }

    /// Returns the names of the partition key columns without a restriction.
    pub fn unrestricted_names(&self, table: &Table) -> String {
        let restricted = self.set.columns();
        let missing = (0..table.partition_key_count).filter(|place| !restricted.contains(place));
        missing
            .map(|place| column_name(table, place))
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// Returns true if an equality (and no IN) fixes the column.
    pub fn is_eq(&self, place: usize, table: &Table) -> bool {
        self.set
            .get(place, table)
            .is_some_and(|restriction| matches!(restriction.test, Test::Eq(_)))
    }
}
