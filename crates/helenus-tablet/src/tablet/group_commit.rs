//! Group commit of one tablet in a bucket: what gathers while a PUT is under way is the next one.

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
use crate::bucket::tablet_object_store::LogPuts;
use crate::cache::hot_keys::Often;
use crate::cache::partition_cache;
use crate::compaction::Oldest;
use crate::data_model::HookError;
use crate::database::LEVEL0_MAX;
use crate::error::{StoreError, from_slatedb};
use crate::log::record_len;
use crate::log::stats::LogCounters;
use crate::stage::{Cached, backpressure};
use crate::tablet::Tablet;
use crate::write_batch::Op;

/// One object of the log holds so much, about, and at least one write.
const GROUP_BYTES_MAX: usize = 4 << 20;

/// How long a group waits for those who have just been answered, as a part of what the last one took; shorter waits are left out.
const LINGER_PART: u32 = 8;
const LINGER_MIN: Duration = Duration::from_micros(250);

/// What is released when the outcome of a write is known: its share of the bytes in flight, and its writer's locks.
pub(crate) type Hold = Arc<(OwnedSemaphorePermit, Option<Arc<dyn Any + Send + Sync>>)>;

/// What a writer is told.
pub(crate) type Answer = Result<(), StoreError>;

/// A write on its way, or its part for this tablet.
pub(crate) struct Entry {
    pub ops: Vec<Op>,
    /// The batch that it is a part of.
    pub batch: Option<Uuid>,
    pub sender: oneshot::Sender<Answer>,
    pub hold: Option<Hold>,
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
    /// Batches whose marks are of no more use; they go with the next group.
    unmarks: Vec<Uuid>,
    /// Why no more is taken.
    closed: Option<StoreError>,
}

/// What a tablet in a bucket has beside its database.
pub(crate) struct Hosted {
    queue: Mutex<Queue>,
    ready: Notify,
    puts: Arc<LogPuts>,
    counters: Arc<LogCounters>,
    pub read_timeout: Duration,
    /// Set when the last group has ended.
    ended: watch::Sender<bool>,
}

