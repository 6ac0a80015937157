//! Writes of a store in a bucket: their parts by tablet, and their timeouts.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::Remote;
use crate::error::StoreError;
use crate::operation::Op;
use crate::store::write_batch::WriteBatch;
use crate::store::{Store, find};
use crate::tablet::Tablet;
use crate::tablet::group_commit::{Answer, Entry, WriteGuards};
use crate::work::nanos;
use crate::{trace, work};

/// A batch's operations for one tablet.
pub(super) struct Part {
    pub tablet: Arc<Tablet>,
    pub ops: Vec<Op>,
}

/// A time until which an answer is waited for.
#[derive(Clone, Copy)]
struct Deadline {
    at: Instant,
    whole: Duration,
}

impl Deadline {
    fn unknown(&self) -> StoreError {
        let ms = self.whole.as_millis();
        StoreError::Unknown(format!("the object store did not confirm it within {ms} ms"))
    }
}

impl Remote {
    /// Writes a batch; see [`Store::write`].
    pub async fn write(&self, store: &Store, batch: WriteBatch, size: usize) -> Answer {
        let whole = self.write_timeout();
        let deadline = Deadline {
            at: Instant::now() + whole,
            whole,
        };
        let WriteBatch { ops, hold, tablets } = batch;
        let mut parts = split(&tablets.unwrap_or_else(|| store.tablets()), ops)?;
        let permit = self.permit(store, store.permits_for(size), deadline).await?;
        let hold: WriteGuards = Arc::new((permit, hold));
        match parts.pop() {
            None => Ok(()),
            Some(only) if parts.is_empty() => write_one(only, hold, deadline).await,
            Some(last) => {
                parts.push(last);
                let batches = self.batches.clone();
                // Once begun, the write continues without its waiter.
                let task = self
                    .serving
                    .spawn(async move { batches.write(parts, hold).await });
                match tokio::time::timeout_at(deadline.at.into(), task).await {
                    Ok(Ok(answer)) => answer,
                    Ok(Err(error)) => Err(StoreError::Unknown(error.to_string())),
                    Err(_) => Err(deadline.unknown()),
                }
            }
        }
    }

    /// Room among the writes in flight.
    async fn permit(
        &self,
        store: &Store,
        permits: u32,
        deadline: Deadline,
    ) -> Result<OwnedSemaphorePermit, StoreError> {
        if let Ok(permit) = store.in_flight.clone().try_acquire_many_owned(permits) {
            return Ok(permit);
        }
        trace::step(|| "Waiting until the writes in flight leave room");
        let since = Instant::now();
        let acquire = store.in_flight.clone().acquire_many_owned(permits);
        let permit = tokio::time::timeout_at(deadline.at.into(), acquire).await;
        work::count(|work| work.admission_ns += nanos(since.elapsed()));
        match permit {
            Ok(permit) => permit.map_err(|_| StoreError::Closed),
            Err(_) => Err(StoreError::Overloaded(deadline.whole.as_millis() as u64)),
        }
    }
}

async fn write_one(part: Part, hold: WriteGuards, deadline: Deadline) -> Answer {
    let answer = submit(&part.tablet, part.ops, None, Some(hold));
    match tokio::time::timeout_at(deadline.at.into(), answer).await {
        Ok(answer) => outcome_of(answer),
        Err(_) => Err(deadline.unknown()),
    }
}

/// Queues a write, or its part for that tablet.
pub(super) fn submit(
    tablet: &Tablet,
    ops: Vec<Op>,
    batch: Option<uuid::Uuid>,
    hold: Option<WriteGuards>,
) -> oneshot::Receiver<Answer> {
    let (sender, receiver) = oneshot::channel();
    if let Some(log_writer) = &tablet.remote {
        log_writer.submit(Entry {
            ops,
            batch,
            sender,
            hold,
        });
    }
    receiver
}

/// The outcome of a write; unknown if the tablet was dropped.
pub(super) fn outcome_of(answer: Result<Answer, oneshot::error::RecvError>) -> Answer {
    answer.unwrap_or_else(|_| Err(StoreError::Unknown("the tablet is gone".into())))
}

/// The operations by tablet, in their order.
///
/// # Errors
/// [`StoreError::NotOwned`] if a tablet is not open here; nothing is to be done then.
pub(super) fn split(tablets: &[Arc<Tablet>], ops: Vec<Op>) -> Result<Vec<Part>, StoreError> {
    let mut parts: Vec<Part> = Vec::new();
    for op in ops {
        if let Some(part) = parts
            .iter_mut()
            .find(|part| part.tablet.token_range().contains(op.token))
        {
            part.ops.push(op);
            continue;
        }
        let tablet = find(tablets, op.token).ok_or(StoreError::NotOwned(op.token))?;
        parts.push(Part {
            tablet,
            ops: vec![op],
        });
    }
    Ok(parts)
}
