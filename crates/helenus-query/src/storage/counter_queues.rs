//! Increments that wait for the lock of a counter's partition. The first one waits for the lock; those that come meanwhile queue behind it, and
//! are written together with it in one record of the log. So one counter is not bound to one increment for each sync of the log.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::error::{Consistency, WriteType};
use helenus_row::TableId;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::analysis::Planned;
use crate::failure::{ExecutionError, write_timeout};
use crate::request::BoundValue;

/// Increments that are written together, at most.
const GROUP_MAX: usize = 256;

/// Table and partition.
type QueueKey = (TableId, Bytes);

/// The queues of the partitions for whose locks increments wait.
#[derive(Default)]
pub struct CounterQueues(Mutex<HashMap<QueueKey, Vec<QueuedIncrement>>>);

/// A request that waits to be applied by another one's task.
pub struct QueuedIncrement {
    pub planned: Arc<Planned>,
    pub values: Vec<BoundValue>,
    pub protocol_version: u8,
    pub timestamp_us: Option<i64>,
    pub now_s: i64,
    answer: Option<oneshot::Sender<IncrementAnswer>>,
    /// From then on it may be written.
    is_taken: bool,
}

/// What becomes of a queued increment.
#[derive(Debug, PartialEq, Eq)]
pub enum IncrementAnswer {
    Done(Result<(), ExecutionError>),
    /// Nobody has taken it: it must be queued anew.
    Untouched,
}

/// What a request does that has come to a queue.
pub enum QueueRole {
    /// It waits for the lock, and applies the others.
    Leads(QueueLead),
    Follows(oneshot::Receiver<IncrementAnswer>),
    /// The queue is full.
    Alone,
}

/// The queue behind a request that waits for the lock. Dropped before it was taken, it sends the others back.
pub struct QueueLead {
    queues: Arc<CounterQueues>,
    key: QueueKey,
    is_open: bool,
}

impl QueuedIncrement {
    /// The increment, and where its answer comes.
    pub fn new(
        planned: &Arc<Planned>,
        values: &[BoundValue],
        protocol_version: u8,
        timestamp_us: Option<i64>,
        now_s: i64,
    ) -> (QueuedIncrement, oneshot::Receiver<IncrementAnswer>) {
        let (answer, receiver) = oneshot::channel();
        let increment = QueuedIncrement {
            planned: planned.clone(),
            values: values.to_vec(),
            protocol_version,
            timestamp_us,
            now_s,
            answer: Some(answer),
            is_taken: false,
        };
        (increment, receiver)
    }

    /// From now on nobody else may apply it.
    pub fn take(mut self) -> QueuedIncrement {
        self.is_taken = true;
        self
    }

    pub fn answer(mut self, result: Result<(), ExecutionError>) {
        self.send(IncrementAnswer::Done(result));
    }

    fn send(&mut self, answer: IncrementAnswer) {
        if let Some(sender) = self.answer.take() {
            // Its client may have gone.
            let _ = sender.send(answer);
        }
    }
}

impl Drop for QueuedIncrement {
    fn drop(&mut self) {
        self.send(match self.is_taken {
            true => IncrementAnswer::Done(Err(write_timeout(Consistency::One, WriteType::Counter).into())),
            false => IncrementAnswer::Untouched,
        });
    }
}

impl CounterQueues {
    /// Comes to the queue of a partition; `increment` is asked for if another request leads it.
    pub fn join(
        self: &Arc<CounterQueues>,
        table: TableId,
        partition: &Bytes,
        increment: impl FnOnce() -> (QueuedIncrement, oneshot::Receiver<IncrementAnswer>),
    ) -> QueueRole {
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
                let (increment, answer) = increment();
                queue.get_mut().push(increment);
                QueueRole::Follows(answer)
            }
        }
    }
}

impl QueueLead {
    /// Those who have come meanwhile. Later ones form the next queue.
    pub fn take(mut self) -> Vec<QueuedIncrement> {
        self.close().into_iter().map(QueuedIncrement::take).collect()
    }

    fn close(&mut self) -> Vec<QueuedIncrement> {
        match std::mem::take(&mut self.is_open) {
            true => self.queues.0.lock().remove(&self.key).unwrap_or_default(),
            false => Vec::new(),
        }
    }
}

impl Drop for QueueLead {
    fn drop(&mut self) {
        self.close();
    }
}
