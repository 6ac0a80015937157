//! A thread of a load: a stream of requests with keys of its own and so many in flight.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::stats::Stats;
use crate::data::keys::KeyPicker;

/// What the slots of one thread share.
#[derive(Debug)]
pub struct Lane {
    /// Number of the thread, from 0.
    pub index: u64,
    pub picker: KeyPicker,
    /// Where its operations are counted; a few threads share one.
    pub recorder: Arc<Recorder>,
    /// Operations begun.
    begun: AtomicU64,
    /// For workloads that go round something: a running count.
    count: AtomicU64,
}

impl Lane {
    pub fn new(index: u64, picker: KeyPicker, recorder: Arc<Recorder>) -> Self {
        Self {
            index,
            picker,
            recorder,
            begun: AtomicU64::new(0),
            count: AtomicU64::new(0),
        }
    }

    /// Begins an operation, unless `limit` of them were begun already.
    pub fn begin(&self, limit: u64) -> bool {
        self.begun.fetch_add(1, Ordering::Relaxed) < limit
    }

    /// The next number of the thread's running count, from 1.
    pub fn next_count(&self) -> u64 {
        self.count.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// Figures that some threads add to and that are collected every second.
#[derive(Debug)]
pub struct Recorder {
    stats: Mutex<Stats>,
}

impl Recorder {
    pub fn new(kinds: usize) -> Self {
        Self {
            stats: Mutex::new(Stats::new(kinds)),
        }
    }

    /// Adds an operation.
    pub fn record(&self, add: impl FnOnce(&mut Stats)) {
        add(&mut self.stats.lock());
    }

    /// Takes what was recorded, and leaves `empty` to go on with. Only pointers move.
    pub fn swap(&self, empty: &mut Stats) {
        std::mem::swap(&mut *self.stats.lock(), empty);
    }
}
