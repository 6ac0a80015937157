//! Writing changes to the cluster that follows.
//!
//! - `rows`: to Helenus, as rows in transfer, with everything that they have;
//! - `cql`: to other clusters, as ordinary statements;
//! - `ranges`: deleted ranges in such statements.

mod cql;
mod ranges;
mod rows;

use anyhow::Result;
use helenus_cql::error::CqlError;

use super::changes::Change;
use super::plan::TablePlan;
use crate::node_session::{Execution, NodeSession};
use crate::shell::client::{Client, StatementError, in_words};
use rows::RowBatch;

/// A statement that only Helenus parses, on a table that it refuses.
const PROBE: &str = "INSERT INTO system.local () ROWS ? WITHOUT CDC";

/// The kind of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterKind {
    /// Helenus, of a version that has `ROWS ? WITHOUT CDC` and `packed_row`.
    Helenus,
    /// Cassandra, ScyllaDB, or an older Helenus.
    Other,
}

impl ClusterKind {
    /// Finds out the kind of the cluster at a connection.
    pub fn of(client: &mut Client) -> Result<ClusterKind> {
        match client.prepare(PROBE) {
            Ok(_) => Ok(ClusterKind::Helenus),
            Err(StatementError::Server(CqlError::Syntax(_))) => Ok(ClusterKind::Other),
            Err(StatementError::Server(CqlError::Invalid(_) | CqlError::Unauthorized(_))) => {
                Ok(ClusterKind::Helenus)
            }
            Err(error) => Err(in_words(error)),
        }
    }
}

/// Changes of one table that are sent together.
pub struct Batch<'p> {
    plan: &'p TablePlan,
    content: Content,
}

enum Content {
    Rows(RowBatch),
    Statements(Vec<Execution>),
}

impl<'p> Batch<'p> {
    pub fn new(plan: &'p TablePlan, kind: ClusterKind) -> Batch<'p> {
        let content = match kind {
            ClusterKind::Helenus => Content::Rows(RowBatch::default()),
            ClusterKind::Other => Content::Statements(Vec::new()),
        };
        Batch { plan, content }
    }

    /// Adds a change. `now_s` is the present time, to which TTLs are related.
    pub fn add(&mut self, change: &Change, now_s: i64) -> Result<()> {
        match &mut self.content {
            Content::Rows(rows) => rows.add(change),
            Content::Statements(statements) => cql::add(self.plan, change, now_s, statements)?,
        }
        Ok(())
    }

    /// Returns true if the batch must be sent before more changes are added.
    pub fn is_full(&self) -> bool {
        /// Statements in flight on a connection.
        const STATEMENTS_MAX: usize = 256;
        match &self.content {
            Content::Rows(rows) => rows.is_full(),
            Content::Statements(statements) => statements.len() >= STATEMENTS_MAX,
        }
    }

    /// Sends the changes, and waits until they are acknowledged. The batch is empty afterwards.
    ///
    /// # Errors
    /// If the cluster refuses a change, or does not answer. Any part of the changes may be written then.
    pub fn send(&mut self, session: &mut NodeSession) -> Result<()> {
        match &mut self.content {
            Content::Rows(rows) => rows.send(&self.plan.insert_rows, session),
            Content::Statements(statements) => session.execute_all(&std::mem::take(statements)),
        }
    }
}
