//! Traces of the requests that asked for one, as `system_traces.sessions` shows them: the latest, in memory.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use parking_lot::Mutex;
use uuid::Uuid;

/// Traces that are kept; older ones are forgotten.
const KEPT_MAX: usize = 1024;

/// One traced request.
#[derive(Clone, Debug)]
pub struct Trace {
    pub id: Uuid,
    pub client: IpAddr,
    /// The kind of request, QUERY for every statement.
    pub command: &'static str,
    /// What was done, in Cassandra's words.
    pub request: &'static str,
    pub parameters: BTreeMap<String, String>,
    /// Microseconds since the Unix epoch.
    pub started_at_us: i64,
    pub duration: Duration,
    /// The id of the trace's one event, that the answer is ready.
    pub answered_id: Uuid,
}

/// The traces of a node.
#[derive(Debug, Default)]
pub struct Traces {
    kept: Mutex<VecDeque<Trace>>,
}

impl Traces {
    pub fn record(&self, trace: Trace) {
        let mut kept = self.kept.lock();
        if kept.len() >= KEPT_MAX {
            kept.pop_front();
        }
        kept.push_back(trace);
    }

    /// The traces kept, oldest first.
    pub fn all(&self) -> Vec<Trace> {
        self.kept.lock().iter().cloned().collect()
    }
}
