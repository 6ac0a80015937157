//! Group commit of one tablet in a bucket: the writes that arrive during a PUT form the next group.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry as Slot;
use parking_lot::Mutex;
use slatedb::DbSnapshot;
use slatedb::config::{FlushOptions, FlushType};
use tokio::sync::{Notify, OwnedSemaphorePermit, oneshot, watch};
use uuid::Uuid;

use crate::bucket::batch_applied_key;
use crate::bucket::tablet_object_store::LogPutOutcomes;
use crate::cache::hot_keys::HotKeySketch;
use crate::cache::partition_cache;
use crate::compaction::OldestByTable;
use crate::data_model::DataModelError;
use crate::database::LEVEL0_MAX;
use crate::error::{StoreError, from_slatedb};
use crate::log::record_len;
use crate::log::stats::LogCounters;
use crate::operation::Op;
use crate::stage::{Cached, backpressure};
use crate::tablet::Tablet;

/// Approximate size of a log object, which holds at least one write.
const GROUP_BYTES_MAX: usize = 4 << 20;

/// The fraction of the last group's duration for which a group waits for the writers just answered; shorter waits are left out.
const FOLLOWER_WAIT_PART: u32 = 8;
const FOLLOWER_WAIT_MIN: Duration = Duration::from_micros(250);

/// Released when the outcome of a write is known: its share of the bytes in flight, and its writer's locks.
pub(crate) type WriteGuards = Arc<(OwnedSemaphorePermit, Option<Arc<dyn Any + Send + Sync>>)>;

/// The outcome of a write.
pub(crate) type Answer = Result<(), StoreError>;

/// A write on its way, or its part for this tablet.
pub(crate) struct Entry {
    pub ops: Vec<Op>,
    /// The batch that it is a part of.
    pub batch: Option<Uuid>,
    pub sender: oneshot::Sender<Answer>,
    pub hold: Option<WriteGuards>,
}

impl Entry {
    fn done(self, answer: Answer) {
        drop(self.hold);
        // The writer may have stopped waiting.
        let _ = self.sender.send(answer);
    }
}

#[derive(Default)]
struct Queue {
    entries: Vec<Entry>,
    /// Batches whose applied keys are no longer needed; the next group removes them.
    finished_batches: Vec<Uuid>,
    /// Why the queue is closed.
    closed: Option<StoreError>,
}

/// The state of the queue when the next group is due.
enum NextGroup {
    /// No write is queued.
    Empty,
    /// No write is queued, and no more are taken.
    Closed,
    Ready {
        entries: Vec<Entry>,
        finished_batches: Vec<Uuid>,
    },
}

/// Group commit of a tablet in a bucket.
pub(crate) struct TabletLogWriter {
    queue: Mutex<Queue>,
    ready: Notify,
    puts: Arc<LogPutOutcomes>,
    counters: Arc<LogCounters>,
    pub read_timeout: Duration,
    /// Set when the last group has ended.
    ended: watch::Sender<bool>,
}

impl TabletLogWriter {
    pub fn new(
        puts: Arc<LogPutOutcomes>,
        counters: Arc<LogCounters>,
        read_timeout: Duration,
    ) -> TabletLogWriter {
        TabletLogWriter {
            queue: Mutex::default(),
            ready: Notify::new(),
            puts,
            counters,
            read_timeout,
            ended: watch::Sender::new(false),
        }
    }

    /// Queues a write.
    pub fn submit(&self, entry: Entry) {
        let mut queue = self.queue.lock();
        match queue.closed.clone() {
            None => queue.entries.push(entry),
            Some(error) => {
                drop(queue);
                entry.done(Err(error));
                return;
            }
        }
        drop(queue);
        self.ready.notify_one();
    }

    /// Has the applied key of a finished batch removed with a later group.
    pub fn forget_batch(&self, batch: Uuid) {
        self.queue.lock().finished_batches.push(batch);
    }

    /// Takes no more writes; those that are queued are still written. The first reason stays.
    pub fn close(&self, error: StoreError) {
        self.queue.lock().closed.get_or_insert(error);
        self.ready.notify_one();
    }

    /// Waits until nothing is written any more.
    pub async fn ended(&self) {
        let _ = self.ended.subscribe().wait_for(|ended| *ended).await;
    }

    pub fn has_ended(&self) -> bool {
        *self.ended.borrow()
    }

    /// Takes the next group from the queue.
    fn take(&self) -> NextGroup {
        let mut queue = self.queue.lock();
        if queue.entries.is_empty() {
            return match queue.closed {
                Some(_) => NextGroup::Closed,
                None => NextGroup::Empty,
            };
        }
        let mut bytes = 0;
        let count = queue
            .entries
            .iter()
            .take_while(|entry| {
                let before = bytes;
                bytes += record_len(&entry.ops);
                before == 0 || bytes <= GROUP_BYTES_MAX
            })
            .count();
        let rest = queue.entries.split_off(count);
        let entries = std::mem::replace(&mut queue.entries, rest);
        NextGroup::Ready {
            entries,
            finished_batches: std::mem::take(&mut queue.finished_batches),
        }
    }

