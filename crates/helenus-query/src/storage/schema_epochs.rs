//! Epochs of running writes by the schema of their plans. A new index must not miss a write whose plan does not know it.
//!
//! A writer enters the current epoch before it plans. The next epoch begins once a new schema is in place. A writer that enters it plans
//! against the new schema. Writers that may not know the new schema are in earlier epochs. Only the build of an index or a view waits for
//! them.

use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use parking_lot::Mutex;

/// Time between two checks of a waiter. Writes take milliseconds.
const POLL: Duration = Duration::from_millis(1);

/// The token that all writes of an epoch share. It is gone once the epoch is over and all its writes have ended.
#[derive(Debug, Default)]
struct Epoch;

/// Running writes, by epoch.
#[derive(Debug, Default)]
pub struct SchemaEpochs {
    current: ArcSwap<Epoch>,
    /// Earlier epochs that had running writes at the last check.
    older: Mutex<Vec<Weak<Epoch>>>,
}

/// A running write. It ends when this is dropped.
#[must_use]
pub struct WriteEpoch(#[allow(dead_code, reason = "held to be dropped")] Arc<Epoch>);

impl SchemaEpochs {
    /// Begins a write. The caller must load the schema for its plan afterwards.
    pub fn enter(&self) -> WriteEpoch {
        WriteEpoch(self.current.load_full())
    }

    /// Begins the next epoch. The new schema must already be in place.
    pub fn advance(&self) {
        let mut older = self.older.lock();
        older.push(Arc::downgrade(&self.current.swap(Arc::default())));
        older.retain(|epoch| epoch.strong_count() > 0);
    }

    /// Waits for all writes that may have been planned against an earlier schema.
    pub async fn drained(&self) {
        let older = self.older.lock().clone();
        for epoch in older {
            while epoch.strong_count() > 0 {
                tokio::time::sleep(POLL).await;
            }
        }
        // The effects of these writes are visible from here on.
        fence(Ordering::Acquire);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn only_the_writes_of_epochs_that_are_over_are_waited_for() {
        let epochs = SchemaEpochs::default();
        let first = epochs.enter();
        assert!(epochs.drained().now_or_never().is_some());
        epochs.advance();
        let second = epochs.enter();
        assert!(epochs.drained().now_or_never().is_none());
        epochs.advance();
        drop(first);
        assert!(epochs.drained().now_or_never().is_none());
        drop(second);
        let _third = epochs.enter();
        assert!(epochs.drained().now_or_never().is_some());
    }
}
