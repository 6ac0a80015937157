//! Time as the query floor sees it, so that a simulator can own it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Wall-clock time.
pub trait Clock: Send + Sync + 'static {
    /// Microseconds since the Unix epoch.
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

/// A time that stands still.
pub(crate) struct StoppedClock {
    now_us: i64,
}

impl StoppedClock {
    /// At a time in milliseconds since the Unix epoch.
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

/// A clock that is further ahead is taken for broken.
const AHEAD_MAX_US: i64 = 10 * 60 * 1_000_000;
/// Time from one line about such a clock to the next: nodes greet each other each second.
const WARNING_INTERVAL_US: i64 = 10 * 60 * 1_000_000;

/// Hands out write timestamps in microseconds that never repeat and never go back, however the clock moves
/// (Cassandra's `ClientState.getTimestamp`).
#[derive(Debug, Default)]
pub struct TimestampSource {
    last_us: Arc<AtomicI64>,
    /// How far the fastest clock of the cluster is ahead of this node's.
    ahead_us: AtomicI64,
    /// Time at which the log last named a clock that is far ahead. 0 if it never did.
    warned_us: AtomicI64,
}

impl TimestampSource {
    /// Another node's clock shows that time: this node's timestamps are not to be behind it, so that writes are newer than what they follow
    /// when a partition has changed hands. A clock that is far ahead is not followed.
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

    /// Returns the last timestamp that was given, as it changes.
    pub fn last_us(&self) -> Arc<AtomicI64> {
        self.last_us.clone()
    }

    /// No timestamp from now on is below that.
    pub fn raise(&self, floor_us: i64) {
        self.last_us.fetch_max(floor_us, Ordering::Relaxed);
    }

    /// Returns the next timestamp: now, or one more than the last one.
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
