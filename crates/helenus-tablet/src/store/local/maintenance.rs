//! Keeps the log short: retires segments whose records are in SSTables, flushes the tablets that pin the log, and prepares spare files.
//! Also requests compactions for tombstones and deletes obsolete files.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use object_store::ObjectStore;
use slatedb::admin::Admin;
use slatedb_common::clock::SystemClock;

use crate::compaction::TombstoneTrigger;
use crate::disk::disk_reserve::DiskReserve;
use crate::disk::local_store::DiskSpace;
use crate::error::StoreError;
use crate::failure_streak::FailureStreak;
use crate::history::{Frame, Segments, archive};
use crate::log::replay::{SegmentFrames, read_segment};
use crate::log::segment::Folder;
use crate::log::{Ledger, SegmentInfo};
use crate::metadata::inventory::Inventory;
use crate::metadata::slatedb_layout::tablet_path;
use crate::tablet::Tablet;
use crate::tablet::obsolete_files::ObsoleteFileCollector;

const INTERVAL: Duration = Duration::from_millis(500);
/// Number of files of retired segments that are always kept for new segments.
const SPARES_MIN: usize = 2;
/// Time after which spare files that were not needed are deleted.
const SPARES_KEPT: Duration = Duration::from_secs(60);

/// Finds out how many spare files are too many. A flush retires as many segments as were written since the flush before. If their files are
/// not kept, the files of the next segments have to be filled again.
struct SpareSegments {
    since: Instant,
    /// Minimum number of spare files since then.
    fewest: usize,
}

impl SpareSegments {
    fn new() -> Self {
        SpareSegments {
            since: Instant::now(),
            fewest: usize::MAX,
        }
    }

    /// Records the number of spare files. Returns the number that was not needed for a while, 0 before that time is over.
    fn unneeded(&mut self, count: usize) -> usize {
        self.fewest = self.fewest.min(count);
        if self.since.elapsed() < SPARES_KEPT {
            return 0;
        }
        let fewest = std::mem::replace(self, SpareSegments::new()).fewest;
        fewest.saturating_sub(SPARES_MIN)
    }
}

pub(crate) struct Maintenance {
    pub ledger: Arc<Ledger>,
    pub inventory: Arc<Inventory>,
    pub reserve: Arc<DiskReserve>,
    pub folder: Folder,
    pub log_max_bytes: u64,
    pub tablets: Vec<Arc<Tablet>>,
    pub store: Arc<dyn ObjectStore>,
    pub space: Arc<DiskSpace>,
    pub wake: Arc<tokio::sync::Notify>,
    pub clock: Arc<dyn SystemClock>,
    pub garbage_age: Duration,
    /// Id of the log in the history.
    pub log: uuid::Uuid,
    /// True if segments are written to the history before they are trimmed.
    pub keeps_history: bool,
}

/// Reads a segment of the log up to `end`, in the form of the history.
pub(crate) fn archived_segment(folder: &Path, number: u64, end: u64) -> Result<Segments, StoreError> {
    let SegmentFrames { previous, frames } = read_segment(folder, number, end)?;
    let frame = |(at, time_ms, records)| (at, Frame { time_ms, records });
    Ok(Segments {
        previous,
        first: number,
        last: number,
        frames: frames.into_iter().map(frame).collect(),
    })
}

impl Maintenance {
    /// Runs maintenance until the task is aborted.
    pub async fn run(self: Arc<Self>) {
        let mut watches: Vec<TombstoneTrigger> =
            self.tablets.iter().map(|_| TombstoneTrigger::new()).collect();
        let mut sweeps: Vec<ObsoleteFileCollector> = self
            .tablets
            .iter()
            .map(|_| ObsoleteFileCollector::new(self.garbage_age))
            .collect();
        let mut spares = SpareSegments::new();
        let mut trimming =
            FailureStreak::new("the log could not be cut; trying again", "the log is cut again");
        let mut flushing = FailureStreak::new(
            "a tablet could not be flushed; trying again",
            "tablets are flushed again",
        );
        loop {
            let _ = tokio::time::timeout(INTERVAL, self.wake.notified()).await;
            self.ledger.note_end();
            trimming.note(&self.trim().await);
            let flushed = self.flush_pinning_tablets().await;
            flushing.note(&flushed.and(self.clean(&mut watches).await));
            for tablet in &self.tablets {
                tablet.see_files();
            }
            for (tablet, sweep) in self.tablets.iter().zip(&mut sweeps) {
                sweep
                    .run(tablet, &self.store, &self.clock, self.garbage_age)
                    .await;
            }
            if self.space.check().is_err() {
                self.folder.drop_spares();
            } else {
                self.reserve.reserve(self.space.free_bytes());
                self.prepare_spare().await;
                self.give_back_spares(&mut spares).await;
            }
        }
    }

