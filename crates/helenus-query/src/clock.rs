//! The clock of the query engine, as a trait, so that a simulator can replace it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Wall-clock time.
pub trait Clock: Send + Sync + 'static {
    /// Returns microseconds since the Unix epoch.
    fn now_us(&self) -> i64;
}

/// The machine's clock.
#[derive(Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[allow(
        clippy::disallowed_methods,
        reason = "the one place that reads the machine's clock"
    )]
    fn now_us(&self) -> i64 {
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_micros()).unwrap_or(i64::MAX),
            Err(before) => -i64::try_from(before.duration().as_micros()).unwrap_or(i64::MAX),
        }
    }
}

/// A clock that always shows the same time.
pub(crate) struct StoppedClock {
    now_us: i64,
}

impl StoppedClock {
    /// Returns a clock at a time in milliseconds since the Unix epoch.
    pub fn at_ms(now_ms: i64) -> StoppedClock {
        StoppedClock {
            now_us: now_ms.saturating_mul(1000),
        }
    }
}

impl Clock for StoppedClock {
    fn now_us(&self) -> i64 {
        self.now_us
    }
}

/// A clock that a test sets, in microseconds since the Unix epoch.
#[cfg(test)]
pub(crate) struct SetClock(pub AtomicI64);

#[cfg(test)]
impl Clock for SetClock {
    fn now_us(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Maximum lead of another node's clock that is followed. A clock that is further ahead is considered broken.
const AHEAD_MAX_US: i64 = 10 * 60 * 1_000_000;
/// Minimum time between two warnings about such a clock. Nodes exchange greetings every second.
const WARNING_INTERVAL_US: i64 = 10 * 60 * 1_000_000;

/// Hands out write timestamps in microseconds that never repeat and never go back, however the clock moves
/// (Cassandra's `ClientState.getTimestamp`).
#[derive(Debug, Default)]
pub struct TimestampSource {
    last_us: Arc<AtomicI64>,
    /// Lead of the cluster's fastest clock over this node's.
    ahead_us: AtomicI64,
    /// Time of the last warning about a clock that is far ahead. 0 if there was none.
    warned_us: AtomicI64,
}

impl TimestampSource {
    /// Takes another node's time into account, so that this node's timestamps are not behind it. When a partition changes hands, new writes
    /// are then newer than earlier ones. A clock that is far ahead is not followed.
    pub fn observe(&self, clock: &dyn Clock, other_us: i64) {
        let now_us = clock.now_us();
        let ahead_us = other_us.saturating_sub(now_us);
        if ahead_us <= AHEAD_MAX_US {
            self.ahead_us.fetch_max(ahead_us, Ordering::Relaxed);
            return;
        }
        let warned_us = self.warned_us.load(Ordering::Relaxed);
        if now_us.saturating_sub(warned_us) >= WARNING_INTERVAL_US {
            self.warned_us.store(now_us, Ordering::Relaxed);
            tracing::warn!(
                ahead_us,
                "another node's clock is far ahead of this one's; set them both"
            );
        }
    }

    /// Returns the shared cell with the last timestamp that was given out.
    pub fn last_us(&self) -> Arc<AtomicI64> {
        self.last_us.clone()
    }

    /// Raises the timestamps: no later one is below `floor_us`.
    pub fn raise(&self, floor_us: i64) {
        self.last_us.fetch_max(floor_us, Ordering::Relaxed);
    }

    /// Returns the next timestamp: the current time, or the last timestamp plus one if that is greater.
    pub fn next_us(&self, clock: &dyn Clock) -> i64 {
        let now_us = clock.now_us() + self.ahead_us.load(Ordering::Relaxed);
        let bump = |last_us: i64| Some(now_us.max(last_us.saturating_add(1)));
        match self
            .last_us
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, bump)
        {
            Ok(last_us) | Err(last_us) => now_us.max(last_us.saturating_add(1)),
        }
    }
}
