//! Traces of requests. The latest ones are kept in memory for `system_traces`. Every request, traced or not, has a record of its work in
//! [`crate::measurement`].

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use helenus_cql::value::to_cql_literal;
use parking_lot::Mutex;
use uuid::Uuid;

use crate::request::{BoundValue, BoundValues, Markers};
use crate::response::ColumnSpec;

pub use helenus_tablet::trace::{Step, TraceRecorder, is_recording, step, step_at};

/// Maximum number of kept traces, and in the next constant of their steps. The oldest traces are dropped first.
const KEPT_MAX: usize = 1024;
const STEPS_MAX: usize = 50_000;
/// Maximum bytes of the kept traces.
const BYTES_MAX: usize = 32 << 20;
/// Maximum bytes of a statement in a trace's parameters, and in the next constant of all values bound to it.
const PARAMETER_LEN_MAX: usize = 64 << 10;
const VALUES_LEN_MAX: usize = 1 << 20;
/// Maximum bytes of a statement that a trace or the log shows.
const SHOWN_MAX: usize = 1000;

/// Shortens a statement for a line of the log, and removes a password.
pub fn shorten(statement: &str) -> &str {
    without_password(beginning(statement))
}

/// Returns a statement as a trace's parameter, without a password.
pub fn parameter(statement: &str) -> String {
    let shown = without_password(statement);
    match shown.len() > PARAMETER_LEN_MAX {
        true => format!("{}...", cut(shown, PARAMETER_LEN_MAX)),
        false => shown.to_owned(),
    }
}

fn beginning(text: &str) -> &str {
    cut(text, SHOWN_MAX)
}

/// Returns the longest beginning of a text that has at most `len_max` bytes and whole characters.
fn cut(text: &str, len_max: usize) -> &str {
    let mut end = len_max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or(text)
}

/// Returns a statement without a role's password: it is cut after the word (Cassandra's `PasswordObfuscator`).
pub fn without_password(statement: &str) -> &str {
    let find = |word: &str| {
        let mut parts = statement.as_bytes().windows(word.len());
        parts.position(|part| part.eq_ignore_ascii_case(word.as_bytes()))
    };
    let has_any = |words: [&str; 2]| words.into_iter().any(|word| find(word).is_some());
    let password = find(PASSWORD).filter(|_| has_any(["create", "alter"]) && has_any(["role", "user"]));
    let kept = password.and_then(|at| statement.get(..at + PASSWORD.len()));
    kept.unwrap_or(statement)
}

const PASSWORD: &str = "password";

/// Returns the values of a prepared statement's markers as a trace shows them: `bound_var_0_id` and so on. Values after the first megabyte
/// are omitted.
pub fn bound_variables(markers: &Markers, values: &BoundValues) -> Vec<(String, String)> {
    let Ok(values) = markers.bind(values) else {
        return Vec::new();
    };
    let mut left = VALUES_LEN_MAX;
    let shown = |(at, (spec, value)): (usize, (&ColumnSpec, &BoundValue))| {
        let value = match value {
            BoundValue::Set(bytes) => to_cql_literal(&spec.ty, bytes).unwrap_or_else(|error| error),
            BoundValue::Null => "null".to_owned(),
            BoundValue::Unset => "<unset>".to_owned(),
        };
        // A shortened text keeps its opening quote, as in Cassandra.
        let value = match value.len() > SHOWN_MAX {
            true => format!("{}...'", beginning(&value)),
            false => value,
        };
        let name = format!("bound_var_{at}_{}", spec.name);
        (name, value)
    };
    let all = markers.iter().zip(values.iter()).enumerate().map(shown);
    let fits = |(name, value): &(String, String)| {
        let rest = left.checked_sub(name.len() + value.len());
        left = rest.unwrap_or(0);
        rest.is_some()
    };
    all.take_while(fits).collect()
}

/// One traced request.
#[derive(Clone, Debug)]
pub struct Trace {
    pub id: Uuid,
    pub client: IpAddr,
    /// The kind of request, QUERY for every statement.
    pub command: &'static str,
    /// Description of the request, in Cassandra's words.
    pub request: &'static str,
    pub parameters: BTreeMap<String, String>,
    /// Start, in microseconds since the Unix epoch.
    pub started_at_us: i64,
    pub duration: Duration,
    /// Steps, in order.
    pub events: Vec<TraceEvent>,
    pub deleted: Deleted,
}

