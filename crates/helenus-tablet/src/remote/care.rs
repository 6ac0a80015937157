//! What a tablet in a bucket needs while it is open: compaction of what reads stumble over, and deletion of what was replaced.

use std::sync::Arc;
use std::time::Duration;

use object_store::ObjectStore;
use slatedb_common::clock::SystemClock;

use crate::compaction::Watch;
use crate::sweep::Sweep;
use crate::tablet::Tablet;

const INTERVAL: Duration = Duration::from_millis(500);

/// Runs until the tablet is closed.
pub(super) async fn run(
    tablet: Arc<Tablet>,
    store: Arc<dyn ObjectStore>,
    clock: Arc<dyn SystemClock>,
    garbage_age: Duration,
) {
    let mut watch = Watch::new();
    let mut sweep = Sweep::new(garbage_age);
    let Some(hosted) = tablet.remote.clone() else {
        return;
    };
    loop {
        if tokio::time::timeout(INTERVAL, hosted.ended()).await.is_ok() {
            return;
        }
        if watch.is_due(&tablet.compactions) {
            match tablet.flush().await {
                Ok(()) => tablet.compactions.ask(),
                Err(error) => {
                    tracing::warn!(tablet = tablet.id(), %error, "a tablet could not be flushed");
                    continue;
                }
            }
        }
        sweep.run(&tablet, &store, &clock, garbage_age).await;
    }
}
