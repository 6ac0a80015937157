//! Counts of the rows that range reads pass, for the tablets that hold them. A tablet with many dead rows is compacted sooner.

use std::sync::Arc;

use helenus_tablet::Tablet;

use crate::cluster::Owner;
use crate::schema::Table;
use crate::storage::ExecutionContext;

/// The tablet of the last counted rows of one read.
pub struct PassedRows {
    table: Arc<Table>,
    /// `None` if another node has the tablet, or no rows were counted yet.
    tablet: Option<Arc<Tablet>>,
}

impl PassedRows {
    pub fn new(table: Arc<Table>) -> PassedRows {
        PassedRows { table, tablet: None }
    }

    /// Counts live and dead rows with that token, if this node has them. Dead rows of a table with an origin are not counted, because no
    /// compaction can purge them.
    pub fn add(&mut self, context: &ExecutionContext, token: i64, live: u64, dead: u64) {
        if live == 0 && dead == 0 {
            return;
        }
        let is_other = |tablet: &Arc<Tablet>| !tablet.token_range().contains(token);
        if self.tablet.as_ref().is_none_or(is_other) {
            let owner = context.cluster().map(|cluster| cluster.owner(token));
            let is_here = owner.is_none_or(|owner| owner == Owner::Here);
            self.tablet = is_here.then(|| context.store.tablet(token).ok()).flatten();
        }
        let dead = match self.table.origin {
            None => dead,
            Some(_) => 0,
        };
        if let Some(tablet) = &self.tablet {
            tablet.passed(live, dead);
        }
    }
}
