//! Decisions about intents, and their effects. Each intent has a task, which waits for the coordinator's word. If none comes, the task
//! queries the other owners.

use std::sync::Arc;
use std::time::Duration;

use helenus_cql::error::CqlError;
use helenus_row::TableId;
use helenus_tablet::Tablet;
use tokio::runtime::Handle;
use tokio::time::Instant;
use uuid::Uuid;

use super::decision::decide;
use super::states::states;
use super::{forgetting, intents};
use crate::cluster::{Cluster, IntentState};
use crate::execution::writes::WriteSet;
use crate::execution::writes::commit::apply_here;
use crate::failure::{ExecutionError, store_error};
use crate::storage::ExecutionContext;
use crate::storage::key_reads::scan_table;
use crate::storage::undecided::{CommittedIntent, Intent, Progress, UndecidedIntent};
use crate::storage::writes::write_ops;

/// Time without the coordinator's word after which the other owners are queried.
const SILENCE_MAX: Duration = Duration::from_secs(1);
/// Time between two tries to find the decision, or to carry it out.
const RETRY_INTERVAL: Duration = Duration::from_millis(250);
/// Maximum time until a tablet that is being opened is served.
const OPENING_MAX: Duration = Duration::from_secs(60);

/// Loads the intents of a tablet that is about to be served. They are in the way of its first request. Tasks on `runtime` decide about them
/// once the tablet is served.
///
/// # Errors
/// The rows cannot be read, or are damaged.
pub(crate) async fn load(
    context: &Arc<ExecutionContext>,
    tablet: &Tablet,
    runtime: &Handle,
) -> Result<(), CqlError> {
    let Some(cluster) = context.cluster() else {
        return Ok(());
    };
    let tokens = tablet.token_range();
    let scan = scan_table(tablet, intents::TABLE).await;
    let mut scan = scan.map_err(ExecutionError::into_client_error)?;
    let now_s = context.clock.now_us().div_euclid(1_000_000);
    let (mut undecided, mut committed) = (Vec::new(), Vec::new());
    while let Some((_, packed)) = scan.next().await.map_err(store_error)? {
        match intents::stored(packed, now_s)? {
            Some((intent, IntentState::Committed)) => committed.push(committed_of(&intent)),
            Some((intent, _)) => {
                context.writing.timestamps.raise(intent.timestamp_us);
                undecided.push(UndecidedIntent::new(intent, Progress::Pending));
            }
            None => {}
        }
    }
    if !undecided.is_empty() || !committed.is_empty() {
        let (undecided, committed) = (undecided.len(), committed.len());
        tracing::info!(
            tablet = tablet.id(),
            undecided,
            committed,
            "transactions of several nodes were found"
        );
    }
    context
        .writing
        .undecided
        .load(tokens, undecided.clone(), committed);
    for intent in undecided {
        runtime.spawn(resolve(context.clone(), cluster.clone(), intent, Duration::ZERO));
    }
    if context.writing.undecided.begins_forgetting() {
        forgetting::begin(runtime, context, cluster);
    }
    Ok(())
}

fn committed_of(intent: &Intent) -> CommittedIntent {
    CommittedIntent {
        transaction: intent.transaction,
        token: intent.token,
        participants: intent.participants.clone(),
        timestamp_us: intent.timestamp_us,
    }
}

/// Begins to wait for the decision about an intent that has become durable.
pub(super) fn begin(
    context: &Arc<ExecutionContext>,
    cluster: &Arc<dyn Cluster>,
    intent: Arc<UndecidedIntent>,
) {
    tokio::spawn(resolve(context.clone(), cluster.clone(), intent, SILENCE_MAX));
}

/// Carries out the decision about an intent, once there is one.
async fn resolve(
    context: Arc<ExecutionContext>,
    cluster: Arc<dyn Cluster>,
    intent: Arc<UndecidedIntent>,
    mut wait: Duration,
) {
    let undecided = &context.writing.undecided;
    let began = Instant::now();
    let mut was_open = false;
    loop {
        let known = tokio::time::timeout(wait, intent.await_decision()).await;
        wait = RETRY_INTERVAL;
        // A tablet that is opened again loads its intents again.
        if !undecided.contains(&intent) {
            return;
        }
        let is_open = context.store.tablet(intent.intent.token).is_ok();
        if !is_open && (was_open || began.elapsed() >= OPENING_MAX) {
            // The next owner of the tablet decides about its intents.
            return undecided.end(&intent);
        }
        was_open |= is_open;
        let decision = match known {
            Ok(None) => return,
            Ok(decision) => decision,
            Err(_) => query(&context, &cluster, &intent.intent).await,
        };
        match decision {
            Some(true) => match commit(&context, &cluster, &intent).await {
                Ok(()) => return,
                Err(error) => {
                    tracing::debug!(%error, "a committed transaction is applied again");
                    tokio::time::sleep(RETRY_INTERVAL).await;
                }
            },
            Some(false) => {
                undecided.end(&intent);
                return remove(&context, &cluster, &intent.intent).await;
            }
            None => {}
        }
    }
}

/// Applies the writes of an intent, and marks it as committed.
async fn commit(
    context: &Arc<ExecutionContext>,
    cluster: &Arc<dyn Cluster>,
    undecided: &Arc<UndecidedIntent>,
) -> Result<(), ExecutionError> {
    let intent = &undecided.intent;
    let _epoch = context.writing.epochs.enter();
    let partitions: Vec<(TableId, i64)> = intent.tables.iter().map(|table| (*table, intent.token)).collect();
    let guard = context.lock_decided(&partitions).await;
    let mut writes = WriteSet::from_ops(&context.schema(), intent.ops.clone())?;
    writes.guard = Some(guard);
    writes.marks = vec![intents::mark_of(intent)];
    apply_here(context, cluster, writes).await?;
    context.writing.undecided.end(undecided);
    if context.writing.undecided.add_committed(committed_of(intent)) {
        forgetting::begin(&Handle::current(), context, cluster);
    }
    Ok(())
}

/// Removes an intent of an aborted transaction. If that fails, the intent is found again when its tablet is opened next.
async fn remove(context: &Arc<ExecutionContext>, cluster: &Arc<dyn Cluster>, intent: &Intent) {
    let timestamp_us = context.next_timestamp_us();
    let op = intents::removal_of(intent.transaction, intent.token, timestamp_us);
    if let Err(error) = write_ops(context, cluster, vec![op], false, context.deadline()).await {
        tracing::debug!(%error, "the intent of an aborted transaction is left to the tablet's next owner");
    }
}

/// Queries the states of the other intents of a transaction. Returns the decision. `None` if it is not known yet.
async fn query(context: &Arc<ExecutionContext>, cluster: &Arc<dyn Cluster>, intent: &Intent) -> Option<bool> {
    let others = intent.participants.iter().filter(|token| **token != intent.token);
    let others: Vec<(Uuid, i64)> = others.map(|token| (intent.transaction, *token)).collect();
    decide(states(context, cluster, &others).await)
}
