//! Derived tables: indexes and views, which a table's writes maintain.

use std::sync::Arc;

use helenus_row::TableId;

use super::{Index, Table};

/// An index or a view, which the writes of its base table maintain.
#[derive(Clone, Debug)]
pub enum DerivedTable {
    Index(Arc<Index>),
    View(Arc<Table>),
}

impl DerivedTable {
    /// Returns the number of the table with the entries or rows.
    pub fn number(&self) -> TableId {
        match self {
            DerivedTable::Index(index) => index.table.number,
            DerivedTable::View(view) => view.number,
        }
    }

    /// Returns the derived table together with its base table.
    pub fn of(self, base: &Arc<Table>) -> Derivation {
        Derivation {
            base: base.clone(),
            derived: self,
        }
    }
}

/// A derived table and its base table.
#[derive(Clone, Debug)]
pub struct Derivation {
    pub base: Arc<Table>,
    pub derived: DerivedTable,
}
