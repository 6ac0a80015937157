//! Times of the past: any second of a window (`point_in_time_window`) can be read, branched from and put back.
//!
//! Now and then all tablets are pinned as they are at one moment, a [`Base`], with how far the logs of all nodes are then. What the store was at a
//! time is the last base before it, and what the logs have from there until that time ([`then`]). The schema of a time is known from
//! the changes that are written down as they are made ([`timeline`]). The keeper ([`keeper`]) makes bases and removes what is older than the window.
//!
//! The order of what was written is that of the logs, and of the numbers of bases. Clocks only say where to cut, and what they have shown is watched
//! ([`clock_watch`]): one that was set wrong makes the times uncertain that it has shown, and no others ([`eras`]).
//!
//! In a cluster the times of commits are those of the clocks of the nodes: a time of the past is as exact as these agree.

mod base;
mod clock_watch;
mod eras;
pub(super) mod keeper;
pub(super) mod released;
pub(super) mod then;
pub(super) mod timeline;

use std::sync::Arc;
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

/// By how much clocks of nodes may differ.
const SKEW_MS: i64 = 60_000;

/// What is known of the past.
pub(crate) struct History {
    /// How far back it can be read; none if nothing is kept.
    window: Option<Duration>,
    /// In their order, as they were read last.
    bases: Mutex<Vec<Arc<Base>>>,
    /// What this node's clock has shown, and since when it is watched.
    clock: parking_lot::Mutex<ClockWatch>,
    since: Instant,
    /// As the keeper found them last.
    figures: parking_lot::Mutex<PastFigures>,
    /// Why the keeper failed the last time. `None` if it did not.
    failure: parking_lot::Mutex<Option<String>>,
}

/// What is kept of the past, as the node that keeps it found it last. All is 0 at the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PastFigures {
    /// Moments from which times are reached.
    pub moments: usize,
    /// The first time that can be read, in milliseconds since the Unix epoch.
    pub earliest_ms: Option<i64>,
    /// Bytes of the logs of former times.
    pub log_bytes: u64,
    /// Times that this node has opened for reads.
    pub times_opened: u64,
}

/// What is kept of the past, and what it takes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HistoryReport {
    /// In milliseconds; none if nothing is kept.
    pub window_ms: Option<u64>,
    /// The first time that can be read, in milliseconds since the Unix epoch; none yet without.
    pub earliest_ms: Option<i64>,
    /// Moments from which times are reached.
    pub bases: usize,
    /// Bytes of the logs of former times.
    pub log_bytes: u64,
    /// Bytes of SSTables that only the past still needs.
    pub table_bytes: u64,
}

impl History {
    pub fn new(window: Option<Duration>) -> History {
        History {
            window,
            bases: Mutex::default(),
            clock: parking_lot::Mutex::default(),
            since: Instant::now(),
            figures: parking_lot::Mutex::default(),
            failure: parking_lot::Mutex::default(),
        }
    }

    pub fn is_on(&self) -> bool {
        self.window.is_some()
    }
}

impl Engine {
    /// What is kept of the past, and how far back it can be read; `None` if no past is kept.
    pub fn past_figures(&self) -> Option<(PastFigures, Duration)> {
        let figures = PastFigures {
            times_opened: self.pasts.times_opened(),
            ..*self.history.figures.lock()
        };
        let reach_ms = figures
            .earliest_ms
            .map_or(0, |first_ms| self.now_ms().saturating_sub(first_ms));
        let reach = Duration::from_millis(reach_ms.max(0).unsigned_abs());
        self.history.is_on().then_some((figures, reach))
    }

    /// How far back any time shall be readable. `None` if no past is kept.
    pub fn past_window(&self) -> Option<Duration> {
        self.history.window
    }

    /// Why this node, which keeps the past, could not do so the last time. `None` if it could.
    pub fn past_failure(&self) -> Option<String> {
        self.history.failure.lock().clone()
    }

    /// Looks at this node's clock; true if it was set back since the last base.
    fn watch_clock(&self) -> bool {
        // Before the clock is read, which no commit so far is later than.
        let latest_ms = self.context.store.take_latest_commit_ms();
        let history = &self.history;
        let mut clock = history.clock.lock();
        if clock.read(history.since.elapsed(), self.now_ms(), latest_ms) {
            tracing::warn!("the clock was set back: times of the past that it has shown twice can't be read");
        }
        clock.was_set_back
    }

    /// What clocks have shown since the base that was taken at that time, in the order of time.
    fn clock_runs(&self, taken_ms: Option<i64>) -> Vec<Run> {
        self.watch_clock();
        let clock = self.history.clock.lock();
        clock.runs_since(taken_ms, self.now_ms())
    }

    /// Returns the tablets that bases have pinned, and those of origins that no table has any more; those of other nodes too.
    ///
    /// # Errors
    /// The store can't be read; then it is not known what may be let go.
    pub(super) async fn pinned_by_history(&self) -> Result<Vec<PinnedTablet>, CqlError> {
        let bases = self.bases().await?;
        let of_bases = bases.iter().flat_map(|base| base.tablets.iter().cloned());
        Ok(of_bases.chain(self.pinned_by_released().await?).collect())
    }

    /// What is kept of the past, and what it takes.
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
            window_ms: self.history.window.map(|window| window.as_millis() as u64),
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
