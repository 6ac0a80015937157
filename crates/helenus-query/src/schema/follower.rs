//! Indexes and views: what follows a table's writes.

use std::sync::Arc;

use helenus_row::TableId;

use super::{Index, Table};

/// What is kept up to date by a table's writes.
#[derive(Clone, Debug)]
pub enum Follower {
    Index(Arc<Index>),
    View(Arc<Table>),
}

impl Follower {
    /// The number of the table that holds it.
    pub fn number(&self) -> TableId {
        match self {
            Follower::Index(index) => index.table.number,
            Follower::View(view) => view.number,
        }
    }

    /// The follower with its base table.
    pub fn of(self, base: &Arc<Table>) -> Followed {
        Followed {
            base: base.clone(),
            follower: self,
        }
    }
}

/// A follower and the table that it follows.
#[derive(Clone, Debug)]
pub struct Followed {
    pub base: Arc<Table>,
    pub follower: Follower,
}
