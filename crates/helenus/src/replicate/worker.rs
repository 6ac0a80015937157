//! The connections of a thread that copies and follows.

use std::time::Duration;

use anyhow::Result;

use super::plan::TablePlan;
use super::shared::{Phase, Shared};
use crate::node_session::NodeSession;

/// The time at which a piece of work is due again.
pub enum Next {
    After(Duration),
    Done,
}

/// A thread's connections.
pub struct Worker<'s> {
    pub shared: &'s Shared,
    pub source: NodeSession,
    pub target: NodeSession,
}

impl<'s> Worker<'s> {
    pub fn new(shared: &'s Shared, number: usize) -> Worker<'s> {
        Worker {
            shared,
            source: NodeSession::new(&shared.source, number, None),
            target: NodeSession::new(&shared.target, number, None),
        }
    }

    /// Returns true if the plan is still the table's, and the source's schema is the one for which it was made.
    pub fn is_current(&mut self, table: usize, plan: &TablePlan) -> Result<bool> {
        let found = self
            .source
            .first_row("SELECT schema_version FROM system.local WHERE key = 'local'", &[])?;
        let version = found.and_then(|(row, _)| row.into_iter().next().flatten());
        let phase = self.shared.tables.get(table).map(super::shared::TableWork::phase);
        let number = match phase {
            Some(Phase::Running(plan) | Phase::Ending { plan, .. }) => plan.number,
            Some(Phase::Stopped(_)) | None => return Ok(false),
        };
        Ok(number == plan.number && version.is_some() && version == self.shared.schema_version())
    }
}
