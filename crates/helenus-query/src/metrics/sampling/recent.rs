//! The most active partitions of the last minutes. They are estimated from one request in so many, which is cheap enough to be always on.
//!
//! Each minute has its own counts, and the oldest are dropped. A partition that was active only an hour ago is not in the list.

use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::{Sample, SamplerKind, Top, split_sample_key};

/// Maximum number of partitions counted at a time, for reads and for writes each.
const CAPACITY: usize = 128;
/// Length of a window, and the number of windows kept beside the current one.
const WINDOW: Duration = Duration::from_secs(60);
const WINDOWS_KEPT: usize = 4;

/// The list of recently active partitions of a node.
#[derive(Debug, Default)]
pub struct RecentPartitions {
    /// Sampling interval: one request in so many is counted. 0 if the list is off.
    interval: AtomicU32,
    windows: Mutex<VecDeque<Window>>,
}

/// The counts of one window.
#[derive(Debug)]
struct Window {
    began: Instant,
    reads: Counts,
    writes: Counts,
}

#[derive(Debug)]
struct Counts {
    top: Top,
    total: u64,
}

/// The most active partitions, each with its estimated number of requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecentActivity {
    pub top: Vec<Sample>,
    /// The estimated number of requests for all partitions.
    pub total: u64,
}

/// Activity in the last minutes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecentReport {
    /// Sampling interval: one request in so many was counted. 0 if the list is off.
    pub interval: u32,
    /// Time that the numbers cover.
    pub span: Duration,
    pub reads: RecentActivity,
    pub writes: RecentActivity,
}

thread_local! {
    /// Number of requests of this thread that are still skipped, and the state of the generator of such numbers.
    static PASSED_OVER: Cell<u32> = const { Cell::new(0) };
    static RANDOM: Cell<u32> = const { Cell::new(0x9e37_79b9) };
}

/// Returns the next number of a small generator (xorshift). Skipping a fixed number of requests would always count the same ones if they
/// come in a cycle.
fn next_random() -> u32 {
    RANDOM.with(|state| {
        let mut x = state.get();
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        state.set(x);
        x
    })
}

impl Window {
    fn new(began: Instant) -> Window {
        let counts = || Counts {
            top: Top::new(CAPACITY),
            total: 0,
        };
        Window {
            began,
            reads: counts(),
            writes: counts(),
        }
    }
}

impl RecentPartitions {
    pub(super) fn set_interval(&self, interval: u32) {
        if self.interval.swap(interval, Ordering::Relaxed) != interval {
            // Counts that were taken with different intervals cannot be added up.
            self.windows.lock().clear();
        }
    }

    pub(super) fn is_on(&self) -> bool {
        self.interval.load(Ordering::Relaxed) > 0
    }

    /// Returns true for one request in `interval` of this thread, on average.
    pub(super) fn is_due(&self) -> bool {
        PASSED_OVER.with(|left| match left.get().checked_sub(1) {
            Some(less) => {
                left.set(less);
                false
            }
            None => {
                let interval = self.interval.load(Ordering::Relaxed).max(1);
                // Number of requests skipped is random between 0 and `most`, so that its mean is `interval - 1`.
                let most = interval.saturating_sub(1).saturating_mul(2);
                left.set(next_random() % most.saturating_add(1));
                true
            }
        })
    }

    /// Counts a read or a write of a partition. Never waits: the request is not counted if the list is locked.
    pub(super) fn record(&self, kind: SamplerKind, key: &[u8]) {
        if let Some(mut windows) = self.windows.try_lock() {
            record(&mut windows, Instant::now(), kind, key);
        }
    }

    /// Returns the most active partitions, at most `most` each for reads and writes.
    pub fn report(&self, most: usize) -> RecentReport {
        let interval = self.interval.load(Ordering::Relaxed);
        let mut windows = self.windows.lock();
        let now = Instant::now();
        forget(&mut windows, now);
        let began = windows.back().map_or(now, |oldest| oldest.began);
        let activity = |counts: fn(&Window) -> &Counts| sum(windows.iter().map(counts), interval, most);
        RecentReport {
            interval,
            span: now.saturating_duration_since(began),
            reads: activity(|window| &window.reads),
            writes: activity(|window| &window.writes),
        }
    }
}

/// Drops the windows that are too old. The current window is the first.
fn forget(windows: &mut VecDeque<Window>, now: Instant) {
    let oldest = WINDOW * (WINDOWS_KEPT as u32 + 1);
    while windows
        .back()
        .is_some_and(|window| now.saturating_duration_since(window.began) >= oldest)
    {
        windows.pop_back();
    }
}

fn record(windows: &mut VecDeque<Window>, now: Instant, kind: SamplerKind, key: &[u8]) {
    let is_current = |window: &Window| now.saturating_duration_since(window.began) < WINDOW;
    if !windows.front().is_some_and(is_current) {
        forget(windows, now);
        windows.truncate(WINDOWS_KEPT);
        windows.push_front(Window::new(now));
    }
    let Some(window) = windows.front_mut() else {
        return;
    };
    let counts = match kind {
        SamplerKind::Reads => &mut window.reads,
        SamplerKind::Writes => &mut window.writes,
        _ => return,
    };
    counts.top.add(key, 1);
    counts.total += 1;
}

fn sum<'w>(windows: impl Iterator<Item = &'w Counts>, interval: u32, most: usize) -> RecentActivity {
    let interval = u64::from(interval);
    let mut total = 0;
    let mut by_key = HashMap::<&Arc<[u8]>, (u64, u64)>::new();
    for counts in windows {
        total += counts.total;
        for entry in counts.top.entries() {
            let (count, error) = by_key.entry(&entry.key).or_default();
            *count += entry.count;
            *error += entry.error;
        }
    }
    let sample = |(key, (count, error)): (&Arc<[u8]>, (u64, u64))| {
        let (table, item) = split_sample_key(key)?;
        Some(Sample {
            table,
            item: item.to_vec(),
            count: count * interval,
            error: error * interval,
        })
    };
    let mut top: Vec<Sample> = by_key.into_iter().filter_map(sample).collect();
    top.sort_by(|left, right| {
        right
            .count
            .cmp(&left.count)
            .then_with(|| left.item.cmp(&right.item))
    });
    top.truncate(most);
    RecentActivity {
        top,
        total: total * interval,
    }
}

#[cfg(test)]
#[path = "recent_tests.rs"]
mod tests;
