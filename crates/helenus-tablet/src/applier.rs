//! Puts what the log holds into a tablet: one SlateDB batch for all that arrived together, through the row cache.
//!
//! A tablet has one applier, which takes the log's groups in order. Rows that the cache knows are folded here and written whole, so
//! that however often a row is overwritten, reading it meets one value and not a pile of operands. A key that is written over and
//! over but not cached is read once and put into the cache.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use hashbrown::HashTable;
use parking_lot::Mutex;
use slatedb::config::WriteOptions;
use tokio::sync::mpsc;

use crate::cache::Known;
use crate::disk::Space;
use crate::error::{StoreError, from_slatedb};
use crate::log::{Dispatch, Entry, Waiter};
use crate::store::Op;
use crate::tablet::Tablet;

/// Groups that are applied together at most.
const GROUPS_MAX: usize = 16;
/// Operations in one SlateDB batch, about.
const BATCH_OPS_MAX: usize = 4096;
/// A row is written whole when it is at most this much larger than its operands…
const WHOLE_FACTOR: usize = 4;
const WHOLE_SLACK: usize = 256;
/// …or when so many operands lie above its last whole value.
const OPERANDS_MAX: u32 = 32;

/// How often a batch that does not get on looks at the disk.
const STALL_POLL: std::time::Duration = std::time::Duration::from_millis(200);

/// Waits for all tablets of a write.
pub(crate) struct Shared {
    left: AtomicUsize,
    state: Mutex<(Option<Waiter>, Option<StoreError>)>,
}

pub(crate) enum Done {
    One(Waiter),
    Many(Arc<Shared>),
    /// The writer has been told already.
    Told,
}

impl Done {
    fn complete(self, result: Result<(), StoreError>) {
        match self {
            Done::Told => {}
            Done::One(waiter) => waiter.done(result),
            Done::Many(shared) => {
                if let Err(error) = result {
                    shared.state.lock().1 = Some(error);
                }
                if shared.left.fetch_sub(1, Ordering::AcqRel) == 1 {
                    let (waiter, error) = std::mem::take(&mut *shared.state.lock());
                    if let Some(waiter) = waiter {
                        waiter.done(error.map_or(Ok(()), Err));
                    }
                }
            }
        }
    }
}

impl Done {
    /// Tells the writer of an error although the write goes on.
    fn give_up(&mut self, error: &StoreError) {
        std::mem::replace(self, Done::Told).complete(Err(error.clone()));
    }
}

/// A write, or one tablet's part of it.
pub(crate) struct Apply {
    lsn: u64,
    ops: Vec<Op>,
    done: Done,
}

/// Hands the log's groups to the tablets.
pub(crate) struct Router {
    pub tablets: Vec<Arc<Tablet>>,
    pub senders: Vec<mpsc::UnboundedSender<Vec<Apply>>>,
    pub maintenance: Arc<tokio::sync::Notify>,
}

impl Dispatch for Router {
    fn tablet_count(&self) -> usize {
        self.tablets.len()
    }

    fn tablet_of(&self, token: i64) -> usize {
        tablet_of(&self.tablets, token)
    }

    fn apply(&self, entries: Vec<Entry>) {
        let mut groups: Vec<Vec<Apply>> = self.tablets.iter().map(|_| Vec::new()).collect();
        for entry in entries {
            self.route(entry, &mut groups);
        }
        for (group, sender) in groups.into_iter().zip(&self.senders) {
            if !group.is_empty()
                && let Err(refused) = sender.send(group)
            {
                for apply in refused.0 {
                    apply.done.complete(Err(StoreError::Closed));
                }
            }
        }
    }

    fn rolled(&self) {
        self.maintenance.notify_one();
    }
}

impl Router {
    fn route(&self, entry: Entry, groups: &mut [Vec<Apply>]) {
        let Entry { lsn, ops, waiter } = entry;
        let first = ops.first().map_or(0, |op| self.tablet_of(op.token));
        let tablet = self.tablets.get(first);
        if ops
            .iter()
            .all(|op| tablet.is_some_and(|tablet| tablet.token_range().contains(op.token)))
        {
            if let Some(group) = groups.get_mut(first) {
                let done = Done::One(waiter);
                group.push(Apply { lsn, ops, done });
            }
            return;
        }
        let mut parts: Vec<Vec<Op>> = groups.iter().map(|_| Vec::new()).collect();
        for op in ops {
            if let Some(part) = parts.get_mut(self.tablet_of(op.token)) {
                part.push(op);
            }
        }
        let shared = Arc::new(Shared {
            left: AtomicUsize::new(parts.iter().filter(|part| !part.is_empty()).count()),
            state: Mutex::new((Some(waiter), None)),
        });
        for (ops, group) in parts.into_iter().zip(groups) {
            if !ops.is_empty() {
                let done = Done::Many(shared.clone());
                group.push(Apply { lsn, ops, done });
            }
        }
    }
}

