//! Removal of committed intents. A committed intent decides about the other intents of its transaction, so it is kept until none of them is
//! pending.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use uuid::Uuid;

use super::intents;
use super::states::states;
use crate::cluster::{Cluster, IntentState};
use crate::storage::ExecutionContext;
use crate::storage::undecided::CommittedIntent;
use crate::storage::writes::write_ops;

/// Minimum age of intents that are removed, in microseconds. Longer than clocks differ, so that a read as of an earlier time finds a committed intent wherever
/// it finds another one of the transaction pending.
const KEPT_US: i64 = 10_000_000;
/// Interval of removal.
const INTERVAL: Duration = Duration::from_secs(5);

/// Begins to remove committed intents. The task ends once there is none.
pub(super) fn begin(runtime: &Handle, context: &Arc<ExecutionContext>, cluster: &Arc<dyn Cluster>) {
    runtime.spawn(run(context.clone(), cluster.clone()));
}

async fn run(context: Arc<ExecutionContext>, cluster: Arc<dyn Cluster>) {
    loop {
        tokio::time::sleep(INTERVAL).await;
        let until_us = context.clock.now_us() - KEPT_US;
        let Some(mut committed) = context.writing.undecided.take_committed(until_us) else {
            return;
        };
        // The next owner of a tablet finds its intents.
        committed.retain(|intent| context.store.tablet(intent.token).is_ok());
        let kept = forget(&context, &cluster, committed).await;
        context.writing.undecided.keep_committed(kept);
    }
}

/// Removes the intents of transactions that are committed at all owners. Returns the others.
async fn forget(
    context: &Arc<ExecutionContext>,
    cluster: &Arc<dyn Cluster>,
    committed: Vec<CommittedIntent>,
) -> Vec<CommittedIntent> {
    let others = |intent: &CommittedIntent| -> Vec<(Uuid, i64)> {
        let tokens = intent.participants.iter().filter(|token| **token != intent.token);
        tokens.map(|token| (intent.transaction, *token)).collect()
    };
    let wanted: Vec<(Uuid, i64)> = committed.iter().flat_map(others).collect();
    if wanted.is_empty() {
        return committed;
    }
    let mut found = states(context, cluster, &wanted).await.into_iter();
    let timestamp_us = context.next_timestamp_us();
    let (mut kept, mut gone, mut removals) = (Vec::new(), Vec::new(), Vec::new());
    for intent in committed {
        let count = intent.participants.len().saturating_sub(1);
        // An absent intent was removed already, because this transaction is committed.
        let is_settled =
            |state: Option<IntentState>| matches!(state, Some(IntentState::Committed | IntentState::Absent));
        let settled = found
            .by_ref()
            .take(count)
            .filter(|state| is_settled(*state))
            .count();
        if settled < count {
            kept.push(intent);
            continue;
        }
        removals.push(intents::removal_of(
            intent.transaction,
            intent.token,
            timestamp_us,
        ));
        gone.push(intent);
    }
    tracing::debug!(
        removed = gone.len(),
        kept = kept.len(),
        "committed intents are removed"
    );
    if let Err(error) = write_ops(context, cluster, removals, false, context.deadline()).await {
        tracing::debug!(%error, "committed intents are removed later");
        kept.extend(gone);
    }
    kept
}
