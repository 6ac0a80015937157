//! Writes, reads and deletes chunks of history in the object store. A chunk is written before its part of the log is deleted, and is
//! deleted when it is too old.

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{Error, ObjectMeta, ObjectStore, ObjectStoreExt};
use uuid::Uuid;

use super::chunk::{self, ChunkName};
use super::{Segments, log_folder};
use crate::bucket::subfolders::subfolders;
use crate::error::{StoreError, chain};

/// Result of the deletion of old chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrimmedHistory {
    /// Number of deleted chunks.
    pub deleted: usize,
    /// Bytes of the chunks that remain.
    pub kept_bytes: u64,
}

fn unavailable(error: &Error) -> StoreError {
    StoreError::Unavailable(chain(error))
}

/// Writes segments of a log as a chunk.
///
/// # Errors
/// The chunk can't be written. The segments must stay in the log.
pub(crate) async fn write(
    objects: &Arc<dyn ObjectStore>,
    log: Uuid,
    segments: Segments,
    now_ms: i64,
) -> Result<(), StoreError> {
    let path = ChunkName::of(&segments, now_ms).path(log);
    let encoding = crate::threads::spawn_blocking(move || chunk::encode(&segments));
    let bytes = encoding
        .await
        .map_err(|error| StoreError::Unavailable(error.to_string()))?
        .map_err(|error| StoreError::Unavailable(format!("cannot compress {path}: {error}")))?;
    let put = objects.put(&path, bytes.into()).await;
    put.map(|_| ()).map_err(|error| unavailable(&error))
}

/// Returns the logs that have chunks.
pub(crate) async fn logs(objects: &dyn ObjectStore) -> Result<Vec<Uuid>, StoreError> {
    subfolders(objects, &log_folder(None)).await
}

async fn list(
    objects: &dyn ObjectStore,
    log: Option<Uuid>,
) -> Result<Vec<(ChunkName, ObjectMeta)>, StoreError> {
    let listed = objects.list(Some(&log_folder(log)));
    let found: Vec<ObjectMeta> = listed.try_collect().await.map_err(|error| unavailable(&error))?;
    let named = |object: ObjectMeta| Some((ChunkName::parse(&object.location)?, object));
    Ok(found.into_iter().filter_map(named).collect())
}

/// Returns the chunks of a log whose first segment is not before `first`, by their first segments. `until` is a segment and a time: a store that
/// lists paths in their order is not listed beyond the first chunk that begins after both.
pub(crate) async fn chunks(
    objects: &dyn ObjectStore,
    log: Uuid,
    first: u64,
    until: Option<(u64, i64)>,
) -> Result<Vec<(ChunkName, Path)>, StoreError> {
    let folder = log_folder(Some(log));
    let mut listed = objects.list_with_offset(Some(&folder), &chunk::path_before(&folder, first));
    let mut chunks = Vec::new();
    while let Some(object) = listed.next().await {
        let location = object.map_err(|error| unavailable(&error))?.location;
        let Some(name) = ChunkName::parse(&location) else {
            continue;
        };
        chunks.push((name, location));
        if until.is_some_and(|(segment, until_ms)| name.first > segment && name.earliest_ms > until_ms) {
            break;
        }
    }
    chunks.sort_unstable_by_key(|(name, _)| *name);
    Ok(chunks)
}

/// Reads a chunk.
///
/// # Errors
/// The chunk is missing, damaged or can't be read.
pub(crate) async fn read(objects: &dyn ObjectStore, path: &Path) -> Result<Segments, StoreError> {
    let found = match objects.get(path).await {
        Err(Error::NotFound { .. }) => return Err(StoreError::FileGone(path.to_string())),
        found => found.map_err(|error| unavailable(&error))?,
    };
    let bytes = found.bytes().await.map_err(|error| unavailable(&error))?;
    let decoding = crate::threads::spawn_blocking(move || chunk::decode(&bytes));
    let decoded = decoding
        .await
        .map_err(|error| StoreError::Unavailable(error.to_string()))?;
    decoded.ok_or_else(|| StoreError::Corrupt {
        file: path.to_string(),
        detail: "its checksum is wrong".to_owned(),
    })
}

/// Deletes the chunks for which `is_old` returns true, given their log and their last segment.
pub(crate) async fn delete(
    objects: &Arc<dyn ObjectStore>,
    is_old: impl Fn(Uuid, u64) -> bool,
) -> Result<TrimmedHistory, StoreError> {
    let found = list(objects.as_ref(), None).await?;
    let is_old = |name: &ChunkName, path: &Path| {
        let log = ChunkName::log(path);
        log.is_some_and(|log| is_old(log, name.last))
    };
    let (old, kept): (Vec<_>, Vec<_>) = found
        .into_iter()
        .partition(|(name, object)| is_old(name, &object.location));
    let trimmed = TrimmedHistory {
        deleted: old.len(),
        kept_bytes: total_bytes(&kept),
    };
    let paths = old.into_iter().map(|(_, object)| Ok(object.location));
    let mut deleted = objects.delete_stream(futures::stream::iter(paths).boxed());
    while let Some(result) = deleted.next().await {
        match result {
            Ok(_) | Err(Error::NotFound { .. }) => {}
            Err(error) => return Err(unavailable(&error)),
        }
    }
    Ok(trimmed)
}

fn total_bytes(chunks: &[(ChunkName, ObjectMeta)]) -> u64 {
    chunks.iter().map(|(_, object)| object.size).sum()
}

/// Returns the total bytes of all chunks.
pub(crate) async fn bytes(objects: &dyn ObjectStore) -> Result<u64, StoreError> {
    Ok(total_bytes(&list(objects, None).await?))
}
