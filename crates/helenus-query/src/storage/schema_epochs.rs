//! Which schema the writes under way were planned against: a new index must not miss a write whose plan doesn't know it.
//!
//! A writer enters today's epoch before it plans. Once a new schema is in place the next epoch begins: whoever enters that one plans
//! against the new schema, and who may not know it is in an epoch before. Only the build of an index or a view waits for those.

use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use parking_lot::Mutex;

/// How often a waiter looks again. Writes take milliseconds.
const POLL: Duration = Duration::from_millis(1);

/// What the writes of an epoch share; gone when it is over and all of them have ended.
#[derive(Debug, Default)]
struct Epoch;

/// Writes under way, by epoch.
#[derive(Debug, Default)]
pub struct SchemaEpochs {
    current: ArcSwap<Epoch>,
    /// Those that are over and had writes under way when they were last looked at.
    older: Mutex<Vec<Weak<Epoch>>>,
}

/// A write under way; ends when dropped.
#[must_use]
pub struct WriteEpoch(#[allow(dead_code, reason = "held to be dropped")] Arc<Epoch>);

impl SchemaEpochs {
    /// Begins a write. The schema must be loaded for its plan after this.
    pub fn enter(&self) -> WriteEpoch {
        WriteEpoch(self.current.load_full())
    }

    /// Begins the next epoch. The new schema must be in place.
    pub fn advance(&self) {
        let mut older = self.older.lock();
        older.push(Arc::downgrade(&self.current.swap(Arc::default())));
        older.retain(|epoch| epoch.strong_count() > 0);
    }

    /// Waits until no write is under way that may have been planned against a schema before today's.
    pub async fn drained(&self) {
        let older = self.older.lock().clone();
        for epoch in older {
            while epoch.strong_count() > 0 {
                tokio::time::sleep(POLL).await;
            }
        }
        // What those writes did is seen from here on.
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
