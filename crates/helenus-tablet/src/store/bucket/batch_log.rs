//! Cross-tablet batches: each is stored as a whole before any tablet gets its part, so that all parts are eventually written, even if this
//! process ends meanwhile.
//!
//! 1. The batch becomes the object `batches/<uuid>`. From now on all of it takes effect, even after a failure.
//! 2. Each tablet writes its part together with a key that records that it was applied ([`crate::bucket::batch_applied_key`]).
//! 3. When all parts are written, the writer is answered; then the object is deleted, and after it the keys.
//!
//! A node that opens a tablet writes the missing parts before the first read ([`BatchLog::replay`]). Batches whose writer failed half-way
//! are completed periodically once all of their tablets are open here. A part whose key exists is not written again.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes};
use futures::{StreamExt, TryStreamExt};
use hashbrown::HashSet;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutOptions};
use parking_lot::Mutex;
use uuid::Uuid;

use super::write::{Part, outcome_of, split, submit};
use crate::bucket::batch_applied_key;
use crate::checksum::crc32c;
use crate::error::{StoreError, chain};
use crate::log::{decode_records, encode_record};
use crate::operation::Op;
use crate::store::Store;
use crate::tablet::Tablet;
use crate::tablet::group_commit::{Answer, WriteGuards};

const FOLDER: &str = "batches";
const MAGIC: [u8; 8] = *b"HLNSBAT1";
/// Magic and checksum.
const HEADER_LEN: usize = 12;
/// Objects that are read at a time.
const READS: usize = 16;
/// How often unfinished batches are looked for. One that is found twice in a row is unfinished.
pub(super) const SWEEP_INTERVAL: Duration = Duration::from_secs(10);

/// A batch that was written down and is perhaps not in all of its tablets.
struct LoggedBatch {
    id: Uuid,
    ops: Vec<Op>,
}

/// The batches that a tablet has to finish when it is opened.
pub(super) struct PendingBatches {
    /// Those that are under way somewhere.
    listed: Vec<Uuid>,
    /// Finished ones whose applied keys it still has.
    finished: Vec<Uuid>,
}

pub(super) struct BatchLog {
    store: Arc<dyn ObjectStore>,
    /// Those that this process is writing.
    under_way: Mutex<HashSet<Uuid>>,
}

impl BatchLog {
    pub fn new(store: Arc<dyn ObjectStore>) -> BatchLog {
        BatchLog {
            store,
            under_way: Mutex::default(),
        }
    }

    /// Writes a batch over several tablets.
    pub async fn write(self: Arc<Self>, parts: Vec<Part>, hold: WriteGuards) -> Answer {
        let id = Uuid::new_v4();
        self.under_way.lock().insert(id);
        let result = self.write_as(id, parts, hold).await;
        self.under_way.lock().remove(&id);
        // Once it is written down it may be finished by someone else.
        result.map_err(|error| StoreError::Unknown(error.to_string()))
    }

    async fn write_as(self: &Arc<Self>, id: Uuid, parts: Vec<Part>, hold: WriteGuards) -> Answer {
        self.put(id, parts.iter().flat_map(|part| &part.ops)).await?;
        let tablets: Vec<Arc<Tablet>> = parts.iter().map(|part| part.tablet.clone()).collect();
        let answers: Vec<_> = parts
            .into_iter()
            .map(|part| submit(&part.tablet, part.ops, Some(id), Some(hold.clone())))
            .collect();
        drop(hold);
        for answer in answers {
            outcome_of(answer.await)?;
        }
        let this = self.clone();
        tokio::spawn(async move { this.forget(id, &tablets).await });
        Ok(())
    }

