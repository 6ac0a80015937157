//! Background maintenance of an open tablet in a bucket: requests compactions for tombstones, flushes when the log is long, and deletes
//! obsolete files.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use object_store::ObjectStore;
use slatedb_common::clock::SystemClock;

use crate::compaction::TombstoneTrigger;
use crate::tablet::Tablet;
use crate::tablet::obsolete_files::ObsoleteFileCollector;

const INTERVAL: Duration = Duration::from_secs(1);
/// After this many log objects the tablet is flushed: if this node fails, the next owner reads them one by one, while all requests for the
/// tablet wait.
const LOG_OBJECTS_MAX: u64 = 256;
/// Flushes for that reason come no faster than this, lest they make more small files than compactions take.
const FLUSH_INTERVAL_MIN: Duration = Duration::from_secs(3);

/// How much of the log is not in data files, about.
struct FlushTrigger {
    since: Instant,
    /// The tablet's groups until then; none if what was replayed is not flushed either.
    groups: Option<u64>,
}

impl FlushTrigger {
    fn new() -> FlushTrigger {
        FlushTrigger {
            since: Instant::now(),
            groups: None,
        }
    }

    fn is_due(&self, tablet: &Tablet) -> bool {
        let many = |before| groups(tablet).saturating_sub(before) >= LOG_OBJECTS_MAX;
        self.groups.is_none_or(many) && self.since.elapsed() >= FLUSH_INTERVAL_MIN
    }

    fn flushed(&mut self, groups: u64) {
        self.since = Instant::now();
        self.groups = Some(groups);
    }
}

/// Objects that the tablet has put into its log since it was opened.
fn groups(tablet: &Tablet) -> u64 {
    tablet.counters.batches.load(Ordering::Relaxed)
}

/// Runs until the tablet is closed.
pub(super) async fn run(
    tablet: Arc<Tablet>,
    store: Arc<dyn ObjectStore>,
    clock: Arc<dyn SystemClock>,
    garbage_age: Duration,
) {
    let mut watch = TombstoneTrigger::new();
    let mut sweep = ObsoleteFileCollector::new(garbage_age);
    let Some(log_writer) = tablet.remote.clone() else {
        return;
    };
    let mut unflushed = FlushTrigger::new();
    loop {
        if tokio::time::timeout(INTERVAL, log_writer.ended()).await.is_ok() {
            return;
        }
        let is_stumbled_over = watch.is_due(&tablet.compactions);
        if is_stumbled_over || unflushed.is_due(&tablet) {
            let groups = groups(&tablet);
            match tablet.flush().await {
                Ok(()) => {
                    unflushed.flushed(groups);
                    if is_stumbled_over {
                        tablet.compactions.request();
                    }
                }
                Err(error) => {
                    tracing::warn!(tablet = tablet.id(), %error, "a tablet could not be flushed");
                    continue;
                }
            }
        }
        sweep.run(&tablet, &store, &clock, garbage_age).await;
    }
}
