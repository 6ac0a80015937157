//! The states of intents, as their owners have them durably.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tokio::time::Instant;
use uuid::Uuid;

use super::intents;
use crate::cluster::{Cluster, IntentState, Owner, TransactionAnswer, TransactionStep};
use crate::failure::ExecutionError;
use crate::storage::ExecutionContext;
use crate::storage::undecided::Intent;

/// Maximum time for the answers of other owners.
const QUERY_TIMEOUT: Duration = Duration::from_secs(2);

/// Returns true if an intent is durable.
///
/// # Errors
/// The tablet is not open here any more.
pub(super) async fn is_durable(context: &ExecutionContext, intent: &Intent) -> Result<bool, ExecutionError> {
    let tablet = context.store.tablet(intent.token)?;
    let key = intents::key_of(intent.transaction, intent.token);
    Ok(tablet.get(&key).await?.is_some())
}

/// Returns the durable state of an intent. If it is absent, it will never be written.
///
/// # Errors
/// [`ExecutionError::NotOwned`] if this node does not own the token, or may not.
pub(super) async fn state(
    context: &ExecutionContext,
    cluster: &dyn Cluster,
    id: Uuid,
    token: i64,
) -> Result<IntentState, ExecutionError> {
    let term = cluster.lease_term();
    if !context.owns(token) {
        return Err(ExecutionError::NotOwned);
    }
    let tablet = context.store.tablet(token)?;
    if let Some(intent) = context.writing.undecided.find_or_forbid(id, token) {
        intent.await_written().await;
    }
    let row = tablet.get(&intents::key_of(id, token)).await?;
    let now_s = context.clock.now_us().div_euclid(1_000_000);
    let state = intents::state_of(row, now_s)?;
    let is_same = context
        .store
        .tablet(token)
        .is_ok_and(|now| Arc::ptr_eq(&now, &tablet));
    match is_same && cluster.may_serve_since(term) {
        true => Ok(state),
        false => Err(ExecutionError::NotOwned),
    }
}

/// Returns the states of intents, each by transaction and token, from their owners. `None` for those that are not known.
pub(super) async fn states(
    context: &Arc<ExecutionContext>,
    cluster: &Arc<dyn Cluster>,
    wanted: &[(Uuid, i64)],
) -> Vec<Option<IntentState>> {
    let mut owners: BTreeMap<Option<Uuid>, Vec<usize>> = BTreeMap::new();
    for (at, (_, token)) in wanted.iter().enumerate() {
        match cluster.owner(*token) {
            Owner::Here => owners.entry(None).or_default().push(at),
            Owner::Peer(node) => owners.entry(Some(node)).or_default().push(at),
            Owner::Unowned => {}
        }
    }
    let requested = owners.iter().map(|(node, places)| async move {
        let intents: Vec<(Uuid, i64)> = places.iter().filter_map(|at| wanted.get(*at).copied()).collect();
        (places, states_at(context, cluster, *node, intents).await)
    });
    let mut states = vec![None; wanted.len()];
    for (places, found) in join_all(requested).await {
        for (at, state) in places.iter().zip(found) {
            if let Some(place) = states.get_mut(*at) {
                *place = state;
            }
        }
    }
    states
}

async fn states_at(
    context: &Arc<ExecutionContext>,
    cluster: &Arc<dyn Cluster>,
    node: Option<Uuid>,
    intents: Vec<(Uuid, i64)>,
) -> Vec<Option<IntentState>> {
    let Some(node) = node else {
        let mut states = Vec::with_capacity(intents.len());
        for (id, token) in intents {
            let state = state(context, cluster.as_ref(), id, token);
            let state = tokio::time::timeout(QUERY_TIMEOUT, state).await;
            states.push(state.ok().and_then(Result::ok));
        }
        return states;
    };
    let step = TransactionStep::States { intents };
    match cluster
        .transact(node, &step, Instant::now() + QUERY_TIMEOUT)
        .await
    {
        Ok(TransactionAnswer::States(states)) => states,
        _ => Vec::new(),
    }
}
