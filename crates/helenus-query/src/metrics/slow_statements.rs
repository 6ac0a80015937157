//! The latest slow statements of clients, which the transport keeps.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// A slow statement of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlowStatement {
    /// The table that the statement used last. Empty if it used none.
    pub keyspace: String,
    pub table: String,
    /// Time at which the response had been sent, in milliseconds since 1970.
    pub at_ms: i64,
    /// The shortened statement. Literal values are left out unless the settings allow them.
    pub text: String,
    pub took: Duration,
    /// True if another node ran the statement.
    pub was_forwarded: bool,
}

/// A source of slow statements.
pub trait SlowStatementSource: Send + Sync {
    /// Returns the slow statements that are kept, in any order.
    fn latest(&self) -> Vec<SlowStatement>;
}

/// The source that the transport has set. Empty before the transport starts.
#[derive(Default)]
pub struct SlowStatements(OnceLock<Arc<dyn SlowStatementSource>>);

impl SlowStatements {
    /// Sets the source. Only the first call has an effect.
    pub fn set(&self, source: Arc<dyn SlowStatementSource>) {
        let _ = self.0.set(source);
    }

    pub fn latest(&self) -> Vec<SlowStatement> {
        self.0.get().map_or_else(Vec::new, |source| source.latest())
    }
}

impl std::fmt::Debug for SlowStatements {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SlowStatements")
    }
}
