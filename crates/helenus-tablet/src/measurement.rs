//! The store's part of the measurement of a request.
//!
//! The task that polls a request swaps the request's [`StoreMeasurement`] into the thread for the duration of the poll. The counting code thus
//! needs no reference to the request, and a result from memory needs no reading of the clock. Work outside of a poll is not counted.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

/// The times and counts of the store's work for one request. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreMeasurement {
    /// Time of waiting until the writes in flight leave room for the request's write.
    pub admission_ns: u64,
    /// Time from the log's queue until the log is synced and reads see the write.
    pub log_ns: u64,
    /// Time of waiting for blocks of SSTables.
    pub read_wait_ns: u64,
    /// Rows found in the row cache, including those known to be absent.
    pub row_cache_hits: u32,
    /// Rows that were looked up in the memtable and the runs.
    pub row_cache_misses: u32,
    /// Ranges that were scanned.
    pub scans: u32,
    /// Rows that were written.
    pub operands: u32,
    /// The recording ([`crate::trace`]) of a traced request. 0 if the request is not traced.
    pub(crate) recording: u64,
}

thread_local! {
    static CURRENT: RefCell<StoreMeasurement> = const {
        RefCell::new(StoreMeasurement {
            admission_ns: 0,
            log_ns: 0,
            read_wait_ns: 0,
            row_cache_hits: 0,
            row_cache_misses: 0,
            scans: 0,
            operands: 0,
            recording: 0,
        })
    };
}

impl StoreMeasurement {
    /// Swaps this record with the thread's: the first call puts it into the thread, the second takes it out.
    pub fn swap(&mut self) {
        CURRENT.with_borrow_mut(|current| std::mem::swap(current, self));
    }
}

/// Returns a duration in nanoseconds, the unit of the counters.
pub fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

pub(crate) fn count(count: impl FnOnce(&mut StoreMeasurement)) {
    CURRENT.with_borrow_mut(count);
}

/// Returns the recording of the request that this thread polls. 0 if it is not traced.
pub(crate) fn recording() -> u64 {
    CURRENT.with_borrow(|store| store.recording)
}

/// Awaits a read, and counts the time for which it was not ready.
pub(crate) async fn read_wait<T>(read: impl Future<Output = T>) -> T {
    let mut read = pin!(read);
    let mut since: Option<Instant> = None;
    let output = poll_fn(|cx| match read.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(output),
        Poll::Pending => {
            since.get_or_insert_with(Instant::now);
            Poll::Pending
        }
    })
    .await;
    if let Some(since) = since {
        count(|store| store.read_wait_ns += nanos(since.elapsed()));
    }
    output
}

#[cfg(test)]
#[path = "measurement_tests.rs"]
mod tests;
