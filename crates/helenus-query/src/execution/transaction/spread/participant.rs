//! The owner's side of a transaction over partitions of several owners: lock sessions, intents, and their states.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_row::TableId;
use helenus_tablet::{StoreError, WriteBatch};
use tokio::sync::oneshot;
use tokio::time::Instant;
use uuid::Uuid;

use super::intents;
use super::preparation::prepared;
use super::resolution;
use super::states::{is_durable, state};
use crate::cluster::{Cluster, TransactionAnswer, TransactionStep};
use crate::failure::ExecutionError;
use crate::measurement;
use crate::storage::locks::contended;
use crate::storage::undecided::{LockSession, Progress, UndecidedIntent};
use crate::storage::writes::failed;
use crate::storage::{ExecutionContext, PartitionGuard};

/// Maximum time for which a transaction waits for its locks at one owner. Shorter than the silence after which its sessions at other owners
/// end.
const LOCK_WAIT_MAX: Duration = Duration::from_millis(1500);

/// Takes a step of a transaction. The caller must run the future to its end.
///
/// # Errors
/// [`ExecutionError::NotOwned`] if the step was not taken: a partition belongs to another node, or the lock session has ended. It will never
/// be taken then. A write timeout if it is not known whether intents are durable.
pub(crate) async fn serve(
    context: &Arc<ExecutionContext>,
    cluster: &Arc<dyn Cluster>,
    step: TransactionStep,
) -> Result<TransactionAnswer, ExecutionError> {
    match step {
        TransactionStep::Lock { id, partitions, .. } => lock(context, cluster, id, &partitions).await,
        TransactionStep::Confirm { id } => {
            confirm(context, cluster.as_ref(), id)?;
            Ok(TransactionAnswer::Done)
        }
        TransactionStep::Intend { id, intents, .. } => {
            intend(context, cluster, id, intents).await?;
            Ok(TransactionAnswer::Done)
        }
        TransactionStep::End {
            id,
            tokens,
            is_committed,
            is_awaited,
        } => {
            end(context, id, &tokens, is_committed, is_awaited).await;
            Ok(TransactionAnswer::Done)
        }
        TransactionStep::States { intents } => {
            let mut states = Vec::with_capacity(intents.len());
            for (id, token) in intents {
                states.push(state(context, cluster.as_ref(), id, token).await.ok());
            }
            Ok(TransactionAnswer::States(states))
        }
    }
}

/// Locks partitions, waits until all earlier writes to them are durable, and opens a lock session.
async fn lock(
    context: &Arc<ExecutionContext>,
    cluster: &Arc<dyn Cluster>,
    id: Uuid,
    partitions: &[(TableId, i64)],
) -> Result<TransactionAnswer, ExecutionError> {
    let term = cluster.lease_term();
    let before_ns = measurement::lock_wait_ns();
    let locking = async {
        let guard = context.lock_transaction(partitions).await?;
        let has_pending = guard.has_pending();
        guard.await_pending().await;
        Ok::<_, CqlError>((guard, has_pending))
    };
    let locked = tokio::time::timeout(LOCK_WAIT_MAX, locking).await;
    let (guard, has_pending) = locked.map_err(|_| contended(LOCK_WAIT_MAX))??;
    if !partitions.iter().all(|(_, token)| context.owns(*token)) {
        return Err(ExecutionError::NotOwned);
    }
    guard.check_open()?;
    let used = Instant::now();
    let session = LockSession { guard, term, used };
    context.writing.undecided.open_session(id, session);
    tokio::spawn(expire(context.clone(), id));
    Ok(TransactionAnswer::Locked {
        clock_us: context.next_timestamp_us(),
        has_waited: has_pending || measurement::lock_wait_ns() > before_ns,
    })
}

/// Ends a lock session once its coordinator has been silent for too long.
async fn expire(context: Arc<ExecutionContext>, id: Uuid) {
    while let Some(ends) = context.writing.undecided.expire_session(id) {
        tokio::time::sleep_until(ends).await;
    }
}

/// Ends a lock session.
///
/// # Errors
/// [`ExecutionError::NotOwned`] if the locks may have been without effect at some time since they were taken.
fn confirm(context: &ExecutionContext, cluster: &dyn Cluster, id: Uuid) -> Result<(), ExecutionError> {
    let session = context.writing.undecided.end_session(id);
    let session = session.ok_or(ExecutionError::NotOwned)?;
    session.guard.check_open()?;
    match cluster.may_serve_since(session.term) {
        true => Ok(()),
        false => Err(ExecutionError::NotOwned),
    }
}

