//! The measurement of a request: one record, which the request fills on its way and which is read at its end.
//!
//! The stage times, the slow log, spans and the metrics of statements and tables all come from this record and from the few times at which
//! the clock is read: when the request arrives, when it begins to run, when its statement begins and ends, and when its response is ready.
//! Nothing else on the way keeps a sum of its own.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use helenus_tablet::trace::step;
use helenus_tablet::{StoreMeasurement, nanos};
use uuid::Uuid;

/// The part of a request's measurement that is outside the store. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatementMeasurement {
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

impl StatementMeasurement {
    /// Adds a wait for an owner. Waits are added in the order in which they end.
    fn add_owner_wait(&mut self, began: Instant, ended: Instant) {
        let began = self.owner_until.map_or(began, |until| until.max(began));
        self.owner_ns += nanos(ended.saturating_duration_since(began));
        self.owner_until = Some(ended);
    }
}

/// The record of one request: its times, and the rows that it has read and written so far. While the request is polled, the record is in a
/// thread-local variable, where the code that works can reach it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestMeasurement {
    pub statement: StatementMeasurement,
    pub store: StoreMeasurement,
}

thread_local! {
    static CURRENT: RefCell<StatementMeasurement> = const {
        RefCell::new(StatementMeasurement {
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

impl RequestMeasurement {
    /// Swaps this record with that of the thread: before a poll to set it, after the poll to remove it.
    pub fn swap(&mut self) {
        CURRENT.with_borrow_mut(|current| std::mem::swap(current, &mut self.statement));
        self.store.swap();
    }
}

fn count(count: impl FnOnce(&mut StatementMeasurement)) {
    CURRENT.with_borrow_mut(count);
}

/// Runs a planning step and counts its time.
pub(crate) fn parsing<T>(plan: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let planned = plan();
    count(|statement| statement.parsing_ns += nanos(began.elapsed()));
    planned
}

/// Counts time of waiting for locks.
pub(crate) fn waited_for_locks(time: Duration) {
    count(|statement| statement.lock_ns += nanos(time));
    step(|| "Waited for the partition's lock");
}

/// Returns the nanoseconds that the current request has waited for locks so far.
pub(crate) fn lock_wait_ns() -> u64 {
    CURRENT.with_borrow(|statement| statement.lock_ns)
}

/// Counts live rows and tombstones of a read.
pub(crate) fn read(live_rows: usize, tombstones: usize) {
    count(|statement| {
        statement.live_rows += live_rows as u64;
        statement.tombstones += tombstones as u64;
    });
    step(|| format!("Read {live_rows} live rows and {tombstones} tombstone cells"));
}

/// Returns the rows and tombstones that the current request has read so far.
pub(crate) fn rows_read() -> (u64, u64) {
    CURRENT.with_borrow(|statement| (statement.live_rows, statement.tombstones))
}

/// Resets the counts of rows to `before`, when a read has to be done again.
pub(crate) fn forget_rows(before: (u64, u64)) {
    count(|statement| (statement.live_rows, statement.tombstones) = before);
}

/// Counts a wait since `began` for an answer of the owner, and remembers that node. Returns the end of the wait.
pub(crate) fn waited_for_owner(owner: Uuid, began: Instant) -> Instant {
    let ended = Instant::now();
    count(|statement| {
        statement.add_owner_wait(began, ended);
        statement.owner = Some(owner);
    });
    ended
}

/// Counts a wait since `began` until some node owns and serves the request's rows.
pub(crate) fn waited_to_be_owned(began: Instant) {
    count(|statement| statement.add_owner_wait(began, Instant::now()));
}

/// Records which table a request uses.
pub(crate) fn about(table: Uuid) {
    count(|statement| statement.table = Some(table));
}

#[cfg(test)]
#[path = "measurement_tests.rs"]
mod tests;