impl Hosted {
    pub fn new(puts: Arc<LogPuts>, counters: Arc<LogCounters>, read_timeout: Duration) -> Hosted {
        Hosted {
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

    /// Has the marks of a batch removed, some time.
    pub fn unmark(&self, batch: Uuid) {
        self.queue.lock().unmarks.push(batch);
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

    /// The next group; `None` once the queue is closed and empty.
    fn take(&self) -> Option<Option<(Vec<Entry>, Vec<Uuid>)>> {
        let mut queue = self.queue.lock();
        if queue.entries.is_empty() {
            return queue.closed.is_some().then_some(None);
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
        let unmarks = std::mem::take(&mut queue.unmarks);
        Some(Some((entries, unmarks)))
    }

    /// Waits a moment for the writers that have just been answered: those who write one after the other would else fall into two halves,
    /// each of which waits for the other's PUT before its own.
    async fn linger(&self, answered: usize, longest: Duration) {
        if longest < LINGER_MIN {
            return;
        }
        let expected = self.queue.lock().entries.len() + answered;
        self.wait_for(longest, |queue| queue.entries.len() >= expected)
            .await;
    }

    /// Waits for so long, or until that is so, or no more is taken.
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
        // What was heard here is for the next group.
        self.ready.notify_one();
    }

    /// Refuses what is queued, of which nothing was begun.
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

/// What a group writes.
struct Group {
    batch: slatedb::WriteBatch,
    /// For the row cache.
    rows: HashMap<Bytes, Row>,
    oldest: Oldest,
}

/// Writes groups until the tablet takes no more, or cannot.
pub(crate) async fn run(tablet: Arc<Tablet>, hosted: Arc<Hosted>) -> Result<(), StoreError> {
    let result = write_all(&tablet, &hosted).await;
    if let Err(error) = &result {
        hosted.refuse(error);
    }
    hosted.ended.send_replace(true);
    result
}

async fn write_all(tablet: &Arc<Tablet>, hosted: &Hosted) -> Result<(), StoreError> {
    let mut often = Often::new();
    let mut status = tablet.db.subscribe();
    loop {
        let (entries, unmarks) = match hosted.take() {
            Some(Some(group)) => group,
            Some(None) => return Ok(()),
            None => {
                tokio::select! {
                    () = hosted.ready.notified() => {}
                    _ = status.wait_for(|status| status.close_reason.is_some()) => return Err(closed(tablet)),
                }
                continue;
            }
        };
        let (began, count) = (Instant::now(), entries.len());
        write_group(tablet, hosted, entries, unmarks, &mut often).await?;
        if count > 1 {
            hosted.linger(count, began.elapsed() / LINGER_PART).await;
        }
        let level0_files = status.borrow().current_manifest.l0().len();
        let pause = backpressure::before_put(level0_files, LEVEL0_MAX);
        hosted.wait_for(pause, |_| false).await;
    }
}

/// Why a tablet's database has closed itself.
fn closed(tablet: &Tablet) -> StoreError {
    match tablet.db.snapshot() {
        Err(error) => from_slatedb(&error),
        Ok(_) => StoreError::Closed,
    }
}

/// Writes a group and tells its writers.
///
/// # Errors
/// Why the tablet can write no more.
async fn write_group(
    tablet: &Arc<Tablet>,
    hosted: &Hosted,
    entries: Vec<Entry>,
    unmarks: Vec<Uuid>,
    often: &mut Often,
) -> Result<(), StoreError> {
    if tablet.db.status().close_reason.is_some() {
        let error = closed(tablet);
        answer(entries, &Err(error.clone()));
        return Err(error);
    }
    let Group { batch, rows, oldest } = match prepare(tablet, &entries, &unmarks) {
        Ok(prepared) => prepared,
        Err(error) => {
            // Nothing of the group has been written.
            tracing::error!(tablet = tablet.id(), %error, "the operands of a row could not be merged");
            answer(entries, &Err(error.into()));
            return Ok(());
        }
    };
    hosted.puts.begin();
    match put(tablet, batch).await {
        Ok(seq) => tablet.compactions.write_times.record(seq, oldest),
        Err(error) => {
            let told = match &error {
                StoreError::Fenced if hosted.puts.is_refused_for_sure() => StoreError::Fenced,
                error => StoreError::Unknown(error.to_string()),
            };
            answer(entries, &Err(told));
            return Err(error);
        }
    }
    hosted.counters.groups.fetch_add(1, Ordering::Relaxed);
    hosted
        .counters
        .records
        .fetch_add(entries.len() as u64, Ordering::Relaxed);
    let counters = &tablet.counters;
    counters.batches.fetch_add(1, Ordering::Relaxed);
    counters.operands.fetch_add(rows.len() as u64, Ordering::Relaxed);
    // It is durable: writers may be told even where nothing can be read from here any more.
    let tree = tablet.db.snapshot().map_err(|error| from_slatedb(&error));
    let hot = match &tree {
        Ok(tree) => publish(tablet, tree.clone(), rows, often),
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
fn prepare(tablet: &Tablet, entries: &[Entry], unmarks: &[Uuid]) -> Result<Group, HookError> {
    let (hooks, cache) = (tablet.hooks.as_ref(), &tablet.cache);
    let mut rows: HashMap<Bytes, Row> = HashMap::new();
    let mut oldest = Oldest::new();
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
                occupied.get_mut().operand = hooks.merge(&op.key, None, &operands)?;
            }
        }
    }
    let mut batch = slatedb::WriteBatch::new();
    for (key, row) in &mut rows {
        if let Some((key, tombstones)) = hooks.archive(key, &row.operand)? {
            batch.merge(key, tombstones);
        }
        if tablet.row_cache_on
            && !row.cached.is_late
            && let Some(peeked) = cache.peek(row.hash, key, row.cached.fence)
        {
            row.merged = match &peeked.value {
                None => Some(row.operand.clone()),
                Some(value) => hooks
                    .merge(key, Some(value), std::slice::from_ref(&row.operand))
                    .inspect_err(|error| tracing::error!(%error, "a cached row could not be merged"))
                    .ok(),
            };
            if let Some(merged) = &row.merged
                && peeked.is_whole(merged, row.operand.len())
                && hooks.may_copy(key)
            {
                tablet.counters.folded.fetch_add(1, Ordering::Relaxed);
                batch.put_bytes(key.clone(), merged.clone());
                continue;
            }
        }
        batch.merge(key, &row.operand);
    }
    for id in entries.iter().filter_map(|entry| entry.batch) {
        batch.put_bytes(batch_applied_key::mark(id), Bytes::new());
    }
    for id in unmarks {
        batch.delete(batch_applied_key::mark(*id));
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

/// Shows readers what is durable now; the keys that are written often and not cached.
fn publish(
    tablet: &Tablet,
    tree: Arc<DbSnapshot>,
    rows: HashMap<Bytes, Row>,
    often: &mut Often,
) -> Vec<Bytes> {
    let mut hot = Vec::new();
    tablet.stage.publish(tree, || {
        if !tablet.row_cache_on {
            return;
        }
        for (key, row) in rows {
            partition_cache::forget(tablet.hooks.as_ref(), &tablet.cache, &key);
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
                    tablet.hooks.merge(&key, Some(value), operands).ok()
                })
            };
            let fence = tablet.fence(&key);
            let folded = tablet.cache.fold(hash, &key, &operand, fence, merge);
            if folded == crate::cache::row_cache::Folded::Unknown && often.count(hash) {
                hot.push(key);
            }
        }
    });
    hot
}

/// Reads keys into the row cache, beside what goes on.
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