    /// Retires the oldest segments whose records are in the SSTables of each tablet.
    ///
    /// # Errors
    /// A description of the reason for which unneeded segments are kept.
    pub async fn trim(&self) -> Result<(), String> {
        let in_memory = self
            .tablets
            .iter()
            .map(|tablet| (tablet.id(), tablet.flushed_lsn()))
            .collect();
        if self.retirable(&in_memory).is_empty() {
            return Ok(());
        }
        // The manifest in memory may be newer than the stored one. Only the stored one counts.
        let mut stored = BTreeMap::new();
        for tablet in &self.tablets {
            let admin = Admin::builder(tablet_path(tablet.id()), self.store.clone()).build();
            match admin.read_manifest(None).await {
                Ok(Some(manifest)) => {
                    stored.insert(tablet.id(), manifest.replay_after_wal_id());
                }
                Ok(None) => return Ok(()),
                Err(error) => {
                    return Err(format!(
                        "cannot read the manifest of tablet {}: {error}",
                        tablet.id()
                    ));
                }
            }
        }
        let retirable = self.retirable(&stored);
        let Some(last) = retirable.last() else {
            return Ok(());
        };
        if self.keeps_history {
            let archived = self.archive(&retirable).await;
            archived.map_err(|error| format!("cannot keep the history of the log: {error}"))?;
        }
        let retired = self.retire_segment(last.number, stored).await;
        retired.map_err(|error| error.to_string())?;
        let spare_max = (self.log_max_bytes / self.folder.segment_bytes) as usize;
        let mut removed = 0;
        let mut outcome = Ok(());
        for segment in &retirable {
            if let Err(error) = self.folder.retire(segment, spare_max) {
                outcome = Err(format!("cannot remove segment {}: {error}", segment.number));
                break;
            }
            removed += 1;
        }
        self.ledger.segments.lock().drain(..removed);
        outcome
    }

    /// Writes segments to the history.
    async fn archive(&self, segments: &[SegmentInfo]) -> Result<(), StoreError> {
        for segment in segments {
            let (folder, number, end) = (self.folder.path.clone(), segment.number, segment.bytes);
            let reading = crate::threads::spawn_blocking(move || archived_segment(&folder, number, end));
            let read = reading
                .await
                .map_err(|error| StoreError::Unavailable(error.to_string()))??;
            let now_ms = self.clock.now().timestamp_millis();
            archive::write(&self.store, self.log, read, now_ms).await?;
        }
        Ok(())
    }

    /// Records in the inventory that segments up to this one are not needed any more, since the tablets have their records.
    async fn retire_segment(&self, segment: u64, flushed: BTreeMap<u32, u64>) -> Result<(), StoreError> {
        let inventory = self.inventory.clone();
        let change = move || {
            inventory.change(|contents| {
                contents.log_first = segment + 1;
                contents.flushed = flushed;
            })
        };
        let changed = crate::threads::spawn_blocking(change.clone()).await;
        let mut changed = changed.map_err(|error| StoreError::Unavailable(error.to_string()))?;
        if let Err(StoreError::DiskFull(_)) = changed {
            // Trimming the log frees space, but needs a little itself, so the disk reserve is released.
            self.reserve.release();
            changed = change();
        }
        changed
    }

    fn retirable(&self, flushed: &BTreeMap<u32, u64>) -> Vec<SegmentInfo> {
        let is_flushed = |(tablet, last): &(u32, u64)| flushed.get(tablet).is_some_and(|lsn| last <= lsn);
        let segments = self.ledger.segments.lock();
        segments
            .iter()
            .take_while(|segment| !segment.active && segment.last_lsn.iter().all(is_flushed))
            .cloned()
            .collect()
    }

    /// Flushes the tablets whose records keep the oldest segments, if the log is too long.
    ///
    /// # Errors
    /// A tablet could not be flushed.
    async fn flush_pinning_tablets(&self) -> Result<(), StoreError> {
        let held: Vec<SegmentInfo> = self.ledger.segments.lock().clone();
        let total: u64 = held.iter().map(|segment| segment.bytes).sum();
        if total <= self.log_max_bytes || held.len() < 2 {
            return Ok(());
        }
        let Some(oldest) = held.first() else {
            return Ok(());
        };
        for (id, last) in &oldest.last_lsn {
            if let Some(tablet) = self.tablets.iter().find(|tablet| tablet.id() == *id)
                && tablet.flushed_lsn() < *last
            {
                tablet.flush().await?;
            }
        }
        Ok(())
    }

    /// Flushes and compacts the tablets whose reads pass too many dead rows.
    ///
    /// # Errors
    /// A tablet could not be flushed.
    async fn clean(&self, watches: &mut [TombstoneTrigger]) -> Result<(), StoreError> {
        let mut outcome = Ok(());
        for (tablet, watch) in self.tablets.iter().zip(watches) {
            if !watch.is_due(&tablet.compactions) {
                continue;
            }
            match tablet.flush().await {
                Ok(()) => tablet.compactions.request(),
                Err(error) => outcome = Err(error),
            }
        }
        outcome
    }

    /// Prepares a file for the next segment once the active one is half full.
    async fn prepare_spare(&self) {
        let active = self
            .ledger
            .segments
            .lock()
            .last()
            .filter(|segment| segment.active)
            .cloned();
        let Some(active) = active else { return };
        if active.bytes * 2 < self.folder.segment_bytes {
            return;
        }
        let folder = self.folder.clone();
        let _ = crate::threads::spawn_blocking(move || {
            if let Err(error) = folder.prepare_spare(active.number) {
                tracing::debug!(%error, "no spare log segment could be made");
            }
        })
        .await;
    }

    async fn give_back_spares(&self, spares: &mut SpareSegments) {
        let unneeded = spares.unneeded(self.folder.spares().len());
        if unneeded == 0 {
            return;
        }
        let folder = self.folder.clone();
        let _ = crate::threads::spawn_blocking(move || {
            if let Err(error) = folder.give_back(unneeded) {
                tracing::debug!(%error, "a spare log segment could not be removed");
            }
        })
        .await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spare_files_that_no_flush_needed_for_a_while_are_too_many() {
        let mut spares = SpareSegments::new();
        assert_eq!(spares.unneeded(16), 0, "the next flush may need them");
        assert_eq!(spares.unneeded(5), 0);
        spares.since -= SPARES_KEPT;
        assert_eq!(spares.unneeded(9), 5 - SPARES_MIN);
        assert_eq!(spares.unneeded(9), 0, "another while begins");
        spares.since -= SPARES_KEPT;
        assert_eq!(spares.unneeded(1), 0);
    }
}
