//! Which schema the writes under way were planned against: a new index must not miss a write whose plan doesn't know it.
//!
//! Writers enter the epoch of the schema generation that they see before they plan. Two counters do: before generation g+1 is swapped in, all
//! of generation g-1 have left.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How often a waiter looks again. Writes take milliseconds.
const POLL: Duration = Duration::from_millis(1);

/// Writes under way, by the parity of their generation.
#[derive(Debug, Default)]
pub struct WriteEpochs {
    under_way: [AtomicUsize; 2],
}

/// A write under way; ends when dropped.
pub struct WriteEpoch<'a> {
    counter: &'a AtomicUsize,
}

impl WriteEpochs {
    fn counter(&self, generation: u64) -> &AtomicUsize {
        let [even, odd] = &self.under_way;
        if generation.is_multiple_of(2) { even } else { odd }
    }

    /// Begins a write. The schema must be loaded for its plan after this.
    pub fn enter(&self, generation: u64) -> WriteEpoch<'_> {
        let counter = self.counter(generation);
        counter.fetch_add(1, Ordering::SeqCst);
        WriteEpoch { counter }
    }

    /// Waits until no write that was entered at that generation, or at one of the same parity before it, is under way.
    pub async fn drained(&self, generation: u64) {
        while self.counter(generation).load(Ordering::SeqCst) > 0 {
            tokio::time::sleep(POLL).await;
        }
    }
}

impl Drop for WriteEpoch<'_> {
    fn drop(&mut self) {
        self.counter.fetch_sub(1, Ordering::SeqCst);
    }
}
