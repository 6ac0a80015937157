//! Runs the compactor of a tablet beside its database while there are files to compact.
//!
//! A compactor polls every few seconds, and each poll costs requests, so it runs only while needed. Its start takes seven sequential
//! requests, which do not delay the opening of the tablet.
//!
//! The compactor is started again after a failure, such as a lack of file descriptors or an unreachable bucket. A compactor inside the database would
//! end for good.

use std::time::{Duration, Instant};

use slatedb::compactor::Compactor;
use slatedb::{Db, DbStatus};
use tokio::sync::watch;

use crate::compaction::{CompactionState, CompactorPresence};
use crate::database::{Database, Databases, Opened};
use crate::error::{StoreError, from_slatedb};
use crate::failure_streak::FailureStreak;

/// Delay before the first compaction, so that requests that wait for the tablet go first.
const BEGIN_AFTER: Duration = Duration::from_millis(300);
/// Pause after a failure, doubled with each further failure.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(1);
const PAUSE_DOUBLINGS_MAX: u64 = 3;

/// Minimum time for which this process runs compactions before it passes them to compactors elsewhere. The time suffices to schedule the
/// compactions that purge.
const OWN_STRETCH_MIN: Duration = Duration::from_secs(12);

/// Reason for the end of a stretch of compactions.
enum CompactorExit {
    /// There is no work left.
    Rests,
    /// Compactors elsewhere shall continue, or this process in their place.
    Passed,
    Failed(StoreError),
    /// The database is closed or is about to be handed over, or another process compacts it.
    Over,
}

/// Runs compactions until the database is closed or is about to be handed over, or until another process compacts it.
pub(crate) async fn run(databases: Databases, database: Database, db: Db) {
    let opened = Opened::default();
    let _ = opened.set(db.clone());
    let mut status = db.subscribe();
    let mut pause = BEGIN_AFTER;
    let mut is_passed = false;
    let failing = FailureStreak::new("compactions have failed; trying again", "compactions work again");
    let mut failing = failing.of_tablet(database.id);
    loop {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = stopped(&database.compactions, &mut status) => return,
        }
        if !is_passed && !is_wanted(&database.compactions, status.clone()).await {
            return;
        }
        // A new compactor is built each time, because one that has ended can't be run again.
        let compactor = databases.compactor(&database, &opened).build();
        let exit = stretch(&compactor, &db, &database, &databases).await;
        is_passed = matches!(exit, CompactorExit::Passed);
        pause = match exit {
            CompactorExit::Rests | CompactorExit::Passed => {
                failing.note(&Ok::<(), StoreError>(()));
                Duration::ZERO
            }
            CompactorExit::Failed(error) => {
                failing.note(&Err::<(), _>(error));
                pause_after(failing.failures())
            }
            CompactorExit::Over => return,
        };
    }
}

/// Returns the pause after `failures` consecutive failures.
fn pause_after(failures: u64) -> Duration {
    let doublings = failures.saturating_sub(1).min(PAUSE_DOUBLINGS_MAX) as u32;
    PAUSE_AFTER_FAILURE * 2u32.pow(doublings)
}

/// Waits until there is something to compact. Returns false if the database is closed or is about to be handed over.
async fn is_wanted(compactions: &CompactionState, mut status: watch::Receiver<DbStatus>) -> bool {
    let is_there = |status: &DbStatus| has_level0(status) || status.close_reason.is_some();
    tokio::select! {
        biased;
        () = compactions.stopped() => false,
        () = compactions.requested() => true,
        // An error means that the database was dropped, which counts as closed.
        status = status.wait_for(is_there) => status.is_ok_and(|status| status.close_reason.is_none()),
    }
}

/// Runs compactions until nothing is left to compact, and makes the database read the new manifests.
async fn stretch(
    compactor: &Compactor,
    db: &Db,
    database: &Database,
    databases: &Databases,
) -> CompactorExit {
    let interval = databases.config.compaction_poll_interval;
    let began = Instant::now();
    database.compactions.set_idle(false);
    let mut status = db.subscribe();
    let mut running = std::pin::pin!(compactor.run());
    loop {
        let ended = tokio::select! {
            ended = &mut running => Some(ended),
            () = stopped(&database.compactions, &mut status) => None,
            () = tokio::time::sleep(interval) => {
                let is_idle = database.compactions.is_idle();
                // A failed refresh is tried again after the next interval.
                let is_seen = db.refresh_manifest().await.is_ok();
                if is_seen {
                    database.compactions.manifest_visible(db.manifest().id());
                }
                if is_to_be_passed(&database.compactions, &databases.compactors, began) {
                    stop(compactor, database.id).await;
                    return CompactorExit::Passed;
                }
                if !is_seen || !is_idle || has_level0(&status.borrow()) {
                    continue;
                }
                stop(compactor, database.id).await;
                return CompactorExit::Rests;
            }
        };
        return match ended.map(|ended| ended.map_err(|error| from_slatedb(&error))) {
            Some(Ok(()) | Err(StoreError::Fenced)) => CompactorExit::Over,
            Some(Err(error)) => CompactorExit::Failed(error),
            None => {
                stop(compactor, database.id).await;
                CompactorExit::Over
            }
        };
    }
}

/// Returns true if compactions shall pass to the other side: from this process to compactors elsewhere, or back. This process first
/// finishes the compactions that it has begun.
fn is_to_be_passed(compactions: &CompactionState, compactors: &CompactorPresence, began: Instant) -> bool {
    let elsewhere = &compactions.elsewhere;
    match elsewhere.is_on() {
        true => elsewhere.needs_owner() || !compactors.is_present(),
        false => compactors.is_present() && began.elapsed() > OWN_STRETCH_MIN && !compactions.has_jobs(),
    }
}

async fn stop(compactor: &Compactor, tablet: u32) {
    if let Err(error) = compactor.stop().await {
        tracing::debug!(tablet, %error, "a compactor was not stopped in order");
    }
}

fn has_level0(status: &DbStatus) -> bool {
    !status.current_manifest.l0().is_empty()
}

/// Waits until the database is closed or is about to be handed over.
async fn stopped(compactions: &CompactionState, database: &mut watch::Receiver<DbStatus>) {
    tokio::select! {
        () = compactions.stopped() => {}
        // An error means that the database was dropped, which counts as closed.
        _ = database.wait_for(|status| status.close_reason.is_some()) => {}
    }
}