    /// Waits briefly for the writers that have just been answered: sequential writers would otherwise split into two halves, each of which waits
    /// for the PUT of the other before its own.
    async fn wait_for_followers(&self, answered: usize, longest: Duration) {
        if longest < FOLLOWER_WAIT_MIN {
            return;
        }
        let expected = self.queue.lock().entries.len() + answered;
        self.wait_for(longest, |queue| queue.entries.len() >= expected)
            .await;
    }

    /// Waits until the timeout, the predicate or the close.
    async fn wait_for(&self, longest: Duration, is_enough: impl Fn(&Queue) -> bool) {
        if longest.is_zero() {
            return;
        }
        let enough = async {
            loop {
                {
                    let queue = self.queue.lock();
                    if is_enough(&queue) || queue.closed.is_some() {
                        return;
                    }
                }
                self.ready.notified().await;
            }
        };
        let _ = tokio::time::timeout(longest, enough).await;
        // A notification received here belongs to the next group.
        self.ready.notify_one();
    }

    /// Refuses all queued writes, of which none was begun.
    fn refuse(&self, error: &StoreError) {
        self.close(error.clone());
        let entries = std::mem::take(&mut self.queue.lock().entries);
        for entry in entries {
            entry.done(Err(error.clone()));
        }
    }
}

/// A row of a group.
struct Row {
    hash: u64,
    /// All operands of the group, merged.
    operand: Bytes,
    /// The row with the operand in it, if the row cache knew it.
    merged: Option<Bytes>,
    cached: Cached,
}

/// The batch of a group, and its rows.
struct Group {
    batch: slatedb::WriteBatch,
    /// For the row cache.
    rows: HashMap<Bytes, Row>,
    oldest: OldestByTable,
}

/// Writes groups until the tablet takes no more, or cannot.
pub(crate) async fn run(tablet: Arc<Tablet>, log_writer: Arc<TabletLogWriter>) -> Result<(), StoreError> {
    let result = write_all(&tablet, &log_writer).await;
    if let Err(error) = &result {
        log_writer.refuse(error);
    }
    log_writer.ended.send_replace(true);
    result
}

async fn write_all(tablet: &Arc<Tablet>, log_writer: &TabletLogWriter) -> Result<(), StoreError> {
    let mut hot_keys = HotKeySketch::new();
    let mut status = tablet.db.subscribe();
    loop {
        let (entries, finished_batches) = match log_writer.take() {
            NextGroup::Ready {
                entries,
                finished_batches,
            } => (entries, finished_batches),
            NextGroup::Closed => return Ok(()),
            NextGroup::Empty => {
                tokio::select! {
                    () = log_writer.ready.notified() => {}
                    _ = status.wait_for(|status| status.close_reason.is_some()) => return Err(closed(tablet)),
                }
                continue;
            }
        };
        let (began, count) = (Instant::now(), entries.len());
        write_group(tablet, log_writer, entries, finished_batches, &mut hot_keys).await?;
        if count > 1 {
            log_writer
                .wait_for_followers(count, began.elapsed() / FOLLOWER_WAIT_PART)
                .await;
        }
        let level0_files = status.borrow().current_manifest.l0().len();
        let pause = backpressure::before_put(level0_files, LEVEL0_MAX);
        log_writer.wait_for(pause, |_| false).await;
    }
}

/// Why a tablet's database has closed itself.
fn closed(tablet: &Tablet) -> StoreError {
    match tablet.db.snapshot() {
        Err(error) => from_slatedb(&error),
        Ok(_) => StoreError::Closed,
    }
}

/// Writes a group and answers its writers.
///
/// # Errors
/// Why the tablet can write no more.
async fn write_group(
    tablet: &Arc<Tablet>,
    log_writer: &TabletLogWriter,
    entries: Vec<Entry>,
    finished_batches: Vec<Uuid>,
    hot_keys: &mut HotKeySketch,
) -> Result<(), StoreError> {
    if tablet.db.status().close_reason.is_some() {
        let error = closed(tablet);
        answer(entries, &Err(error.clone()));
        return Err(error);
    }
    let Group { batch, rows, oldest } = match prepare(tablet, &entries, &finished_batches) {
        Ok(prepared) => prepared,
        Err(error) => {
            // Nothing of the group has been written.
            tracing::error!(tablet = tablet.id(), %error, "the operands of a row could not be merged");
            answer(entries, &Err(error.into()));
            return Ok(());
        }
    };
    log_writer.puts.begin();
    match put(tablet, batch).await {
        Ok(seq) => tablet.compactions.write_times.record(seq, oldest),
        Err(error) => {
            let told = match &error {
                StoreError::Fenced if log_writer.puts.is_refused_for_sure() => StoreError::Fenced,
                error => StoreError::Unknown(error.to_string()),
            };
            answer(entries, &Err(told));
            return Err(error);
        }
    }
    log_writer.counters.groups.fetch_add(1, Ordering::Relaxed);
    log_writer
        .counters
        .records
        .fetch_add(entries.len() as u64, Ordering::Relaxed);
    let counters = &tablet.counters;
    counters.batches.fetch_add(1, Ordering::Relaxed);
    counters.operands.fetch_add(rows.len() as u64, Ordering::Relaxed);
    // The group is durable: writers are answered even if the tablet can no longer be read here.
    let tree = tablet.db.snapshot().map_err(|error| from_slatedb(&error));
    let hot = match &tree {
        Ok(tree) => publish(tablet, tree.clone(), rows, hot_keys),
        Err(_) => Vec::new(),
    };
    answer(entries, &Ok(()));
    cache(tablet, hot);
    tree.map(|_| ())
}

