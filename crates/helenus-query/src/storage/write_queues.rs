//! Modifications that wait for the lock of one partition: increments of counters, and lightweight transactions. The first one waits for the
//! lock; those that come meanwhile queue behind it, and are written together with it in one record of the log. So a partition is not bound
//! to one of them for each sync of the log.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::error::{Consistency, CqlError, WriteType};
use helenus_row::TableId;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::analysis::modification::BoundModification;
use crate::analysis::{EvalContext, Plan, Planned};
use crate::clock::Clock;
use crate::failure::{ExecutionError, write_timeout};
use crate::request::BoundValue;

/// Modifications that are written together, at most.
const GROUP_MAX: usize = 256;

/// Table and partition.
type QueueKey = (TableId, Bytes);

/// The queues of the partitions for whose locks modifications of one kind wait, each of which is answered by an `A`.
pub struct WriteQueues<A>(Mutex<HashMap<QueueKey, Vec<QueuedWrite<A>>>>);

impl<A> Default for WriteQueues<A> {
    fn default() -> WriteQueues<A> {
        WriteQueues(Mutex::default())
    }
}

/// A request that waits to be applied by another one's task.
pub struct QueuedWrite<A> {
    pub planned: Arc<Planned>,
    pub values: Vec<BoundValue>,
    pub protocol_version: u8,
    pub timestamp_us: Option<i64>,
    pub now_s: i64,
    write_type: WriteType,
    answer: Option<oneshot::Sender<QueueAnswer<A>>>,
    /// From then on it may be written.
    is_taken: bool,
}

/// What becomes of a queued modification.
#[derive(Debug)]
pub enum QueueAnswer<A> {
    Done(Result<A, ExecutionError>),
    /// Nobody has taken it: it must be queued anew.
    Untouched,
}

/// What a request does that has come to a queue.
pub enum QueueRole<A> {
    /// It waits for the lock, and applies the others.
    Leads(QueueLead<A>),
    Follows(oneshot::Receiver<QueueAnswer<A>>),
    /// The queue is full.
    Alone,
}

/// The queue behind a request that waits for the lock. Dropped before it was taken, it sends the others back.
pub struct QueueLead<A> {
    queues: Arc<WriteQueues<A>>,
    key: QueueKey,
    is_open: bool,
}

impl<A> QueuedWrite<A> {
    /// The modification of `planned` with the values of `eval`, and where its answer comes.
    pub fn new(
        planned: &Arc<Planned>,
        eval: &EvalContext<'_>,
        timestamp_us: Option<i64>,
        now_s: i64,
        write_type: WriteType,
    ) -> (QueuedWrite<A>, oneshot::Receiver<QueueAnswer<A>>) {
        let (answer, receiver) = oneshot::channel();
        let queued = QueuedWrite {
            planned: planned.clone(),
            values: eval.values.to_vec(),
            protocol_version: eval.protocol_version,
            timestamp_us,
            now_s,
            write_type,
            answer: Some(answer),
            is_taken: false,
        };
        (queued, receiver)
    }

    /// The modification with its values bound again.
    ///
    /// # Errors
    /// Cassandra's, for values that make no sense.
    pub fn bind<'w>(&'w self, clock: &'w dyn Clock) -> Result<BoundModification<'w>, CqlError> {
        let Plan::Modification(plan) = &self.planned.plan else {
            return Err(CqlError::Server(
                "only single modifications are queued".to_owned(),
            ));
        };
        let eval = EvalContext {
            values: &self.values,
            clock,
            protocol_version: self.protocol_version,
        };
        BoundModification::new(plan, eval)
    }

    /// From now on nobody else may apply it.
    pub fn take(mut self) -> QueuedWrite<A> {
        self.is_taken = true;
        self
    }

    pub fn answer(mut self, result: Result<A, ExecutionError>) {
        self.send(QueueAnswer::Done(result));
    }

    fn send(&mut self, answer: QueueAnswer<A>) {
        if let Some(sender) = self.answer.take() {
            // Its client may have gone.
            let _ = sender.send(answer);
        }
    }
}

impl<A> Drop for QueuedWrite<A> {
    fn drop(&mut self) {
        self.send(match self.is_taken {
            true => QueueAnswer::Done(Err(write_timeout(Consistency::One, self.write_type).into())),
            false => QueueAnswer::Untouched,
        });
    }
}

impl<A> WriteQueues<A> {
    /// Comes to the queue of a partition; `queued` is asked for if another request leads it.
    pub fn join(
        self: &Arc<WriteQueues<A>>,
        table: TableId,
        partition: &Bytes,
        queued: impl FnOnce() -> (QueuedWrite<A>, oneshot::Receiver<QueueAnswer<A>>),
    ) -> QueueRole<A> {
        let key = (table, partition.clone());
        match self.0.lock().entry(key.clone()) {
            Entry::Vacant(vacant) => {
                vacant.insert(Vec::new());
                QueueRole::Leads(QueueLead {
                    queues: self.clone(),
                    key,
                    is_open: true,
                })
            }
            Entry::Occupied(queue) if queue.get().len() >= GROUP_MAX => QueueRole::Alone,
            Entry::Occupied(mut queue) => {
                let (queued, answer) = queued();
                queue.get_mut().push(queued);
                QueueRole::Follows(answer)
            }
        }
    }
}

impl<A> QueueLead<A> {
    /// Those who have come meanwhile. Later ones form the next queue.
    pub fn take(mut self) -> Vec<QueuedWrite<A>> {
        self.close().into_iter().map(QueuedWrite::take).collect()
    }

    fn close(&mut self) -> Vec<QueuedWrite<A>> {
        match std::mem::take(&mut self.is_open) {
            true => self.queues.0.lock().remove(&self.key).unwrap_or_default(),
            false => Vec::new(),
        }
    }
}

impl<A> Drop for QueueLead<A> {
    fn drop(&mut self) {
        self.close();
    }
}
