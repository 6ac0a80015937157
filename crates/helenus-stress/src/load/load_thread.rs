//! A thread of a load: a stream of requests with its own keys and a fixed number in flight.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::stats::Stats;
use crate::operation::ThreadKeys;

/// State that the slots of one thread share.
#[derive(Debug)]
pub struct LoadThread {
    /// Number of the thread, from 0.
    pub index: u64,
    pub keys: Arc<ThreadKeys>,
    /// Recorder of the thread's operations. A few threads share one.
    pub recorder: Arc<Recorder>,
    /// Number of operations begun.
    begun: AtomicU64,
}

impl LoadThread {
    /// Returns a thread that has begun no operation yet.
    pub fn new(index: u64, keys: ThreadKeys, recorder: Arc<Recorder>) -> Self {
        Self {
            index,
            keys: Arc::new(keys),
            recorder,
            begun: AtomicU64::new(0),
        }
    }

    /// Begins an operation. Returns false if `limit` operations were begun already.
    pub fn begin(&self, limit: u64) -> bool {
        self.begun.fetch_add(1, Ordering::Relaxed) < limit
    }
}

/// Figures of a few threads, which are collected every second.
#[derive(Debug)]
pub struct Recorder {
    stats: Mutex<Stats>,
}

impl Recorder {
    /// Returns a recorder for this number of kinds of operations.
    pub fn new(kinds: usize) -> Self {
        Self {
            stats: Mutex::new(Stats::new(kinds)),
        }
    }

    /// Adds an operation.
    pub fn record(&self, add: impl FnOnce(&mut Stats)) {
        add(&mut self.stats.lock());
    }

    /// Swaps the recorded figures with `empty`. Only pointers are moved.
    pub fn swap(&self, empty: &mut Stats) {
        std::mem::swap(&mut *self.stats.lock(), empty);
    }
}
