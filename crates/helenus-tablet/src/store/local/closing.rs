//! Closes a store in a folder within a bounded time, whatever the disk does.
//!
//! Closing flushes memtables only to spare the next start the replay, because each acknowledged write is in the log. So a flush that cannot
//! succeed is given up. SlateDB would repeat it for ever, and is not waited for.

use std::sync::Arc;
use std::time::Duration;

use slatedb::config::CloseOptions;

use super::{Local, Running};
use crate::error::{StoreError, from_slatedb};
use crate::tablet::Tablet;

/// Maximum time for the flushes of all tablets. Together with the time for running requests, it is less than service managers grant (90 s).
const FLUSH_MAX: Duration = Duration::from_secs(45);
/// Maximum time in which the tasks of a tablet's database must end.
const TASKS_MAX: Duration = Duration::from_secs(5);

/// Outcome of the last flush of a tablet.
enum LastFlush {
    Done,
    /// The rows in memory are in no SSTable, and the next start replays them from the log.
    GivenUp(String),
}

impl Local {
    /// Ends writes, flushes memtables if the disk takes them, and ends all tasks.
    pub async fn close(&self, tablets: &[Arc<Tablet>]) -> Result<(), StoreError> {
        let mut running = std::mem::take(&mut *self.running.lock());
        self.end_writes(&mut running, tablets).await;
        let results = futures::future::join_all(tablets.iter().map(|tablet| self.close_tablet(tablet))).await;
        if let Err(error) = self.maintenance.trim().await {
            tracing::warn!(error, "the log could not be cut");
        }
        drop(running);
        let mut given_up = Vec::new();
        for result in results {
            match result {
                Ok(LastFlush::GivenUp(why)) => given_up.push(why),
                Ok(LastFlush::Done) | Err(StoreError::Closed) => {}
                Err(error) => return Err(error),
            }
        }
        if let Some(why) = given_up.first() {
            tracing::warn!(
                tablets = given_up.len(),
                why,
                "rows in memory were not flushed; they are in the log, which the next start replays"
            );
        }
        Ok(())
    }

    /// Closes the log, and moves all of its writes to the memtables.
    async fn end_writes(&self, running: &mut Running, tablets: &[Arc<Tablet>]) {
        for tablet in tablets {
            tablet.flushes.lift_limit();
        }
        self.log.close(StoreError::Closed);
        if let Some(thread) = running.log_thread.take() {
            thread.join().await;
        }
        self.log.ledger.end_segment();
        self.log.ledger.note_end();
        for tablet in tablets {
            tablet.stage.close();
        }
        for applier in running.stage_appliers.drain(..) {
            let _ = applier.await;
        }
        if let Some(maintenance) = running.maintenance.take() {
            maintenance.abort();
            let _ = maintenance.await;
        }
    }

    async fn close_tablet(&self, tablet: &Tablet) -> Result<LastFlush, StoreError> {
        let db = tablet.db.owned()?;
        let flushed = tokio::select! {
            biased;
            flushed = tablet.flush() => flushed.map(|()| LastFlush::Done),
            () = self.space.next_failure() => Ok(LastFlush::GivenUp("the disk is full".to_owned())),
            () = tokio::time::sleep(FLUSH_MAX) => {
                Ok(LastFlush::GivenUp(format!("a flush has taken {} s", FLUSH_MAX.as_secs())))
            }
        };
        // Compactions are stopped only now, because a flush may wait for them to make room at level 0.
        tablet.compactions.stop();
        // All data that SlateDB has was flushed above.
        let closing = db.close_with_options(CloseOptions { flush_type: None });
        match tokio::time::timeout(TASKS_MAX, closing).await {
            Ok(closed) => {
                flushed.and_then(|flushed| closed.map(|()| flushed).map_err(|error| from_slatedb(&error)))
            }
            Err(_) => flushed,
        }
    }
}