/// The index of the tablet that owns a token; `tablets` cover the ring in order.
pub(crate) fn tablet_of(tablets: &[Arc<Tablet>], token: i64) -> usize {
    tablets.partition_point(|tablet| tablet.token_range().last < token)
}

/// A row of the batch that the cache knows.
struct Folded {
    hash: u64,
    key: Bytes,
    /// `None` once folding has failed: the operands are then left to the tree.
    value: Option<Option<Bytes>>,
    operands: Vec<Bytes>,
    operands_before: u32,
}

impl Folded {
    fn write_whole(&self, value: &Bytes) -> bool {
        let operand_bytes: usize = self.operands.iter().map(Bytes::len).sum();
        value.len() <= WHOLE_FACTOR * operand_bytes + WHOLE_SLACK || self.operands_after() > OPERANDS_MAX
    }

    fn operands_after(&self) -> u32 {
        self.operands_before.saturating_add(self.operands.len() as u32)
    }
}

struct Applier {
    tablet: Arc<Tablet>,
    space: Arc<Space>,
    often: Often,
    inbox: Inbox,
}

/// Writes that have arrived and are yet to be applied.
struct Inbox {
    groups: mpsc::UnboundedReceiver<Vec<Apply>>,
    received: Vec<Vec<Apply>>,
}

impl Inbox {
    /// Waits for groups and takes what is there, up to a limit; `None` once the log's end is dropped.
    async fn take(&mut self) -> Option<impl Iterator<Item = Apply> + use<>> {
        if self.received.is_empty() && self.groups.recv_many(&mut self.received, GROUPS_MAX).await == 0 {
            return None;
        }
        Some(std::mem::take(&mut self.received).into_iter().flatten())
    }

    /// Tells all who wait here of an error.
    fn give_up(&mut self, error: &StoreError) {
        while let Ok(group) = self.groups.try_recv() {
            self.received.push(group);
        }
        for apply in self.received.iter_mut().flatten() {
            apply.done.give_up(error);
        }
    }
}

/// Runs until the log's end of the channel is dropped.
pub(crate) async fn run(tablet: Arc<Tablet>, space: Arc<Space>, groups: mpsc::UnboundedReceiver<Vec<Apply>>) {
    let mut applier = Applier {
        tablet,
        space,
        often: Often::new(),
        inbox: Inbox {
            groups,
            received: Vec::new(),
        },
    };
    while let Some(arrived) = applier.inbox.take().await {
        let mut batch: Vec<Apply> = Vec::new();
        let mut ops = 0;
        for apply in arrived {
            ops += apply.ops.len();
            batch.push(apply);
            if ops >= BATCH_OPS_MAX {
                applier.apply(std::mem::take(&mut batch)).await;
                ops = 0;
            }
        }
        if !batch.is_empty() {
            applier.apply(batch).await;
        }
    }
}

impl Applier {
    async fn apply(&mut self, batch: Vec<Apply>) {
        let Some(lsn) = batch.last().map(|apply| apply.lsn) else {
            return;
        };
        let tablet = self.tablet.clone();
        let cache = &tablet.cache;
        let mut write = slatedb::WriteBatch::new();
        let mut plain: Vec<(u64, Bytes)> = Vec::new();
        let mut folded = FoldedRows::default();
        let mut promote: Vec<(u64, Bytes)> = Vec::new();
        let mut op_count = 0;
        let mut waiting = Vec::with_capacity(batch.len());
        for Apply { ops, done, .. } in batch {
            op_count += ops.len() as u64;
            for op in ops {
                let hash = cache.hash(&op.key);
                if let Some(row) = folded.find(hash, &op.key) {
                    tablet.fold(row, op.operand);
                } else if let Some(known) = cache.begin(hash, &op.key) {
                    let row = folded.insert(hash, op.key, known);
                    tablet.fold(row, op.operand);
                } else {
                    write.merge(&op.key, &op.operand);
                    if self.often.count(hash) {
                        promote.push((hash, op.key.clone()));
                    }
                    plain.push((hash, op.key));
                }
            }
            waiting.push(done);
        }
        let mut written_whole = 0;
        for row in &folded.rows {
            match &row.value {
                Some(Some(value)) if row.write_whole(value) => {
                    written_whole += 1;
                    write.put_bytes(row.key.clone(), value.clone());
                }
                _ => row
                    .operands
                    .iter()
                    .for_each(|operand| write.merge(&row.key, operand)),
            }
        }
        let result = self.write(write, lsn, &mut waiting).await;
        for (hash, key) in &plain {
            cache.finish(*hash, key, None);
        }
        for row in folded.rows {
            let whole = matches!(&row.value, Some(Some(value)) if row.write_whole(value));
            let operands = if whole { 0 } else { row.operands_after() };
            let known = row.value.flatten().filter(|_| result.is_ok());
            cache.finish(row.hash, &row.key, known.map(|value| (value, operands)));
        }
        let counters = &tablet.counters;
        counters.batches.fetch_add(1, Ordering::Relaxed);
        counters.operands.fetch_add(op_count, Ordering::Relaxed);
        counters.folded.fetch_add(written_whole, Ordering::Relaxed);
        for done in waiting {
            done.complete(result.clone());
        }
        self.promote(promote).await;
    }

