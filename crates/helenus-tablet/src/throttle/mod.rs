//! Limits of bytes per second, which can change while they hold: of flushes, of compactions, and of what goes to and from a bucket.

pub(crate) mod object_store;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The throttles of a store. All databases of the store share them; a clone means the same ones.
#[derive(Clone, Debug, Default)]
pub struct Throttles {
    /// SSTables that compactions write, all tablets together (Cassandra's `compaction_throughput`).
    pub compaction: Arc<Throttle>,
    /// SSTables that flushes write, all tablets together.
    pub flush: Arc<Throttle>,
    /// What is read from a bucket and written to it. The log and the small documents are counted, and wait for nothing.
    pub bucket: Arc<Throttle>,
}

impl Throttles {
    /// Takes over the rates of others, and so changes those that hold now.
    pub fn set_rates(&self, others: &Throttles) {
        self.compaction.set_rate(others.compaction.rate());
        self.flush.set_rate(others.flush.rate());
        self.bucket.set_rate(others.bucket.rate());
    }
}

/// A limit of bytes per second. What is let through at once is paid for by those who come after it.
#[derive(Debug, Default)]
pub struct Throttle {
    /// Bytes per second; 0 without a limit.
    rate: AtomicU64,
    /// When all that was let through has been paid for.
    paid_at: Mutex<Option<Instant>>,
    /// Wakes those who wait when the limit changes.
    changed: Notify,
}

impl Throttle {
    /// Returns the bytes per second, if they are limited.
    pub fn rate(&self) -> Option<u64> {
        Some(self.rate.load(Ordering::Acquire)).filter(|rate| *rate > 0)
    }

    /// Limits the bytes per second from now on, also of those who wait already. There is no limit without a rate, or with one of 0.
    pub fn set_rate(&self, rate: Option<u64>) {
        let rate = rate.unwrap_or(0);
        let before = self.rate.swap(rate, Ordering::AcqRel);
        if before != rate {
            *self.paid_at.lock() = None;
            self.changed.notify_waiters();
        }
    }

    /// Lets so many bytes through at once, which delays those who wait.
    pub(crate) fn charge(&self, bytes: u64) {
        let Some(rate) = self.rate() else { return };
        let now = Instant::now();
        let mut paid_at = self.paid_at.lock();
        let begins = paid_at.map_or(now, |paid_at| paid_at.max(now));
        *paid_at = Some(begins + time_of(bytes, rate));
    }

    /// Returns once so many bytes may pass. Several wait for one another.
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

    /// Lets so many bytes through if all before them are paid for; otherwise when that will be.
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
