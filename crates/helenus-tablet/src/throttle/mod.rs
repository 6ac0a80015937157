//! Limits of bytes per second for flushes, for compactions and for the transfer to and from a bucket. They can be changed while they are in
//! use.

pub(crate) mod object_store;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The throttles of a store. All databases of the store share them, and so do clones.
#[derive(Clone, Debug, Default)]
pub struct Throttles {
    /// Throttle for the SSTables that compactions write, all tablets together (Cassandra's `compaction_throughput`).
    pub compaction: Arc<Throttle>,
    /// Throttle for the SSTables that flushes write, all tablets together.
    pub flush: Arc<Throttle>,
    /// Throttle for reads from a bucket and writes to it. The log and the small documents are counted, but never wait.
    pub bucket: Arc<Throttle>,
}

impl Throttles {
    /// Copies the rates of `others`. They take effect at once.
    pub fn set_rates(&self, others: &Throttles) {
        self.compaction.set_rate(others.compaction.rate());
        self.flush.set_rate(others.flush.rate());
        self.bucket.set_rate(others.bucket.rate());
    }
}

/// A limit of bytes per second. Bytes that passed without waiting delay later callers.
#[derive(Debug, Default)]
pub struct Throttle {
    /// Bytes per second. 0 if there is no limit.
    rate: AtomicU64,
    /// Time at which the bytes passed so far are paid for at the current rate. `None` if none have passed since the rate was set.
    paid_at: Mutex<Option<Instant>>,
    /// Notified when the limit changes.
    changed: Notify,
}

impl Throttle {
    /// Returns the bytes per second. `None` if there is no limit.
    pub fn rate(&self) -> Option<u64> {
        Some(self.rate.load(Ordering::Acquire)).filter(|rate| *rate > 0)
    }

    /// Limits the bytes per second from now on, also for callers that wait already. There is no limit if the rate is `None` or 0.
    pub fn set_rate(&self, rate: Option<u64>) {
        let rate = rate.unwrap_or(0);
        let before = self.rate.swap(rate, Ordering::AcqRel);
        if before != rate {
            *self.paid_at.lock() = None;
            self.changed.notify_waiters();
        }
    }

    /// Lets `bytes` pass at once. Callers that wait are delayed accordingly.
    pub(crate) fn charge(&self, bytes: u64) {
        let Some(rate) = self.rate() else { return };
        let now = Instant::now();
        let mut paid_at = self.paid_at.lock();
        let begins = paid_at.map_or(now, |paid_at| paid_at.max(now));
        *paid_at = Some(begins + time_of(bytes, rate));
    }

    /// Waits until `bytes` may pass. Several callers wait for one another.
    pub(crate) async fn take(&self, bytes: u64) {
        loop {
            let changed = self.changed.notified();
            let Some(until) = self.try_take(bytes) else { return };
            tokio::select! {
                () = tokio::time::sleep_until(until) => {}
                () = changed => {}
            }
        }
    }

    /// Lets `bytes` pass if all earlier ones are paid for, and returns `None`. Otherwise returns the time to try again.
    fn try_take(&self, bytes: u64) -> Option<Instant> {
        let rate = self.rate()?;
        let now = Instant::now();
        let mut paid_at = self.paid_at.lock();
        if let Some(paid_at) = paid_at.filter(|paid_at| *paid_at > now) {
            return Some(paid_at);
        }
        *paid_at = Some(now + time_of(bytes, rate));
        None
    }
}

fn time_of(bytes: u64, rate: u64) -> Duration {
    Duration::try_from_secs_f64(bytes as f64 / rate as f64).unwrap_or(Duration::MAX / 4)
}

#[cfg(test)]
#[path = "throttle_tests.rs"]
mod tests;
