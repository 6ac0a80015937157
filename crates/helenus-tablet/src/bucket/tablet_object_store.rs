//! The object store of one tablet's database: timeouts and retries of log PUTs, and a record of their outcome.
//!
//! SlateDB retries a failed request without end and detects by an id in the object's metadata whether a PUT that seemed to fail took
//! effect. It does not report whether a group that it gave up may have been written; [`LogPutOutcomes`] records that.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result,
};

use crate::bucket::gc_boundary_cache;
use crate::bucket::gc_boundary_cache::{GcBoundaryCache, is_boundary};
use crate::bucket::log_listing_cache::LogListingCache;
use crate::bucket::metered_object_store::is_log;
use crate::error::chain;
use crate::log::stats::LogCounters;
use crate::work::nanos;

/// The timeout after which the PUT of a log object is retried.
const LOG_PUT_TIMEOUT: Duration = Duration::from_secs(5);

/// Outcomes of the log's PUTs since a group was begun.
#[derive(Debug, Default)]
pub(crate) struct LogPutOutcomes {
    /// One failed in a way that leaves open whether it took effect.
    unclear: AtomicBool,
    /// One was refused since there is an object of that name.
    refused: AtomicBool,
    /// In a row, for the log.
    failures: AtomicU64,
}

impl LogPutOutcomes {
    /// Another group begins.
    pub fn begin(&self) {
        self.unclear.store(false, Ordering::Release);
        self.refused.store(false, Ordering::Release);
    }

    /// True if the group's PUT was refused, and no attempt before could have taken effect.
    pub fn is_refused_for_sure(&self) -> bool {
        self.refused.load(Ordering::Acquire) && !self.unclear.load(Ordering::Acquire)
    }

    fn note(&self, location: &Path, error: &Error, counters: &LogCounters) {
        // A folder keeps no metadata: nothing was begun, and SlateDB does without.
        if matches!(error, Error::NotImplemented { .. } | Error::NotSupported { .. }) {
            return;
        }
        counters.failures.fetch_add(1, Ordering::Relaxed);
        if matches!(error, Error::AlreadyExists { .. }) {
            self.refused.store(true, Ordering::Release);
            return;
        }
        // It was refused, and the next try will tell for whose sake.
        if is_conflict(error) {
            return;
        }
        self.unclear.store(true, Ordering::Release);
        if self.failures.fetch_add(1, Ordering::Relaxed) == 0 {
            tracing::warn!(object = %location, error = %chain(error), "the object store does not take the log; writes wait");
        }
    }

    fn recovered(&self, location: &Path) {
        let failures = self.failures.swap(0, Ordering::Relaxed);
        if failures > 0 {
            tracing::info!(object = %location, failures, "the object store takes the log again");
        }
    }
}

/// One tablet's view.
#[derive(Debug)]
pub(crate) struct TabletObjectStore {
    inner: Arc<dyn ObjectStore>,
    puts: Arc<LogPutOutcomes>,
    counters: Arc<LogCounters>,
    boundaries: GcBoundaryCache,
    /// The log, as opening the tablet has found it.
    pub front: LogListingCache,
}

impl TabletObjectStore {
    pub fn new(
        inner: Arc<dyn ObjectStore>,
        puts: Arc<LogPutOutcomes>,
        counters: Arc<LogCounters>,
    ) -> TabletObjectStore {
        TabletObjectStore {
            inner,
            puts,
            counters,
            boundaries: GcBoundaryCache::default(),
            front: LogListingCache::default(),
        }
    }

    /// Reads the manifest's boundary ahead of its repeated use. After a failure it is read on demand.
    pub async fn read_boundary(&self, tablet: u32) {
        let boundary = gc_boundary_cache::of_manifests(tablet);
        let _ = self.get_opts(&boundary, GetOptions::default()).await;
    }

    async fn put_log(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        let bytes = payload.content_length() as u64;
        // A slow line has its time: a second more for each MiB.
        let patience = LOG_PUT_TIMEOUT + Duration::from_secs(bytes >> 20);
        let began = Instant::now();
        let put = self.inner.put_opts(location, payload, options);
        let result = match tokio::time::timeout(patience, put).await {
            Ok(result) => result.map_err(retry_conflict),
            Err(_) => Err(Error::Generic {
                store: "helenus",
                source: format!("no answer within {} s", patience.as_secs()).into(),
            }),
        };
        match &result {
            Ok(_) => {
                self.puts.recovered(location);
                self.counters.syncs.fetch_add(1, Ordering::Relaxed);
                self.counters.bytes.fetch_add(bytes, Ordering::Relaxed);
                self.counters
                    .sync_nanos
                    .fetch_add(nanos(began.elapsed()), Ordering::Relaxed);
            }
            Err(error) => {
                self.puts.note(location, error, &self.counters);
            }
        }
        result
    }
}

fn names_conflict(source: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    chain(source).contains("ConditionalRequestConflict")
}

/// True for the errors of [`retry_conflict`].
fn is_conflict(error: &Error) -> bool {
    matches!(error, Error::Generic { source, .. } if names_conflict(source.as_ref()))
}

/// S3 answers 409 to one of two PUTs of a name at the same time, and says that it is to be tried again.
fn retry_conflict(error: Error) -> Error {
    match error {
        Error::AlreadyExists { source, .. } if names_conflict(source.as_ref()) => Error::Generic {
            store: "helenus",
            source,
        },
        other => other,
    }
}

impl fmt::Display for TabletObjectStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.inner)
    }
}

#[async_trait]
impl ObjectStore for TabletObjectStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        if is_log(location) {
            let size = payload.content_length() as u64;
            let put = self.put_log(location, payload, opts).await;
            self.front.put(location, put.is_ok().then_some(size));
            return put;
        }
        let put = self.inner.put_opts(location, payload, opts).await;
        if is_boundary(location) {
            self.boundaries.forget(location);
        }
        put.map_err(retry_conflict)
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        match () {
            () if is_boundary(location) => self.boundaries.get(self.inner.as_ref(), location, options).await,
            () if is_log(location) => self.front.get(self.inner.as_ref(), location, options).await,
            () => self.inner.get_opts(location, options).await,
        }
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.inner.rename_opts(from, to, options).await
    }
}