    async fn put<'a>(&self, id: Uuid, ops: impl Iterator<Item = &'a Op>) -> Result<(), StoreError> {
        let ops: Vec<Op> = ops.cloned().collect();
        let options = PutOptions {
            mode: PutMode::Create,
            ..PutOptions::default()
        };
        let put = self.store.put_opts(&path(id), encode(&ops).into(), options).await;
        put.map(|_| ()).map_err(|error| unavailable(&error))
    }

    /// Deletes a batch that all tablets have.
    async fn forget(&self, id: Uuid, tablets: &[Arc<Tablet>]) {
        match self.store.delete(&path(id)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => {
                for log_writer in tablets.iter().filter_map(|tablet| tablet.remote.as_ref()) {
                    log_writer.forget_batch(id);
                }
            }
            // The sweep will find it.
            Err(error) => tracing::debug!(batch = %id, %error, "a finished batch could not be deleted"),
        }
    }

    async fn list(&self) -> Result<Vec<Uuid>, StoreError> {
        let folder = Path::from(FOLDER);
        let found: Vec<_> = self
            .store
            .list(Some(&folder))
            .try_collect()
            .await
            .map_err(|error| unavailable(&error))?;
        let id = |name: &str| Uuid::parse_str(name).ok();
        Ok(found
            .iter()
            .filter_map(|object| object.location.filename().and_then(id))
            .collect())
    }

    /// Reads a batch; `None` if it is gone meanwhile.
    async fn read(&self, id: Uuid) -> Result<Option<LoggedBatch>, StoreError> {
        let path = path(id);
        let found = match self.store.get(&path).await {
            Ok(found) => found.bytes().await.map_err(|error| unavailable(&error))?,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(unavailable(&error)),
        };
        let ops = decode(found).ok_or_else(|| StoreError::Corrupt {
            file: path.to_string(),
            detail: "the batch does not match its checksum".into(),
        })?;
        Ok(Some(LoggedBatch { id, ops }))
    }

    async fn read_all(&self, ids: Vec<Uuid>) -> Result<Vec<LoggedBatch>, StoreError> {
        let reads = futures::stream::iter(ids).map(|id| self.read(id));
        let read: Vec<Option<LoggedBatch>> = reads.buffer_unordered(READS).try_collect().await?;
        Ok(read.into_iter().flatten().collect())
    }

    /// Lists the batches of a tablet whose former owner is fenced. A batch that is not listed now was finished, or never gets a key here.
    pub async fn pending(&self, tablet: &Arc<Tablet>) -> Result<PendingBatches, StoreError> {
        let listed = self.list().await?;
        let mut finished = Vec::new();
        let mut keys = tablet.scan(batch_applied_key::range(), false).await?;
        while let Some((key, _)) = keys.next().await? {
            finished.extend(batch_applied_key::batch_id_of(&key).filter(|id| !listed.contains(id)));
        }
        Ok(PendingBatches { listed, finished })
    }

    /// Gives a tablet that has just been opened the parts that it lacks, and removes the applied keys of finished batches.
    pub async fn replay(&self, tablet: &Arc<Tablet>, pending: PendingBatches) -> Result<(), StoreError> {
        if let Some(log_writer) = &tablet.remote {
            pending
                .finished
                .into_iter()
                .for_each(|id| log_writer.forget_batch(id));
        }
        for batch in self.read_all(pending.listed).await? {
            let mut ops = batch.ops;
            ops.retain(|op| tablet.token_range().contains(op.token));
            write_part(tablet, batch.id, ops).await?;
        }
        Ok(())
    }

    /// The batches left over since the last call; `seen` holds the batches that the last call saw, and then those of this one.
    async fn left_over(&self, seen: &mut HashSet<Uuid>) -> Result<Vec<LoggedBatch>, StoreError> {
        let now: HashSet<Uuid> = {
            let listed = self.list().await?;
            let under_way = self.under_way.lock();
            listed.into_iter().filter(|id| !under_way.contains(id)).collect()
        };
        let before = std::mem::replace(seen, now.clone());
        self.read_all(now.intersection(&before).copied().collect()).await
    }
}

/// Writes a tablet's part of a batch unless it has it.
async fn write_part(tablet: &Tablet, id: Uuid, ops: Vec<Op>) -> Result<(), StoreError> {
    // Bypasses the row cache, which does not track applied keys.
    if ops.is_empty() || tablet.read(&batch_applied_key::applied_key(id)).await?.is_some() {
        return Ok(());
    }
    outcome_of(submit(tablet, ops, Some(id), None).await)
}

impl Store {
    /// Finishes unfinished cross-tablet batches whose tablets are open here, and returns their number. A batch counts as unfinished if the last
    /// call saw it too: `seen` holds those.
    pub async fn finish_batches(&self, seen: &mut HashSet<Uuid>) -> Result<usize, StoreError> {
        let batches = &self.remote()?.batches;
        let mut finished = 0;
        for batch in batches.left_over(seen).await? {
            let parts = match split(&self.tablets.load(), batch.ops) {
                Ok(parts) => parts,
                Err(StoreError::NotOwned(_)) => continue,
                Err(error) => return Err(error),
            };
            let tablets: Vec<Arc<Tablet>> = parts.iter().map(|part| part.tablet.clone()).collect();
            for part in parts {
                write_part(&part.tablet, batch.id, part.ops).await?;
            }
            batches.forget(batch.id, &tablets).await;
            finished += 1;
        }
        Ok(finished)
    }
}

fn path(id: Uuid) -> Path {
    Path::from(format!("{FOLDER}/{id}"))
}

fn unavailable(error: &object_store::Error) -> StoreError {
    StoreError::Unavailable(chain(error))
}

fn encode(ops: &[Op]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&[0; HEADER_LEN - MAGIC.len()]);
    encode_record(0, ops, &mut bytes);
    let sum = crc32c(bytes.get(HEADER_LEN..).unwrap_or_default());
    if let Some(place) = bytes.get_mut(MAGIC.len()..HEADER_LEN) {
        place.copy_from_slice(&sum.to_le_bytes());
    }
    bytes
}

fn decode(mut bytes: Bytes) -> Option<Vec<Op>> {
    if bytes.len() < HEADER_LEN || !bytes.starts_with(&MAGIC) {
        return None;
    }
    bytes.advance(MAGIC.len());
    let sum = bytes.get_u32_le();
    if crc32c(&bytes) != sum {
        return None;
    }
    let records = decode_records(bytes)?;
    Some(records.into_iter().flat_map(|record| record.ops).collect())
}
