//! Records the steps of a node's clock. The wall clock is compared with a steady clock, which only goes forward.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A range of times that a clock showed without a step, in milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Run {
    pub first_ms: i64,
    pub last_ms: i64,
}

impl Run {
    pub fn new(first_ms: i64, last_ms: i64) -> Run {
        Run {
            first_ms,
            last_ms: last_ms.max(first_ms),
        }
    }

    pub fn contains(&self, time_ms: i64) -> bool {
        (self.first_ms..=self.last_ms).contains(&time_ms)
    }
}

/// Minimum difference between the two clocks that counts as a step, in milliseconds.
pub(crate) const STEP_MS: i64 = 500;
/// Maximum number of runs since the last base. If there are more, the oldest are merged.
const RUNS_MAX: usize = 64;

/// The last reading of the clocks.
#[derive(Clone, Copy)]
struct Reading {
    /// Time of the steady clock, in milliseconds since a fixed time.
    steady_ms: i64,
    wall_ms: i64,
}

impl Reading {
    fn offset_ms(&self) -> i64 {
        self.wall_ms.saturating_sub(self.steady_ms)
    }
}

/// Watches the clock of a node.
#[derive(Default)]
pub(crate) struct ClockWatch {
    /// Runs since the last base, in order. Empty before the first reading.
    runs: Vec<Run>,
    last: Option<Reading>,
    /// True if the clock was set back since the last base.
    pub was_set_back: bool,
    /// True once this node has taken a base.
    has_base: bool,
    /// Time of the latest commit in the logs of former processes, found before this node has taken a base. `None` if there was none.
    found_ms: Option<i64>,
    /// Offset of the wall clock from the steady clock, and the steady time since which the offset has not changed.
    settling: Option<(i64, i64)>,
    /// The last offset that was stable for long enough. `None` before there is one.
    settled_offset_ms: Option<i64>,
}

impl ClockWatch {
    /// Reads the clocks. `latest_commit_ms` is the latest time of a commit since the last reading. Returns true if the clock was set back.
    pub fn read(&mut self, steady: Duration, wall_ms: i64, latest_commit_ms: Option<i64>) -> bool {
        let now = Reading {
            steady_ms: i64::try_from(steady.as_millis()).unwrap_or(i64::MAX),
            wall_ms,
        };
        let was_set_back = match self.last.replace(now) {
            Some(last) => self.follow(last, now, latest_commit_ms.unwrap_or(i64::MIN)),
            None => {
                self.found_ms = latest_commit_ms;
                self.runs = vec![Run::new(wall_ms, wall_ms)];
                false
            }
        };
        self.settle(now);
        self.was_set_back |= was_set_back;
        was_set_back
    }

    fn follow(&mut self, last: Reading, now: Reading, latest_commit_ms: i64) -> bool {
        let passed_ms = now.steady_ms.saturating_sub(last.steady_ms).max(0);
        let expected_ms = last.wall_ms.saturating_add(passed_ms);
        let Some(run) = self.runs.last_mut() else {
            return false;
        };
        let next = Run::new(now.wall_ms.saturating_sub(passed_ms), now.wall_ms);
        let is_above = latest_commit_ms > now.wall_ms.saturating_add(STEP_MS);
        if is_above && !self.has_base {
            // Logs of former processes are replayed in the background, so the commit may be one of theirs.
            self.found_ms = self.found_ms.max(Some(latest_commit_ms));
            run.last_ms = run.last_ms.max(now.wall_ms);
            return true;
        }
        if is_above && latest_commit_ms > expected_ms.saturating_add(STEP_MS) {
            // The clock was ahead and was corrected again between two readings. Only the commit shows it.
            run.last_ms = run.last_ms.max(last.wall_ms);
            self.runs.push(Run::new(latest_commit_ms, latest_commit_ms));
            self.push(next);
            return true;
        }
        let step_ms = now.wall_ms.saturating_sub(expected_ms);
        if step_ms.abs() < STEP_MS {
            run.last_ms = run.last_ms.max(now.wall_ms);
            return false;
        }
        // The time of the step is unknown: it was at the beginning or the end of the interval between the two readings.
        run.last_ms = run
            .last_ms
            .max(expected_ms.min(latest_commit_ms.max(last.wall_ms)));
        self.push(next);
        step_ms < 0
    }

    fn push(&mut self, next: Run) {
        self.runs.push(next);
        if self.runs.len() > RUNS_MAX {
            let oldest = self.runs.remove(0);
            if let Some(run) = self.runs.first_mut() {
                run.first_ms = run.first_ms.min(oldest.first_ms);
                run.last_ms = run.last_ms.max(oldest.last_ms);
            }
        }
    }

    fn settle(&mut self, now: Reading) {
        let offset_ms = now.offset_ms();
        self.settling = match self.settling {
            Some((settling_ms, since_ms)) if (offset_ms - settling_ms).abs() < STEP_MS => {
                Some((offset_ms, since_ms))
            }
            _ => Some((offset_ms, now.steady_ms)),
        };
        // A step back is believed at once, because an earlier time only keeps more history. A step forward is not, because removed history
        // cannot be restored.
        if self
            .settled_offset_ms
            .is_some_and(|settled_ms| settled_ms > offset_ms)
        {
            self.settled_offset_ms = Some(offset_ms);
        }
    }

    /// Returns the present time by a clock that has had no step for `lasting`. `None` before there is such a clock.
    pub fn settled_ms(&mut self, lasting: Duration) -> Option<i64> {
        let now = self.last?;
        if let Some((offset_ms, since_ms)) = self.settling
            && now.steady_ms.saturating_sub(since_ms).unsigned_abs() >= lasting.as_millis() as u64
        {
            self.settled_offset_ms = Some(offset_ms);
        }
        let settled_ms = self.settled_offset_ms?;
        Some(now.steady_ms.saturating_add(settled_ms))
    }

    /// Returns the runs of the clocks since the last base up to now, in order. `taken_ms` is the time of that base, `None` if there is
    /// none.
    pub fn runs_since(&self, taken_ms: Option<i64>, now_ms: i64) -> Vec<Run> {
        let mut runs = self.runs.clone();
        match runs.last_mut() {
            Some(run) => run.last_ms = run.last_ms.max(now_ms),
            None => runs.push(Run::new(taken_ms.unwrap_or(now_ms), now_ms)),
        }
        let (Some(taken_ms), Some(first)) = (taken_ms, runs.first_mut()) else {
            return runs;
        };
        if first.contains(taken_ms) {
            // The base was taken during this run, by this node or another one.
            first.first_ms = taken_ms;
            return runs;
        }
        // The base was taken by a former process, which went on until its last commit.
        let last_ms = self.found_ms.unwrap_or(taken_ms).max(taken_ms);
        if (0..STEP_MS).contains(&last_ms.saturating_sub(first.first_ms)) {
            first.first_ms = last_ms;
            first.last_ms = first.last_ms.max(last_ms);
        }
        runs.insert(0, Run::new(taken_ms, last_ms));
        runs
    }

    /// Starts again after a base was taken.
    pub fn restart(&mut self, taken_ms: i64) {
        let last_ms = self.runs.last().map_or(taken_ms, |run| run.last_ms);
        self.runs = vec![Run::new(taken_ms, last_ms)];
        self.found_ms = None;
        self.has_base = true;
        self.was_set_back = false;
    }
}

#[cfg(test)]
#[path = "clock_watch_tests.rs"]
mod tests;
