//! The compactor of a tablet in a bucket, beside its database: it asks the bucket seven things before it begins, one after the other, which is no
//! part of the time that requests wait for a tablet to be opened.

use std::time::Duration;

use slatedb::DbStatus;
use slatedb::compactor::Compactor;
use tokio::sync::watch;

use crate::error::{StoreError, from_slatedb};

/// What waits for the tablet comes first.
const BEGIN_AFTER: Duration = Duration::from_millis(300);
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(1);

/// Runs until the database is closed, or another process compacts it.
pub(super) async fn run(compactor: Compactor, tablet: u32, mut database: watch::Receiver<DbStatus>) {
    let mut pause = BEGIN_AFTER;
    loop {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = closed(&mut database) => return,
        }
        let ended = tokio::select! {
            ended = compactor.run() => Some(ended),
            () = closed(&mut database) => None,
        };
        match ended.map(|ended| ended.map_err(|error| from_slatedb(&error))) {
            Some(Ok(()) | Err(StoreError::Fenced)) => return,
            Some(Err(error)) => tracing::warn!(tablet, %error, "compactions have failed; trying again"),
            None => {
                if let Err(error) = compactor.stop().await {
                    tracing::debug!(tablet, %error, "a compactor was not stopped in order");
                }
                return;
            }
        }
        pause = PAUSE_AFTER_FAILURE;
    }
}

async fn closed(database: &mut watch::Receiver<DbStatus>) {
    // A database that is gone is closed.
    let _ = database.wait_for(|status| status.close_reason.is_some()).await;
}
