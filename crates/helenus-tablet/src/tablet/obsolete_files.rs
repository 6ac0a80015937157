//! Deletes SSTables that no longer belong to a tablet, soon after a compaction has replaced them.
//!
//! SlateDB keeps replaced files for a fixed time, for reads that began before. Here that time is short, so that the disk holds little more
//! than live data. A scan that takes longer delays the deletion.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use object_store::ObjectStore;
use slatedb::GarbageCollectorBuilder;
use slatedb::config::{GarbageCollectorDirectoryOptions, GarbageCollectorOptions};
use slatedb_common::clock::SystemClock;

use crate::metadata::slatedb_layout::tablet_path;
use crate::tablet::Tablet;

/// Maximum age of the manifest that a scan sees. SSTables may have been replaced this long before the scan began, since the tablet polls
/// its manifest each second.
const MANIFEST_LAG: Duration = Duration::from_secs(2);
/// Maximum time between sweeps. Files may be obsolete although no compaction was seen to end, as after a crash.
const INTERVAL_MAX: Duration = Duration::from_secs(60);
/// Number of checkpoints without a pause after a sweep. A sweep reads the manifest of each checkpoint, which is a request each in a bucket.
/// Each further checkpoint adds [`CHECKPOINT_PAUSE`].
const FREE_CHECKPOINTS: usize = 10;
const CHECKPOINT_PAUSE: Duration = Duration::from_secs(5);

/// The scans in progress, by the second in which they began.
#[derive(Debug)]
pub(crate) struct Scans {
    origin: Instant,
    /// Scans by second, as a ring of about an hour. An older scan is counted as a young one.
    began: Box<[AtomicU32]>,
}

/// A scan in progress.
#[derive(Debug)]
pub(crate) struct ScanGuard {
    scans: Arc<Scans>,
    second: usize,
}

impl Drop for ScanGuard {
    fn drop(&mut self) {
        if let Some(count) = self.scans.began.get(self.second) {
            count.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Scans {
    const SECONDS: usize = 4096;

    pub fn new() -> Arc<Scans> {
        Arc::new(Scans {
            origin: Instant::now(),
            began: (0..Self::SECONDS).map(|_| AtomicU32::new(0)).collect(),
        })
    }

    fn second(&self) -> usize {
        self.origin.elapsed().as_secs() as usize % Self::SECONDS
    }

    pub fn begin(self: &Arc<Self>) -> ScanGuard {
        let second = self.second();
        if let Some(count) = self.began.get(second) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        ScanGuard {
            scans: self.clone(),
            second,
        }
    }

    /// Returns true if a scan in progress began longer than `age` ago.
    pub fn any_older(&self, age: Duration) -> bool {
        let now = self.second();
        let age = (age.as_secs() as usize).min(Self::SECONDS - 1);
        let young = |second: usize| (now + Self::SECONDS - second) % Self::SECONDS <= age;
        self.began
            .iter()
            .enumerate()
            .any(|(second, count)| count.load(Ordering::Relaxed) > 0 && !young(second))
    }
}

/// State that decides when a tablet's obsolete files are swept.
pub(crate) struct ObsoleteFileCollector {
    /// Number of compactions that have ended, and the time at which the last end was noticed.
    ended: u64,
    last_end: Instant,
    due: Instant,
    /// End of the pause after the last sweep.
    rested: Instant,
}

impl ObsoleteFileCollector {
    pub fn new(garbage_age: Duration) -> ObsoleteFileCollector {
        let now = Instant::now();
        ObsoleteFileCollector {
            ended: 0,
            last_end: now,
            due: now + garbage_age,
            rested: now,
        }
    }

    /// Sweeps the tablet if a sweep is due.
    pub async fn run(
        &mut self,
        tablet: &Tablet,
        store: &Arc<dyn ObjectStore>,
        clock: &Arc<dyn SystemClock>,
        garbage_age: Duration,
    ) {
        let ended = tablet.compactions.ended();
        let now = Instant::now();
        let until_deleted = garbage_age + Duration::from_secs(1);
        if ended != self.ended {
            (self.ended, self.last_end) = (ended, now);
            self.due = self.due.min(now + until_deleted);
        }
        if now < self.due.max(self.rested) {
            return;
        }
        // A remote compactor dates its new files by its own clock. If that clock is slow, they would look old enough to be deleted.
        if tablet.compactions.elsewhere.is_on() && tablet.compactions.has_jobs() {
            return;
        }
        if tablet.scans.any_older(garbage_age.saturating_sub(MANIFEST_LAG)) {
            return;
        }
        if tablet.see_files() {
            // A read that has just begun may still see the replaced files. They are deleted in the next round.
            return;
        }
        if tablet.limits.is_in_bucket() {
            if !sees_all(tablet).await {
                return;
            }
            self.rested = now + pause_after_sweep(tablet);
        }
        let next = self.last_end + until_deleted;
        self.due = if next > now { next } else { now + INTERVAL_MAX };
        let options = GarbageCollectorOptions {
            manifest_options: None,
            wal_options: None,
            wal_fence_options: None,
            compacted_options: Some(GarbageCollectorDirectoryOptions {
                interval: None,
                min_age: garbage_age,
                dry_run: false,
            }),
            compactions_options: None,
            detach_options: None,
            boundary_files_enabled: false,
            ..GarbageCollectorOptions::default()
        };
        GarbageCollectorBuilder::new(tablet_path(tablet.id()), store.clone())
            .with_options(options)
            .with_system_clock(clock.clone())
            .build()
            .run_gc_once()
            .await;
    }
}

fn pause_after_sweep(tablet: &Tablet) -> Duration {
    let manifest = tablet.db.manifest();
    let checkpoints = manifest.map_or(0, |manifest| manifest.checkpoints().len());
    CHECKPOINT_PAUSE * u32::try_from(checkpoints.saturating_sub(FREE_CHECKPOINTS)).unwrap_or(u32::MAX)
}

/// Returns true if the database of a tablet in a bucket had already seen its newest manifest.
async fn sees_all(tablet: &Tablet) -> bool {
    let Ok(db) = tablet.db.owned() else {
        return false;
    };
    let seen = db.manifest().id();
    let refreshed = db.refresh_manifest().await;
    refreshed.is_ok() && db.manifest().id() == seen
}

#[cfg(test)]
#[path = "obsolete_files_tests.rs"]
mod tests;
