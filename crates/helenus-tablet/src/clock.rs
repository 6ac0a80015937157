//! A clock for SlateDB that never goes back, even when the machine's is set back between two runs.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use slatedb_common::clock::{DefaultSystemClock, SystemClock, SystemClockTicker};

/// SlateDB stamps entries and refuses to go back in time; this clock holds at the highest stamp stored instead.
#[derive(Debug)]
pub(crate) struct StoreClock {
    inner: Arc<dyn SystemClock>,
    floor_ms: AtomicI64,
}

impl StoreClock {
    pub fn new(inner: Option<Arc<dyn SystemClock>>) -> Self {
        StoreClock {
            inner: inner.unwrap_or_else(|| Arc::new(DefaultSystemClock::new())),
            floor_ms: AtomicI64::new(i64::MIN),
        }
    }

    /// From now on the clock shows at least `tick_ms`.
    pub fn raise(&self, tick_ms: i64) {
        self.floor_ms.fetch_max(tick_ms, Ordering::AcqRel);
    }

    pub fn now_ms(&self) -> i64 {
        self.inner
            .now()
            .timestamp_millis()
            .max(self.floor_ms.load(Ordering::Acquire))
    }
}

impl SystemClock for StoreClock {
    fn now(&self) -> DateTime<Utc> {
        let now = self.inner.now();
        let floor_ms = self.floor_ms.fetch_max(now.timestamp_millis(), Ordering::AcqRel);
        let behind = floor_ms.saturating_sub(now.timestamp_millis());
        if behind > 0 && floor_ms != i64::MIN {
            now.checked_add_signed(TimeDelta::milliseconds(behind))
                .unwrap_or(now)
        } else {
            now
        }
    }

    fn sleep<'a>(&'a self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        self.inner.sleep(duration)
    }

    fn ticker<'a>(&'a self, duration: Duration) -> SystemClockTicker<'a> {
        SystemClockTicker::new(self, duration)
    }
}