/// Writes intents durably, and begins to wait for the decision.
async fn intend(
    context: &Arc<ExecutionContext>,
    cluster: &Arc<dyn Cluster>,
    id: Uuid,
    encoded: Vec<Bytes>,
) -> Result<(), ExecutionError> {
    let _epoch = context.writing.epochs.enter();
    let mut intents = Vec::with_capacity(encoded.len());
    for encoded in encoded {
        // The intents stay in memory. They must not keep the whole message.
        let intent = intents::decode(Bytes::copy_from_slice(&encoded))?;
        // Later writes to the partitions must be newer than the transaction.
        context.writing.timestamps.raise(intent.timestamp_us);
        intents.push(UndecidedIntent::new(intent, Progress::Writing));
    }
    let begun = context.writing.undecided.begin_intents(id, &intents);
    let guard = begun.ok_or(ExecutionError::NotOwned)?;
    let written = write(context, cluster, guard, &intents).await;
    match written {
        Ok(()) => {
            for intent in intents {
                intent.advance(Progress::Pending);
                resolution::begin(context, cluster, intent);
            }
            Ok(())
        }
        Err(IntentFailure::Refused(error)) => {
            intents
                .iter()
                .for_each(|intent| context.writing.undecided.end(intent));
            Err(match error {
                // Only index entries may have been written, so the transaction can be tried again.
                ExecutionError::Failed(CqlError::WriteTimeout { .. }) => ExecutionError::NotOwned,
                error => error,
            })
        }
        Err(IntentFailure::Unknown { error, known }) => {
            tokio::spawn(await_outcome(context.clone(), cluster.clone(), intents, known));
            Err(error)
        }
    }
}

/// The reason why intents are not known to be durable.
enum IntentFailure {
    /// The intents are not written, and never will be.
    Refused(ExecutionError),
    /// The intents may be written. The sender of `known` is dropped once that is certain.
    Unknown {
        error: ExecutionError,
        known: oneshot::Receiver<()>,
    },
}

async fn write(
    context: &Arc<ExecutionContext>,
    cluster: &Arc<dyn Cluster>,
    guard: Arc<PartitionGuard>,
    intents: &[Arc<UndecidedIntent>],
) -> Result<(), IntentFailure> {
    let ops = prepared(context, cluster, &guard, intents).await;
    let ops = ops.map_err(IntentFailure::Refused)?;
    let (sender, known) = oneshot::channel();
    let batch = WriteBatch {
        ops,
        tablets: guard.tablets(),
        // The locks are released once the intents, which are in the way of all others, are durable or refused.
        hold: Some(Arc::new((guard, sender))),
        turn: None,
    };
    let written = context.store.write(batch, true).await;
    written.map_err(|error| match &error {
        StoreError::Unknown(_) | StoreError::Closed | StoreError::Unavailable(_) => IntentFailure::Unknown {
            error: failed(error),
            known,
        },
        _ => IntentFailure::Refused(error.into()),
    })
}

/// Waits until it is certain whether intents are durable.
async fn await_outcome(
    context: Arc<ExecutionContext>,
    cluster: Arc<dyn Cluster>,
    intents: Vec<Arc<UndecidedIntent>>,
    known: oneshot::Receiver<()>,
) {
    // The sender sends no message. It is dropped with the record of the intents.
    let _ = known.await;
    for intent in intents {
        match is_durable(&context, &intent.intent).await {
            Ok(true) => {
                intent.advance(Progress::Pending);
                resolution::begin(&context, &cluster, intent);
            }
            Ok(false) => context.writing.undecided.end(&intent),
            // The tablet's next owner finds the intent, if there is one.
            Err(error) => {
                tracing::debug!(%error, "an intent of unknown outcome is left to the tablet's next owner");
                context.writing.undecided.end(&intent);
            }
        }
    }
}

/// Ends a lock session, and the intents of these tokens.
async fn end(context: &ExecutionContext, id: Uuid, tokens: &[i64], is_committed: bool, is_awaited: bool) {
    let undecided = &context.writing.undecided;
    drop(undecided.end_session(id));
    let intents: Vec<_> = tokens
        .iter()
        .filter_map(|token| undecided.find(id, *token))
        .collect();
    intents.iter().for_each(|intent| intent.decide(is_committed));
    if is_awaited {
        for intent in intents {
            intent.await_end().await;
        }
    }
}
