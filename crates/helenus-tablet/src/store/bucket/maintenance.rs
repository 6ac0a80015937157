//! Background maintenance of an open tablet in a bucket. Requests compactions for tombstones, removes former owners' logs from the tablet's
//! document, flushes rows that have been in memory for long, and deletes obsolete files.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use object_store::ObjectStore;
use slatedb_common::clock::SystemClock;

use super::Remote;
use crate::compaction::TombstoneTrigger;
use crate::error::StoreError;
use crate::failure_streak::FailureStreak;
use crate::store::Store;
use crate::tablet::Tablet;
use crate::tablet::obsolete_files::ObsoleteFileCollector;

const INTERVAL: Duration = Duration::from_secs(1);

/// Maintains the tablet until it is closed.
pub(super) async fn run(
    store: Weak<Store>,
    tablet: Arc<Tablet>,
    objects: Arc<dyn ObjectStore>,
    clock: Arc<dyn SystemClock>,
    garbage_age: Duration,
) {
    let mut tombstones = TombstoneTrigger::new();
    let mut sweep = ObsoleteFileCollector::new(garbage_age);
    let mut former = FormerLogs::default();
    let mut unflushed = UnflushedAge::default();
    let flushing = FailureStreak::new(
        "the tablet could not be flushed; trying again",
        "the tablet is flushed again",
    );
    let mut flushing = flushing.of_tablet(tablet.id());
    loop {
        tokio::time::sleep(INTERVAL).await;
        let Some(store) = store.upgrade() else { return };
        let Ok(remote) = store.remote() else { return };
        if tablet.stage.is_closed() {
            return;
        }
        if let Some(error) = tablet.stage.failure() {
            tracing::error!(tablet = tablet.id(), %error, "a tablet has failed and is closed");
            store.lose(&tablet, error);
            return;
        }
        if tombstones.is_due(&tablet.compactions) {
            let flushed = tablet.flush().await;
            flushing.note(&flushed);
            match flushed {
                Ok(()) => tablet.compactions.request(),
                Err(_) => continue,
            }
        }
        let flush_interval = remote.databases.config.flush_interval;
        if flush_interval.is_some_and(|interval| unflushed.age(&tablet) >= interval) {
            flushing.note(&tablet.flush().await);
        }
        if let Err(error) = former.forget(remote, &tablet).await {
            tracing::debug!(tablet = tablet.id(), %error, "the logs of former owners are still named");
        }
        sweep.run(&tablet, &objects, &clock, garbage_age).await;
    }
}

/// Measures how long a tablet has had rows in memory that are in no SSTable.
#[derive(Default)]
struct UnflushedAge {
    since: Option<Instant>,
    /// Sequence number up to which batches were flushed at the last call.
    flushed: u64,
}

impl UnflushedAge {
    /// Returns the approximate age of the oldest row in memory. The age of rows that arrived during the last flush counts from the end of
    /// that flush.
    fn age(&mut self, tablet: &Tablet) -> Duration {
        let flushed = tablet.stage.tree().flushed();
        if tablet.stage.bytes() == 0 {
            self.since = None;
        } else if self.since.is_none() || self.flushed != flushed {
            self.since = Some(Instant::now());
        }
        self.flushed = flushed;
        self.since.map_or(Duration::ZERO, |since| since.elapsed())
    }
}

/// The logs of former owners, which the tablet's document names until their records are in SSTables.
#[derive(Default)]
struct FormerLogs {
    /// True if the document names none of them.
    are_forgotten: bool,
    /// True if the tablet has been flushed since it was opened.
    is_flushed: bool,
}

impl FormerLogs {
    async fn forget(&mut self, remote: &Remote, tablet: &Tablet) -> Result<(), StoreError> {
        if self.are_forgotten {
            return Ok(());
        }
        let Some(logs) = remote.logs_of.lock().get(&tablet.id()).cloned() else {
            return Ok(());
        };
        let mut logs = logs.lock().await;
        if logs.logs.len() > 1 || logs.logs.iter().any(|span| span.last.is_some()) {
            if !self.is_flushed {
                tablet.flush().await?;
                self.is_flushed = true;
            }
            let mut spans = logs.logs.clone();
            spans.retain(|span| span.last.is_none());
            logs.write(spans).await?;
        }
        self.are_forgotten = true;
        Ok(())
    }
}
