//! The object store of a tablet behind the disk cache.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use object_store::path::Path;
use object_store::{
    GetOptions, GetRange, GetResult, GetResultPayload, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

use super::DiskCache;
use super::part::{PART_BYTES, PartKey, bytes_of, join, missing_runs, parts_of, whole_parts};
use super::upload::CachedUpload;
use crate::disk::open_files::sstable_range;
use crate::object_store_layers::delegate_to_inner;

/// Parts that one read looks up concurrently.
const LOOKUPS: usize = 8;

tokio::task_local! {
    /// Set while reads bypass the cache.
    static REFRESHED: ();
}

/// Runs work whose reads bypass disk caches and replace the cached parts. For data that turned out to be damaged. The checksum of a part
/// only shows that it is as it was received, not that it was received intact.
pub(crate) async fn refreshed<T>(work: impl Future<Output = T>) -> T {
    REFRESHED.scope((), work).await
}

/// Effect of a read on the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadPolicy {
    /// Inserts missing parts. Parts that were on disk are spared once when they would be replaced.
    Insert,
    /// Leaves the cache as it is. For compactions, which read each SSTable once before it is deleted.
    LookUp,
}

/// An object store whose SSTables are cached on disk.
#[derive(Debug)]
pub(crate) struct CachedObjectStore {
    inner: Arc<dyn ObjectStore>,
    cache: Arc<DiskCache>,
    reads: ReadPolicy,
}

/// Wraps `inner` in the disk cache. Returns `inner` itself if there is no cache.
pub(crate) fn cached(
    inner: Arc<dyn ObjectStore>,
    cache: Option<&Arc<DiskCache>>,
    reads: ReadPolicy,
) -> Arc<dyn ObjectStore> {
    match cache {
        Some(cache) => Arc::new(CachedObjectStore {
            inner,
            cache: cache.clone(),
            reads,
        }),
        None => inner,
    }
}

fn is_sstable(location: &Path) -> bool {
    let path = location.as_ref();
    path.ends_with(".sst") && path.contains("/compacted/")
}

impl CachedObjectStore {
    /// Returns true if reads of the object go through the cache. False while the cache is closed, so that exactly the requested bytes are
    /// read instead of whole parts.
    fn caches(&self, location: &Path) -> bool {
        is_sstable(location) && self.cache.is_open()
    }

    /// Reads a range of an SSTable. `options` are the options of the caller's request.
    async fn read(&self, location: &Path, range: Range<u64>, options: &GetOptions) -> Result<Bytes> {
        let object: Arc<str> = location.as_ref().into();
        let wanted = parts_of(&range);
        let mut found = self.look_up(&object, wanted.clone()).await;
        // A part that is shorter than [`PART_BYTES`] is the last one of its SSTable.
        let is_last =
            |part: &Option<Bytes>| part.as_ref().is_some_and(|part| (part.len() as u64) < PART_BYTES);
        if let Some(last) = found.iter().position(is_last) {
            found.truncate(last + 1);
        }
        let missing = missing_runs(wanted.start, &found);
        let at = |index: u32| bytes_of(index..index + 1).start;
        let mut pieces: Vec<(u64, Bytes)> = (wanted.start..)
            .zip(found)
            .filter_map(|(index, part)| Some((at(index), part?)))
            .collect();
        let fetches = missing
            .into_iter()
            .map(|run| self.fetch(location, &object, run, &range, options));
        pieces.extend(futures::future::try_join_all(fetches).await?);
        pieces.sort_by_key(|(start, _)| *start);
        Ok(join(&pieces, &range))
    }

    async fn look_up(&self, object: &Arc<str>, parts: Range<u32>) -> Vec<Option<Bytes>> {
        if REFRESHED.try_with(|()| ()).is_ok() {
            return vec![None; parts.len()];
        }
        let get = |index| async move {
            let object = object.clone();
            self.cache.get(&PartKey { object, index }, self.reads).await
        };
        match parts.len() {
            1 => vec![get(parts.start).await],
            _ => {
                futures::stream::iter(parts.map(get))
                    .buffered(LOOKUPS)
                    .collect()
                    .await
            }
        }
    }

    /// Reads parts from the bucket.
    async fn fetch(
        &self,
        location: &Path,
        object: &Arc<str>,
        parts: Range<u32>,
        wanted: &Range<u64>,
        options: &GetOptions,
    ) -> Result<(u64, Bytes)> {
        let mut range = bytes_of(parts);
        if self.reads == ReadPolicy::LookUp {
            range = range.start.max(wanted.start)..range.end.min(wanted.end);
        }
        let options = GetOptions {
            range: Some(GetRange::Bounded(range)),
            ..options.clone()
        };
        let got = self.inner.get_opts(location, options).await?;
        let (start, is_end) = (got.range.start, got.range.end >= got.meta.size);
        let bytes = got.bytes().await?;
        if self.reads == ReadPolicy::Insert {
            self.cache.insert(whole_parts(object, start, &bytes, is_end));
        }
        Ok((start, bytes))
    }
}

impl fmt::Display for CachedObjectStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.inner)
    }
}

#[async_trait]
impl ObjectStore for CachedObjectStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        if !self.caches(location) {
            return self.inner.put_opts(location, payload, opts).await;
        }
        let put = self.inner.put_opts(location, payload.clone(), opts).await?;
        let parts = whole_parts(&location.as_ref().into(), 0, &Bytes::from(payload), true);
        self.cache.write(parts).await;
        Ok(put)
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let upload = self.inner.put_multipart_opts(location, opts).await?;
        Ok(match self.caches(location) {
            true => Box::new(CachedUpload::new(upload, location, self.cache.clone())),
            false => upload,
        })
    }

    /// Reads an object. The metadata of a range of an SSTable are unknown, so the returned size is the end of the range.
    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let range = sstable_range(location, &options);
        let Some(range) = range.filter(|_| self.caches(location)) else {
            return self.inner.get_opts(location, options).await;
        };
        let bytes = match self.read(location, range.clone(), &options).await {
            Ok(bytes) if !bytes.is_empty() => bytes,
            // The bucket returns the proper error for an invalid range.
            Ok(_) => return self.inner.get_opts(location, options).await,
            Err(error) => return Err(error),
        };
        let range = range.start..range.start + bytes.len() as u64;
        Ok(GetResult {
            meta: ObjectMeta {
                location: location.clone(),
                last_modified: Default::default(),
                size: range.end,
                e_tag: None,
                version: None,
            },
            payload: GetResultPayload::Stream(futures::stream::once(async move { Ok(bytes) }).boxed()),
            range,
            attributes: Default::default(),
            extensions: Default::default(),
        })
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        if !self.caches(location) {
            return self.inner.get_ranges(location, ranges).await;
        }
        let get = |range: &Range<u64>| {
            let options = GetOptions {
                range: Some(GetRange::Bounded(range.clone())),
                ..GetOptions::default()
            };
            async move { self.get_opts(location, options).await?.bytes().await }
        };
        futures::future::try_join_all(ranges.iter().map(get)).await
    }

    // Cached parts of deleted objects stay on disk, are no longer read, and are overwritten in turn.
    delegate_to_inner! {
        delete_stream,
        list, list_with_offset, list_with_delimiter,
        copy_opts, rename_opts,
    }
}