    /// Writes a batch to the tree, however long that takes. When it takes long because the disk is full, those who wait are told.
    async fn write(
        &mut self,
        batch: slatedb::WriteBatch,
        lsn: u64,
        waiting: &mut [Done],
    ) -> Result<(), StoreError> {
        let tablet = self.tablet.clone();
        let mut writing = std::pin::pin!(tablet.write(batch, lsn));
        loop {
            if let Ok(result) = tokio::time::timeout(STALL_POLL, writing.as_mut()).await {
                return result;
            }
            if let Err(error) = self.space.check() {
                waiting.iter_mut().for_each(|done| done.give_up(&error));
                self.inbox.give_up(&error);
            }
        }
    }

    /// Reads rows that are written often into the cache. Nothing else writes meanwhile, so what is read is current.
    async fn promote(&self, keys: Vec<(u64, Bytes)>) {
        for (hash, key) in keys {
            if let Ok(value) = self.tablet.read_tree(&key).await {
                self.tablet.cache.insert(hash, &key, value.as_ref());
            }
        }
    }
}

/// The rows of a batch that are folded here, found by key.
#[derive(Default)]
struct FoldedRows {
    rows: Vec<Folded>,
    table: HashTable<usize>,
}

impl FoldedRows {
    fn find(&mut self, hash: u64, key: &[u8]) -> Option<&mut Folded> {
        if self.rows.is_empty() {
            return None;
        }
        let rows = &self.rows;
        let index = *self
            .table
            .find(hash, |&index| rows.get(index).is_some_and(|row| row.key == key))?;
        self.rows.get_mut(index)
    }

    fn insert(&mut self, hash: u64, key: Bytes, known: Known) -> &mut Folded {
        let index = self.rows.len();
        let rows = &self.rows;
        self.table
            .insert_unique(hash, index, |&other| rows.get(other).map_or(0, |row| row.hash));
        self.rows.push(Folded {
            hash,
            key,
            value: Some(known.value),
            operands: Vec::new(),
            operands_before: known.operands,
        });
        &mut self.rows[index]
    }
}

impl Tablet {
    fn fold(&self, row: &mut Folded, operand: Bytes) {
        if let Some(value) = row.value.take() {
            row.value = match value {
                None => Some(Some(operand.clone())),
                Some(value) => match self
                    .hooks
                    .merge(&row.key, Some(&value), std::slice::from_ref(&operand))
                {
                    Ok(merged) => Some(Some(merged)),
                    Err(error) => {
                        tracing::error!(%error, "a cached row could not be merged");
                        None
                    }
                },
            };
        }
        row.operands.push(operand);
    }

    async fn write(&self, batch: slatedb::WriteBatch, lsn: u64) -> Result<(), StoreError> {
        let options = WriteOptions { seqnum: lsn };
        match self.db.write_with_options(batch, &options).await {
            Ok(_) => Ok(()),
            Err(error) => {
                let error = from_slatedb(&error);
                tracing::error!(tablet = self.id(), %error, "a batch that is in the log could not be applied");
                Err(error)
            }
        }
    }
}

/// Finds keys that are written again and again, in little memory: a counter a slot, for the key that hits it most.
struct Often(Box<[(u8, u8)]>);

impl Often {
    const SLOTS: usize = 1 << 15;
    const THRESHOLD: u8 = 32;

    fn new() -> Self {
        Often(vec![(0, 0); Self::SLOTS].into_boxed_slice())
    }

    /// Counts a write; true each time that a key has come `THRESHOLD` times more often than its neighbours.
    fn count(&mut self, hash: u64) -> bool {
        let tag = (hash >> 56) as u8;
        let Some((owner, count)) = self.0.get_mut((hash >> 16) as usize % Self::SLOTS) else {
            return false;
        };
        if *owner == tag {
            *count += 1;
            if *count >= Self::THRESHOLD {
                *count = 0;
                return true;
            }
        } else if *count > 1 {
            *count -= 1;
        } else {
            (*owner, *count) = (tag, 1);
        }
        false
    }
}