/// The columns of a trace's session that clients have deleted, or the whole session.
#[derive(Clone, Debug, Default)]
pub struct Deleted {
    pub is_whole: bool,
    pub columns: BTreeSet<String>,
}

/// A step of a trace.
#[derive(Clone, Debug)]
pub struct TraceEvent {
    /// Time UUID, unique within the trace.
    pub id: Uuid,
    pub activity: String,
    pub elapsed: Duration,
    pub thread: String,
}

impl Trace {
    /// Returns the trace's bytes in memory.
    fn bytes(&self) -> usize {
        let parameter =
            |(name, value): (&String, &String)| 2 * size_of::<String>() + name.len() + value.len();
        let parameters: usize = self.parameters.iter().map(parameter).sum();
        let events: usize = self.events.iter().map(TraceEvent::bytes).sum();
        size_of::<Trace>() + parameters + events
    }
}

impl TraceEvent {
    fn bytes(&self) -> usize {
        size_of::<TraceEvent>() + self.activity.len() + self.thread.len()
    }
}

/// The traces of a node.
#[derive(Debug, Default)]
pub struct Traces {
    kept: Mutex<KeptTraces>,
}

#[derive(Debug, Default)]
struct KeptTraces {
    /// The traces with their bytes, oldest first.
    traces: VecDeque<(Trace, usize)>,
    bytes: usize,
    steps: usize,
}

impl KeptTraces {
    fn is_too_much(&self) -> bool {
        let is_large = self.steps > STEPS_MAX || self.bytes > BYTES_MAX;
        self.traces.len() > KEPT_MAX || (is_large && self.traces.len() > 1)
    }

    /// Recounts the steps and bytes after traces have been changed.
    fn count_again(&mut self) {
        (self.steps, self.bytes) = (0, 0);
        for (trace, bytes) in &mut self.traces {
            *bytes = trace.bytes();
            self.bytes += *bytes;
            self.steps += trace.events.len();
        }
    }

    fn forget_oldest(&mut self) {
        while self.is_too_much() {
            if let Some((oldest, bytes)) = self.traces.pop_front() {
                self.steps -= oldest.events.len();
                self.bytes -= bytes;
            }
        }
    }
}

impl Traces {
    pub fn record(&self, trace: Trace) {
        let mut kept = self.kept.lock();
        let bytes = trace.bytes();
        kept.steps += trace.events.len();
        kept.bytes += bytes;
        kept.traces.push_back((trace, bytes));
        kept.forget_oldest();
    }

    /// Adds a step that happened after the answer was ready.
    pub fn add(&self, id: Uuid, event: TraceEvent) {
        let mut kept = self.kept.lock();
        let added = event.bytes();
        let mut traces = kept.traces.iter_mut().rev();
        if let Some((trace, bytes)) = traces.find(|(trace, _)| trace.id == id) {
            trace.events.push(event);
            *bytes += added;
            kept.steps += 1;
            kept.bytes += added;
            kept.forget_oldest();
        }
    }

    /// Changes a trace, if it is kept.
    pub fn change(&self, id: Uuid, change: impl FnOnce(&mut Trace)) {
        let mut kept = self.kept.lock();
        if let Some((trace, _)) = kept.traces.iter_mut().find(|(trace, _)| trace.id == id) {
            change(trace);
            kept.count_again();
        }
    }

    /// Changes every trace that is kept.
    pub fn change_all(&self, change: impl FnMut(&mut Trace)) {
        let mut kept = self.kept.lock();
        kept.traces.iter_mut().map(|(trace, _)| trace).for_each(change);
        kept.count_again();
    }

    /// Returns the traces kept, oldest first.
    pub fn all(&self) -> Vec<Trace> {
        self.kept
            .lock()
            .traces
            .iter()
            .map(|(trace, _)| trace.clone())
            .collect()
    }
}

#[cfg(test)]
#[path = "trace_tests.rs"]
mod tests;
