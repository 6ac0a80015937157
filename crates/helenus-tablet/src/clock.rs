//! A clock for SlateDB that never goes back, even if the machine's clock is set back between two runs.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::Duration;

use chrono::{DateTime, Utc};
use slatedb_common::clock::{DefaultSystemClock, SystemClock, SystemClockTicker};
use tokio::time::Instant;

use crate::threads::is_stepped;

/// Returns the time since boot. Unlike `Instant`, this clock also runs while the machine is suspended. On a stepped thread it is the
/// runtime's clock, with another origin.
#[allow(
    clippy::disallowed_methods,
    reason = "the one place that reads the clock since boot"
)]
pub(crate) fn since_boot() -> Duration {
    if is_stepped() {
        static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
        // The clock of another node may be behind that of the origin.
        return (Instant::now() + Duration::from_secs(86_400)).duration_since(*ORIGIN);
    }
    #[cfg(target_os = "linux")]
    let id = rustix::time::ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    let id = rustix::time::ClockId::Monotonic;
    let time = rustix::time::clock_gettime(id);
    Duration::new(
        time.tv_sec.max(0) as u64,
        time.tv_nsec.clamp(0, 999_999_999) as u32,
    )
}

/// Time of a group commit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CommitTime {
    /// Time by the store's clock, which never goes back, in ms.
    pub clock_ms: i64,
    /// Lead of the store's clock over the machine's clock, in ms.
    pub ahead_ms: u32,
}

impl CommitTime {
    /// Returns the time by the machine's clock, in ms.
    pub fn machine_ms(&self) -> i64 {
        self.clock_ms.saturating_sub(i64::from(self.ahead_ms))
    }
}

impl From<i64> for CommitTime {
    /// Returns a time that both clocks show.
    fn from(clock_ms: i64) -> CommitTime {
        CommitTime {
            clock_ms,
            ahead_ms: 0,
        }
    }
}

/// The clock by which SlateDB stamps entries. SlateDB refuses to go back in time, so this clock stands still at the highest stored stamp
/// until the machine's clock has passed it.
#[derive(Debug)]
pub(crate) struct StoreClock {
    inner: Arc<dyn SystemClock>,
    floor_ms: AtomicI64,
    /// The highest stamp that was found in storage.
    found_ms: AtomicI64,
    /// The latest commit time by the machine's clock since the last [`StoreClock::take_latest_commit_ms`], in ms.
    latest_commit_ms: AtomicI64,
    /// The newest write timestamp that was assigned, in microseconds. The clock is kept beyond it.
    stamps_us: OnceLock<Arc<AtomicI64>>,
}

impl StoreClock {
    pub fn new(inner: Option<Arc<dyn SystemClock>>) -> Self {
        StoreClock {
            inner: inner.unwrap_or_else(|| Arc::new(DefaultSystemClock::new())),
            floor_ms: AtomicI64::new(i64::MIN),
            found_ms: AtomicI64::new(i64::MIN),
            latest_commit_ms: AtomicI64::new(i64::MIN),
            stamps_us: OnceLock::new(),
        }
    }

    /// Keeps the clock beyond the write timestamps in `stamps_us`, in microseconds, so that stored times show how far they had come. Only
    /// the first call has an effect.
    pub fn keep_beyond(&self, stamps_us: Arc<AtomicI64>) {
        let _ = self.stamps_us.set(stamps_us);
    }

    fn pass_stamps(&self) {
        if let Some(stamps_us) = self.stamps_us.get() {
            let beyond_ms = stamps_us.load(Ordering::Acquire).div_euclid(1000) + 1;
            self.floor_ms.fetch_max(beyond_ms, Ordering::AcqRel);
        }
    }

    /// Raises the clock to at least `tick_ms`, a stamp that was found in storage.
    pub fn raise(&self, tick_ms: i64) {
        self.found_ms.fetch_max(tick_ms, Ordering::AcqRel);
        self.floor_ms.fetch_max(tick_ms, Ordering::AcqRel);
    }

    /// Returns the highest stamp that was found in storage. Unlike [`StoreClock::now_ms`], this does not follow the write timestamps of
    /// this process. Raising those to [`StoreClock::now_ms`] would move both ahead of real time with each call.
    pub fn found_ms(&self) -> i64 {
        self.found_ms.load(Ordering::Acquire)
    }

    pub fn now_ms(&self) -> i64 {
        self.pass_stamps();
        self.machine_ms().max(self.floor_ms.load(Ordering::Acquire))
    }