fn answer(entries: Vec<Entry>, answer: &Answer) {
    for entry in entries {
        entry.done(answer.clone());
    }
}

/// All entries' operations together.
fn prepare(tablet: &Tablet, entries: &[Entry], finished_batches: &[Uuid]) -> Result<Group, DataModelError> {
    let (model, cache) = (tablet.model.as_ref(), &tablet.cache);
    let mut rows: HashMap<Bytes, Row> = HashMap::new();
    let mut oldest = OldestByTable::new();
    let now_ms = tablet.clock.now_ms();
    for op in entries.iter().flat_map(|entry| &entry.ops) {
        let cached = tablet.cached(op, now_ms, &mut oldest);
        match rows.entry(op.key.clone()) {
            Slot::Vacant(vacant) => {
                vacant.insert(Row {
                    hash: cache.hash(&op.key),
                    operand: op.operand.clone(),
                    merged: None,
                    cached,
                });
            }
            Slot::Occupied(mut occupied) => {
                occupied.get_mut().cached.is_late |= cached.is_late;
                let operands = [occupied.get().operand.clone(), op.operand.clone()];
                occupied.get_mut().operand = model.merge(&op.key, None, &operands)?;
            }
        }
    }
    let mut batch = slatedb::WriteBatch::new();
    for (key, row) in &mut rows {
        if let Some((key, tombstones)) = model.archive(key, &row.operand)? {
            batch.merge(key, tombstones);
        }
        if tablet.row_cache_on
            && !row.cached.is_late
            && let Some(peeked) = cache.peek(row.hash, key, row.cached.generation)
        {
            row.merged = match &peeked.value {
                None => Some(row.operand.clone()),
                Some(value) => model
                    .merge(key, Some(value), std::slice::from_ref(&row.operand))
                    .inspect_err(|error| tracing::error!(%error, "a cached row could not be merged"))
                    .ok(),
            };
            if let Some(merged) = &row.merged
                && peeked.is_whole(merged, row.operand.len())
                && model.may_copy(key)
            {
                tablet.counters.folded.fetch_add(1, Ordering::Relaxed);
                batch.put_bytes(key.clone(), merged.clone());
                continue;
            }
        }
        batch.merge(key, &row.operand);
    }
    for id in entries.iter().filter_map(|entry| entry.batch) {
        batch.put_bytes(batch_applied_key::applied_key(id), Bytes::new());
    }
    for id in finished_batches {
        batch.delete(batch_applied_key::applied_key(*id));
    }
    Ok(Group { batch, rows, oldest })
}

/// Makes a batch durable; its sequence number.
async fn put(tablet: &Tablet, batch: slatedb::WriteBatch) -> Result<u64, StoreError> {
    let flush = FlushOptions {
        flush_type: FlushType::Wal,
    };
    let written = match tablet.db.write(batch).await {
        Ok(written) => {
            let flushed = tablet.db.flush_with_options(flush).await;
            flushed.map(|()| written.seqnum())
        }
        Err(error) => Err(error),
    };
    written.map_err(|error| from_slatedb(&error))
}

/// Makes the durable group visible to readers; returns the keys that are written often and not cached.
fn publish(
    tablet: &Tablet,
    tree: Arc<DbSnapshot>,
    rows: HashMap<Bytes, Row>,
    hot_keys: &mut HotKeySketch,
) -> Vec<Bytes> {
    let mut hot = Vec::new();
    tablet.stage.publish(tree, || {
        if !tablet.row_cache_on {
            return;
        }
        for (key, row) in rows {
            partition_cache::forget(tablet.model.as_ref(), &tablet.cache, &key);
            let Row {
                hash,
                operand,
                merged,
                cached: Cached { is_late, .. },
            } = row;
            if is_late {
                tablet.cache.remove(hash, &key);
            }
            let merge = |value: &Bytes| {
                merged.or_else(|| {
                    let operands = std::slice::from_ref(&operand);
                    tablet.model.merge(&key, Some(value), operands).ok()
                })
            };
            let generation = tablet.generation(&key);
            let folded = tablet.cache.fold(hash, &key, &operand, generation, merge);
            if folded == crate::cache::row_cache::UpdateOutcome::Unknown && hot_keys.count(hash) {
                hot.push(key);
            }
        }
    });
    hot
}

/// Reads keys into the row cache in the background.
fn cache(tablet: &Arc<Tablet>, keys: Vec<Bytes>) {
    if keys.is_empty() {
        return;
    }
    let tablet = tablet.clone();
    tokio::spawn(async move {
        for key in keys {
            // If that fails the next reader will be told.
            let _ = tablet.get(&key).await;
        }
    });
}
