//! Indexes and views: what follows a table's writes.

use std::sync::Arc;

use helenus_row::TableId;

use super::{Index, Table};

/// What is kept up to date by a table's writes.
#[derive(Clone, Debug)]
pub enum DerivedTable {
    Index(Arc<Index>),
    View(Arc<Table>),
}

impl DerivedTable {
    /// Returns the number of the table that holds it.
    pub fn number(&self) -> TableId {
        match self {
            DerivedTable::Index(index) => index.table.number,
            DerivedTable::View(view) => view.number,
        }
    }

    /// Returns the follower with its base table.
    pub fn of(self, base: &Arc<Table>) -> Derivation {
        Derivation {
            base: base.clone(),
            derived: self,
        }
    }
}

/// A follower and the table that it follows.
#[derive(Clone, Debug)]
pub struct Derivation {
    pub base: Arc<Table>,
    pub derived: DerivedTable,
}
