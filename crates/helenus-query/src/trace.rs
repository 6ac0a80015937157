//! Accounting of a request's time. Some work is counted for every request ([`Work`]). Requests with tracing on also leave a trace; the
//! latest ones are kept in memory for `system_traces`.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use helenus_cql::value::to_cql_literal;
use helenus_tablet::{StoreWork, nanos};
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

/// Work of a request's statements outside the store. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatementWork {
    /// Time of lexing, parsing and planning.
    pub parsing_ns: u64,
    /// Time of waiting for locks of partitions that are read before they are written.
    pub lock_ns: u64,
    pub live_rows: u64,
    pub tombstones: u64,
    /// Time of waiting for an answer of the owner of the request's rows, or until some node owns them.
    pub owner_ns: u64,
    /// End of the latest of these waits. Waits of a request's parts overlap, and the overlap counts once.
    pub owner_until: Option<Instant>,
    /// The owner, if it is another node.
    pub owner: Option<Uuid>,
    /// The id of the table that the request used last.
    pub table: Option<Uuid>,
}

impl StatementWork {
    /// Adds a wait for an owner. Waits are added in the order in which they end.
    fn add_owner_wait(&mut self, began: Instant, ended: Instant) {
        let began = self.owner_until.map_or(began, |until| until.max(began));
        self.owner_ns += nanos(ended.saturating_duration_since(began));
        self.owner_until = Some(ended);
    }
}

/// Work that a request has done so far. While the request is polled, it is in a thread-local variable, where the code that works can reach
/// it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    pub statement: StatementWork,
    pub store: StoreWork,
}

thread_local! {
    static CURRENT: RefCell<StatementWork> = const {
        RefCell::new(StatementWork {
            parsing_ns: 0,
            lock_ns: 0,
            live_rows: 0,
            tombstones: 0,
            owner_ns: 0,
            owner_until: None,
            owner: None,
            table: None,
        })
    };
}

impl Work {
    /// Swaps this work with that of the thread: before a poll to set it, after the poll to remove it.
    pub fn swap(&mut self) {
        CURRENT.with_borrow_mut(|current| std::mem::swap(current, &mut self.statement));
        self.store.swap();
    }
}

fn count(count: impl FnOnce(&mut StatementWork)) {
    CURRENT.with_borrow_mut(count);
}

/// Runs a planning step and counts its time.
pub(crate) fn parsing<T>(plan: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let planned = plan();
    count(|work| work.parsing_ns += nanos(began.elapsed()));
    planned
}

/// Counts time of waiting for locks.
pub(crate) fn waited_for_locks(time: Duration) {
    count(|work| work.lock_ns += nanos(time));
    step(|| "Waited for the partition's lock");
}

/// Returns the nanoseconds that the current request has waited for locks so far.
pub(crate) fn lock_wait_ns() -> u64 {
    CURRENT.with_borrow(|work| work.lock_ns)
}

/// Counts live rows and tombstones of a read.
pub(crate) fn read(live_rows: usize, tombstones: usize) {
    count(|work| {
        work.live_rows += live_rows as u64;
        work.tombstones += tombstones as u64;
    });
    step(|| format!("Read {live_rows} live rows and {tombstones} tombstone cells"));
}

/// Returns the rows and tombstones that the current request has read so far.
pub(crate) fn rows_read() -> (u64, u64) {
    CURRENT.with_borrow(|work| (work.live_rows, work.tombstones))
}

/// Resets the counts of rows to `before`, when a read has to be done again.
pub(crate) fn forget_rows(before: (u64, u64)) {
    count(|work| (work.live_rows, work.tombstones) = before);
}

/// Counts a wait since `began` for an answer of the owner, and remembers that node.
pub(crate) fn waited_for_owner(owner: Uuid, began: Instant) {
    waited_to_be_owned(began);
    count(|work| work.owner = Some(owner));
}

/// Counts a wait since `began` until some node owns and serves the request's rows.
pub(crate) fn waited_to_be_owned(began: Instant) {
    count(|work| work.add_owner_wait(began, Instant::now()));
}

/// Records which table a request uses.
pub(crate) fn about(table: Uuid) {
    count(|work| work.table = Some(table));
}

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