    /// Returns the current time for a commit, and records it.
    pub fn commit_time(&self) -> CommitTime {
        let clock_ms = self.now_ms();
        let ahead_ms = clock_ms.saturating_sub(self.machine_ms()).max(0);
        let time = CommitTime {
            clock_ms,
            ahead_ms: u32::try_from(ahead_ms).unwrap_or(u32::MAX),
        };
        self.note_commit(time);
        time
    }

    /// Records the time of a commit, including commits that were found in a log.
    pub fn note_commit(&self, time: CommitTime) {
        self.latest_commit_ms
            .fetch_max(time.machine_ms(), Ordering::AcqRel);
    }

    /// Returns the latest commit time by the machine's clock since the last call, in ms. `None` if there was no commit.
    pub fn take_latest_commit_ms(&self) -> Option<i64> {
        let latest_ms = self.latest_commit_ms.swap(i64::MIN, Ordering::AcqRel);
        (latest_ms != i64::MIN).then_some(latest_ms)
    }

    /// Returns the time by the machine's clock in ms, which decides for reads whether a cell has expired.
    pub fn machine_ms(&self) -> i64 {
        self.inner.now().timestamp_millis()
    }
}

impl SystemClock for StoreClock {
    fn now(&self) -> DateTime<Utc> {
        self.pass_stamps();
        let now = self.inner.now();
        let floor_ms = self.floor_ms.fetch_max(now.timestamp_millis(), Ordering::AcqRel);
        // While the clock stands still it shows whole milliseconds. With the fractions of the machine's clock, it would go back and forth
        // within one millisecond.
        match DateTime::from_timestamp_millis(floor_ms) {
            Some(floor) if floor_ms > now.timestamp_millis() => floor,
            _ => now,
        }
    }

    fn sleep<'a>(&'a self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        self.inner.sleep(duration)
    }

    fn ticker<'a>(&'a self, duration: Duration) -> SystemClockTicker<'a> {
        SystemClockTicker::new(self, duration)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_never_goes_back_before_it_is_held_while_it_is_and_after() {
        let clock = StoreClock::new(None);
        let begin = clock.now();
        let mut last = begin;
        let mut is_held = false;
        while last - begin < chrono::TimeDelta::milliseconds(40) {
            let now = clock.now();
            assert!(now >= last, "{last} and then {now}");
            last = now;
            if !is_held && now - begin > chrono::TimeDelta::milliseconds(5) {
                clock.raise(now.timestamp_millis() + 20);
                is_held = true;
            }
        }
    }

    #[test]
    fn expiry_follows_machine_clock() {
        let clock = StoreClock::new(None);
        let day_ms = 24 * 3600 * 1000;
        let ahead_ms = clock.machine_ms() + day_ms;
        clock.raise(ahead_ms);
        assert!(clock.now_ms() >= ahead_ms);
        assert!(clock.machine_ms() < ahead_ms);
    }

    #[test]
    fn latest_commit_is_by_the_machines_clock() {
        let clock = StoreClock::new(None);
        assert_eq!(clock.take_latest_commit_ms(), None);
        clock.raise(clock.machine_ms() + 60_000);
        let before_ms = clock.machine_ms();
        clock.commit_time();
        let latest_ms = clock.take_latest_commit_ms().unwrap();
        assert!((before_ms..=clock.machine_ms()).contains(&latest_ms));
        assert_eq!(clock.take_latest_commit_ms(), None);
    }

    #[test]
    fn stamps_that_follow_what_was_found_stay_where_they_are() {
        let clock = StoreClock::new(None);
        let ahead_ms = clock.machine_ms() + 60_000;
        clock.raise(ahead_ms);
        let stamps_us = Arc::new(AtomicI64::new(0));
        clock.keep_beyond(stamps_us.clone());
        for _ in 0..10 {
            stamps_us.fetch_max(clock.found_ms() * 1000, Ordering::AcqRel);
            clock.now_ms();
        }
        assert_eq!(stamps_us.load(Ordering::Acquire), ahead_ms * 1000);
    }

    #[test]
    fn it_is_beyond_the_stamps_that_are_given() {
        let clock = StoreClock::new(None);
        let stamps_us = Arc::new(AtomicI64::new(0));
        clock.keep_beyond(stamps_us.clone());
        for ahead_us in [1, 999, 1_000, 5_000_000] {
            let stamp_us = clock.now().timestamp_micros() + ahead_us;
            stamps_us.store(stamp_us, Ordering::Release);
            assert!(clock.now_ms() * 1000 > stamp_us);
            assert!(clock.now().timestamp_micros() > stamp_us);
        }
    }
}
