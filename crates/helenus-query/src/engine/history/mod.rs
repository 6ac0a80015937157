//! History: any second within a window (`point_in_time_window`) can be read, branched from and restored.
//!
//! From time to time all tablets are pinned at a consistent cut, a [`Base`], together with the positions of all nodes' logs. The store as
//! of a time is the last base before it, plus the writes in the logs from there until that time ([`as_of`]). The schema of a time follows
//! from its changes, which are written down as they are made ([`timeline`]). The keeper ([`keeper`]) takes bases and removes what is older
//! than the window.
//!
//! The order of writes is that of the logs, and of the numbers of bases. Clocks only say where to cut. Their steps are recorded
//! ([`clock_watch`]): only times that a clock has shown wrongly are uncertain ([`eras`]).
//!
//! In a cluster, commit times are those of the nodes' clocks. A time in history is as exact as these clocks agree.

pub(super) mod as_of;
mod base;
mod clock_watch;
mod eras;
pub(super) mod keeper;
pub(super) mod released;
pub(super) mod timeline;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use helenus_cql::error::CqlError;
use helenus_tablet::PinnedTablet;
use serde::Serialize;
use tokio::sync::Mutex;

use super::Engine;
use crate::boxed;
use crate::failure::store_error;
use base::Base;
use clock_watch::{ClockWatch, Run};

/// Maximum difference between the clocks of nodes, in milliseconds.
const SKEW_MS: i64 = 60_000;

/// Maximum time between the readings of two clocks that count as simultaneous, and number of tries until they are accepted anyway.
const CLOCKS_APART_MAX: Duration = Duration::from_millis(20);
const CLOCK_TRIES: u32 = 20;

/// State of the history of a store.
pub(crate) struct History {
    /// Length of the window that can be read. `None` if no history is kept.
    window: Option<Duration>,
    /// The bases in order, as they were last read.
    bases: Mutex<Vec<Arc<Base>>>,
    /// Records of this node's clock, and the time since which it is watched.
    clock: parking_lot::Mutex<ClockWatch>,
    since: Instant,
    /// True once this process has written down a change of the schema.
    has_noted: AtomicBool,
    /// Figures that the keeper found last.
    figures: parking_lot::Mutex<HistoryFigures>,
    /// Reason of the keeper's last failure. `None` if its last run succeeded.
    failure: parking_lot::Mutex<Option<String>>,
}

/// Figures of the history, as its keeper found them last. 0 on nodes that are not the keeper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HistoryFigures {
    /// Number of bases.
    pub cuts: usize,
    /// The first time that can be read, in milliseconds since the Unix epoch. `None` if it is unknown.
    pub earliest_ms: Option<i64>,
    /// Bytes of logs that are kept for history.
    pub log_bytes: u64,
    /// Number of times in history that this node has opened for reads.
    pub times_opened: u64,
}

/// Report of the history and the space that it needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HistoryReport {
    /// Length of the window in milliseconds. `None` if no history is kept.
    pub window_ms: Option<u64>,
    /// The first time that can be read, in milliseconds since the Unix epoch. `None` if there is none yet.
    pub earliest_ms: Option<i64>,
    /// Number of bases.
    pub bases: usize,
    /// Bytes of logs that are kept for history.
    pub log_bytes: u64,
    /// Bytes of SSTables that only history still needs.
    pub table_bytes: u64,
}

impl History {
    pub fn new(window: Option<Duration>) -> History {
        History {
            window,
            bases: Mutex::default(),
            clock: parking_lot::Mutex::default(),
            since: Instant::now(),
            has_noted: AtomicBool::new(false),
            figures: parking_lot::Mutex::default(),
            failure: parking_lot::Mutex::default(),
        }
    }

    pub fn is_on(&self) -> bool {
        self.window.is_some()
    }
}

impl Engine {
    /// Returns the figures of the history, and the time span that can be read. `None` if no history is kept.
    pub fn history_figures(&self) -> Option<(HistoryFigures, Duration)> {
        let figures = HistoryFigures {
            times_opened: self.cuts.open_history.times_opened(),
            ..*self.cuts.history.figures.lock()
        };
        let reach_ms = figures
            .earliest_ms
            .map_or(0, |first_ms| self.now_ms().saturating_sub(first_ms));
        let reach = Duration::from_millis(reach_ms.max(0).unsigned_abs());
        self.cuts.history.is_on().then_some((figures, reach))
    }

    /// Returns the length of the window in which any time shall be readable. `None` if no history is kept.
    pub fn history_window(&self) -> Option<Duration> {
        self.cuts.history.window
    }

    /// Returns the reason why this node's keeper failed the last time. `None` if it did not.
    pub fn history_failure(&self) -> Option<String> {
        self.cuts.history.failure.lock().clone()
    }

    /// Reads this node's clock. Returns true if it was set back since the last base.
    fn watch_clock(&self) -> bool {
        // The commit time is taken before the clock is read, so that it is not later unless the clock was set back.
        let latest_ms = self.context.store.take_latest_commit_ms();
        let history = &self.cuts.history;
        let mut clock = history.clock.lock();
        let (steady, wall_ms) = self.both_clocks();
        if clock.read(steady, wall_ms, latest_ms) {
            tracing::warn!("the clock was set back: times that it has shown twice can't be read");
        }
        clock.was_set_back
    }

    /// Reads the steady clock, and the wall clock in ms, at the same time. A busy machine may suspend a thread between two readings, which
    /// would look like a step of the wall clock. So the steady clock is read before and after.
    fn both_clocks(&self) -> (Duration, i64) {
        let since = self.cuts.history.since;
        let mut tries = 0;
        loop {
            let before = since.elapsed();
            let wall_ms = self.now_ms();
            tries += 1;
            if since.elapsed() - before < CLOCKS_APART_MAX || tries == CLOCK_TRIES {
                return (before, wall_ms);
            }
        }
    }

    /// Returns the runs of the clocks since the base that was taken at `taken_ms`, in order.
    fn clock_runs(&self, taken_ms: Option<i64>) -> Vec<Run> {
        self.watch_clock();
        let clock = self.cuts.history.clock.lock();
        clock.runs_since(taken_ms, self.now_ms())
    }

    /// Returns the tablets pinned by bases and by origins that no table has any more. Tablets of other nodes are included.
    ///
    /// # Errors
    /// The store can't be read. It is unknown then which tablets may be unpinned.
    pub(super) async fn pinned_by_history(&self) -> Result<Vec<PinnedTablet>, CqlError> {
        let bases = self.bases().await?;
        let of_bases = bases.iter().flat_map(|base| base.tablets.iter().cloned());
        Ok(of_bases.chain(self.pinned_by_released().await?).collect())
    }

    /// Returns a report of the history and the space that it needs.
    ///
    /// # Errors
    /// The store can't be read.
    #[boxed]
    pub async fn history_report(&self) -> Result<HistoryReport, CqlError> {
        let store = &self.context.store;
        let bases = self.bases().await?;
        let snapshots = super::snapshots::pinned_by(&self.schema())
            .cloned()
            .collect::<Vec<_>>();
        let of_history = self.pinned_by_history().await?;
        Ok(HistoryReport {
            window_ms: self.cuts.history.window.map(|window| window.as_millis() as u64),
            earliest_ms: bases.first().map(|base| base.taken_ms),
            bases: bases.len(),
            log_bytes: store.history_bytes().await.map_err(store_error)?,
            table_bytes: store
                .bytes_of_pinned(&of_history, &snapshots)
                .await
                .map_err(store_error)?,
        })
    }
}
