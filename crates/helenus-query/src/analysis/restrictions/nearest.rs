//! Checks of the restrictions next to `ORDER BY … ANN OF`.

use helenus_cql::error::CqlError;

use super::restriction::{Test, column_name};
use super::{REQUIRES_ALLOW_FILTERING, StatementRestrictions};
use crate::index::choice;

impl StatementRestrictions {
    pub(crate) fn is_indexed(&self, place: usize) -> bool {
        let name = column_name(&self.table, place);
        self.table.indexes.iter().any(|index| index.target.column == name)
    }

    /// Checks the restrictions next to an ANN ordering. They must be answered by indexes, or be a slice of one partition.
    pub(crate) fn check_nearest(&self, allow_filtering: bool) -> Result<(), CqlError> {
        let table = &self.table;
        let is_unindexed = |place: &usize| !self.is_indexed(*place);
        let is_slice = !self.partition.has_unrestricted(table) && !self.clustering_needs_filtering();
        let is_scattered = self.partition.needs_filtering(table)
            || self.regular.columns().iter().any(is_unindexed)
            || (!is_slice && self.clustering.columns().iter().any(is_unindexed));
        if is_scattered {
            return Err(CqlError::invalid(
                "ANN ordering by vector requires all restricted column(s) to be indexed",
            ));
        }
        let is_filtered = self
            .regular
            .iter()
            .any(|one| !choice::has_supporting_index(table, &one.index_use()));
        match is_filtered && !allow_filtering {
            true => Err(CqlError::invalid(REQUIRES_ALLOW_FILTERING)),
            false => Ok(()),
        }
    }

    /// Refuses a relation on the column of an ANN ordering.
    pub(crate) fn check_nearest_alone(&self, place: usize) -> Result<(), CqlError> {
        let Some(restriction) = self.regular.get(place, &self.table) else {
            return Ok(());
        };
        let name = column_name(&self.table, place);
        Err(CqlError::invalid(match &restriction.test {
            Test::Eq(_) => {
                format!("{name} cannot be restricted by more than one relation if it includes an Equal")
            }
            Test::In(_) => {
                format!("{name} cannot be restricted by more than one relation if it includes a IN")
            }
            _ => format!(
                "Column \"{name}\" cannot be restricted by both an equality and an inequality relation"
            ),
        }))
    }
}
