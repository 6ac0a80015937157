//! Counters of a tablet.

use std::sync::atomic::{AtomicU64, Ordering};

use hashbrown::HashMap;
use helenus_row::TokenRange;
use slatedb::manifest::{SsTableId, VersionedManifest};

use super::Tablet;

#[derive(Debug, Default)]
pub(crate) struct TabletCounters {
    pub batches: AtomicU64,
    pub operands: AtomicU64,
    /// Rows written as a whole because the row cache contained them.
    pub folded: AtomicU64,
    pub gets: AtomicU64,
    pub scans: AtomicU64,
}

/// Statistics of one tablet.
#[derive(Debug, Clone, PartialEq)]
pub struct TabletStats {
    pub id: u32,
    pub tokens: TokenRange,
    /// SlateDB batches written, and the operands in them.
    pub batches: u64,
    pub operands: u64,
    pub folded: u64,
    pub gets: u64,
    pub scans: u64,
    /// Files and bytes of the LSM tree, as of its manifest.
    pub level0_files: u64,
    pub sorted_runs: u64,
    /// Compactions that have ended since the tablet was opened.
    pub compactions_ended: u64,
    pub data_bytes: u64,
    /// Reads of slices of partitions, the live rows that they returned, and the dead rows that they skipped.
    pub slices: u64,
    pub rows_live: u64,
    pub rows_dead: u64,
    pub row_cache_hits: u64,
    pub row_cache_misses: u64,
}

/// Counters of all tablets that have been open here, including those closed since, so that the sums never decrease.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TabletTotals {
    pub batches: u64,
    pub operands: u64,
    pub gets: u64,
    pub scans: u64,
    pub slices: u64,
    pub rows_live: u64,
    pub rows_dead: u64,
    pub row_cache_hits: u64,
    pub row_cache_misses: u64,
}

impl TabletTotals {
    pub(crate) fn add(&mut self, tablet: &TabletStats) {
        self.batches += tablet.batches;
        self.operands += tablet.operands;
        self.gets += tablet.gets;
        self.scans += tablet.scans;
        self.slices += tablet.slices;
        self.rows_live += tablet.rows_live;
        self.rows_dead += tablet.rows_dead;
        self.row_cache_hits += tablet.row_cache_hits;
        self.row_cache_misses += tablet.row_cache_misses;
    }
}

impl Tablet {
    /// Returns the counters of this tablet.
    pub fn stats(&self) -> TabletStats {
        let manifest = self.db.manifest();
        let manifest = manifest.as_deref();
        let runs = manifest.map_or(0, |manifest| manifest.compacted().len());
        let get = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        TabletStats {
            id: self.id,
            tokens: self.tokens,
            batches: get(&self.counters.batches),
            operands: get(&self.counters.operands),
            folded: get(&self.counters.folded),
            gets: get(&self.counters.gets),
            scans: get(&self.counters.scans),
            level0_files: manifest.map_or(0, |manifest| manifest.l0().len()) as u64,
            sorted_runs: runs as u64,
            compactions_ended: self.compactions.ended(),
            data_bytes: manifest.map_or(0, data_bytes),
            slices: get(&self.compactions.reads.slices),
            rows_live: get(&self.compactions.reads.live),
            rows_dead: get(&self.compactions.reads.dead),
            row_cache_hits: self.cache.hits(),
            row_cache_misses: self.cache.misses(),
        }
    }
}

/// Returns the bytes of the tree. A clone is charged half of the data that it shares with its parent, and a quarter of the data that the
/// parent shares with its own parent. The rest belongs to its siblings.
fn data_bytes(manifest: &VersionedManifest) -> u64 {
    let inherited: HashMap<SsTableId, usize> = manifest
        .external_dbs()
        .iter()
        .rev()
        .zip(1..)
        .flat_map(|(ancestor, generation)| ancestor.sst_ids.iter().map(move |id| (*id, generation)))
        .collect();
    let runs = manifest.compacted().iter().flat_map(|run| run.sst_views());
    let tables = manifest.l0().iter().chain(runs);
    tables
        .map(|view| {
            let generation = inherited.get(&view.sst.id).copied().unwrap_or(0);
            view.estimate_size() >> generation.min(63)
        })
        .sum()
}
