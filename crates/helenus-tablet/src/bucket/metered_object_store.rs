//! An object store that counts its requests and bytes, because requests cost money and bytes take time.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result, UploadPart,
};

use crate::disk::checksummed_objects::ManifestChecksums;
use crate::log::object::is_log_object;
use crate::throttle::Throttle;
use crate::throttle::object_store::{ThrottledUpload, is_sstable};

/// Requests and bytes since the store was opened. Retries within the client count once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BucketStats {
    pub gets: u64,
    /// Written objects, and parts of large objects.
    pub puts: u64,
    /// Listings, each counted once regardless of its number of pages.
    pub lists: u64,
    pub deletes: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
    /// Failed requests. Answers about the state of an object (missing, existing, changed, unchanged) are no failures.
    pub get_errors: u64,
    pub put_errors: u64,
    /// Time from a request to the beginning of its answer, including retries.
    pub get_latency: BucketLatency,
    pub put_latency: BucketLatency,
}

/// Upper bounds of the classes of [`BucketLatency`], in milliseconds.
pub const BUCKET_LATENCY_MS: [u64; 12] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000, 30_000];

/// Histogram of the latency of requests to an object store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BucketLatency {
    /// Number of requests in each class. A class ends at its bound in [`BUCKET_LATENCY_MS`], inclusive, and begins above the bound before
    /// it.
    pub buckets: [u64; BUCKET_LATENCY_MS.len()],
    pub count: u64,
    pub sum_us: u64,
}

/// Counters behind a [`BucketLatency`].
#[derive(Debug, Default)]
struct LatencyCounters {
    buckets: [AtomicU64; BUCKET_LATENCY_MS.len()],
    count: AtomicU64,
    sum_us: AtomicU64,
}

impl LatencyCounters {
    fn record(&self, began: Instant) {
        let us = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        let at = BUCKET_LATENCY_MS.partition_point(|bound_ms| bound_ms * 1000 < us);
        if let Some(bucket) = self.buckets.get(at) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        self.sum_us.fetch_add(us, Ordering::Relaxed);
    }

    fn read(&self) -> BucketLatency {
        BucketLatency {
            buckets: std::array::from_fn(|at| {
                self.buckets
                    .get(at)
                    .map_or(0, |bucket| bucket.load(Ordering::Relaxed))
            }),
            count: self.count.load(Ordering::Relaxed),
            sum_us: self.sum_us.load(Ordering::Relaxed),
        }
    }
}

/// Returns false for errors that only describe the state of an object.
fn is_failure(error: &Error) -> bool {
    !matches!(
        error,
        Error::NotFound { .. }
            | Error::AlreadyExists { .. }
            | Error::Precondition { .. }
            | Error::NotModified { .. }
    )
}

/// Counters of one bucket, or of a bucket and the separate log store.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    gets: AtomicU64,
    puts: AtomicU64,
    lists: AtomicU64,
    deletes: AtomicU64,
    read_bytes: AtomicU64,
    written_bytes: AtomicU64,
    bandwidth: OnceLock<Arc<Throttle>>,
    get_errors: AtomicU64,
    put_errors: AtomicU64,
    get_latency: LatencyCounters,
    put_latency: LatencyCounters,
}

impl Requests {
    /// Limits the bytes read and written per second. Must be called before the first request; later calls have no effect.
    pub fn limit_bandwidth(&self, throttle: &Arc<Throttle>) {
        let _ = self.bandwidth.set(throttle.clone());
    }

    /// Waits until so many bytes of an object may be transferred. Log objects and documents never wait, because acknowledgements and leases
    /// depend on them.
    async fn admit(&self, location: &Path, bytes: u64) {
        if let Some(throttle) = self.bandwidth.get() {
            match is_sstable(location) && !is_log_object(location) {
                true => throttle.take(bytes).await,
                false => throttle.charge(bytes),
            }
        }
    }

    /// Charges bytes that were read to the bandwidth limit. Reads are charged afterwards, because their length is not known before.
    fn charge(&self, bytes: u64) {
        if let Some(throttle) = self.bandwidth.get() {
            throttle.charge(bytes);
        }
    }

    pub fn read(&self) -> BucketStats {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        BucketStats {
            gets: get(&self.gets),
            puts: get(&self.puts),
            lists: get(&self.lists),
            deletes: get(&self.deletes),
            read_bytes: get(&self.read_bytes),
            written_bytes: get(&self.written_bytes),
            get_errors: get(&self.get_errors),
            put_errors: get(&self.put_errors),
            get_latency: self.get_latency.read(),
            put_latency: self.put_latency.read(),
        }
    }

    fn got(&self, bytes: u64) {
        self.charge(bytes);
        self.gets.fetch_add(1, Ordering::Relaxed);
        self.read_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn put(&self, bytes: usize) {
        self.puts.fetch_add(1, Ordering::Relaxed);
        self.written_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn get_answered(&self, began: Instant, error: Option<&Error>) {
        self.get_latency.record(began);
        if error.is_some_and(is_failure) {
            self.get_errors.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn put_answered(&self, began: Instant, error: Option<&Error>) {
        self.put_latency.record(began);
        if error.is_some_and(is_failure) {
            self.put_errors.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn listed(&self) {
        self.lists.fetch_add(1, Ordering::Relaxed);
    }
}

/// Logs a request (`log = "helenus_tablet::remote::counted=trace"`). A listing is logged when it begins.
fn trace(kind: &str, location: &Path, began: Instant, error: Option<&Error>) {
    let took_us = began.elapsed().as_micros();
    let failed = error.is_some();
    tracing::trace!(target: "helenus_tablet::remote::counted", kind, %location, took_us, failed, "request");
}

/// An object store whose requests are counted, and whose manifests carry checksums.
#[derive(Debug)]
pub(crate) struct MeteredObjectStore {
    inner: Arc<dyn ObjectStore>,
    /// A client of the same bucket that does not retry.
    once: Arc<dyn ObjectStore>,
    requests: Arc<Requests>,
    checksums: Arc<ManifestChecksums>,
}

impl MeteredObjectStore {
    pub fn new(
        inner: Arc<dyn ObjectStore>,
        once: Arc<dyn ObjectStore>,
        requests: Arc<Requests>,
        checksums: Arc<ManifestChecksums>,
    ) -> MeteredObjectStore {
        MeteredObjectStore {
            inner,
            once,
            requests,
            checksums,
        }
    }
}

impl fmt::Display for MeteredObjectStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.inner)
    }
}

#[async_trait]
impl ObjectStore for MeteredObjectStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        let payload = ManifestChecksums::seal(location, payload);
        self.requests
            .admit(location, payload.content_length() as u64)
            .await;
        self.requests.put(payload.content_length());
        let began = Instant::now();
        let client = if is_log_object(location) {
            &self.once
        } else {
            &self.inner
        };
        let result = client.put_opts(location, payload, opts).await;
        trace("PUT", location, began, result.as_ref().err());
        self.requests.put_answered(began, result.as_ref().err());
        result
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let upload = self.inner.put_multipart_opts(location, opts).await?;
        self.requests.put(0);
        let metered = Box::new(MeteredUpload {
            inner: upload,
            requests: self.requests.clone(),
        });
        Ok(match self.requests.bandwidth.get() {
            Some(throttle) => Box::new(ThrottledUpload {
                inner: metered,
                throttle: throttle.clone(),
            }),
            None => metered,
        })
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let head = options.head;
        let is_sealed = ManifestChecksums::applies_to(location, &options);
        self.requests.admit(location, 0).await;
        let began = Instant::now();
        let result = self.inner.get_opts(location, options).await;
        let kind = if head { "HEAD" } else { "GET" };
        trace(kind, location, began, result.as_ref().err());
        self.requests.get_answered(began, result.as_ref().err());
        let bytes = match &result {
            // The whole range is counted, even if the reader drops a part of it.
            Ok(got) if !head => got.range.end.saturating_sub(got.range.start),
            _ => 0,
        };
        self.requests.got(bytes);
        match is_sealed {
            true => self.checksums.verify(result?).await,
            false => result,
        }
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.requests.admit(location, 0).await;
        let began = Instant::now();
        let result = self.inner.get_ranges(location, ranges).await;
        self.requests.get_answered(began, result.as_ref().err());
        let parts = result.as_deref().unwrap_or_default();
        self.requests
            .got(parts.iter().map(|part| part.len() as u64).sum());
        result
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let requests = self.requests.clone();
        let counted = locations.inspect(move |_| {
            requests.deletes.fetch_add(1, Ordering::Relaxed);
        });
        self.inner.delete_stream(counted.boxed())
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.requests.listed();
        trace("LIST", prefix.unwrap_or(&Path::default()), Instant::now(), None);
        self.inner.list(prefix)
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.requests.listed();
        trace("LIST", offset, Instant::now(), None);
        self.inner.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.requests.listed();
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.requests.put(0);
        self.inner.copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.requests.put(0);
        self.inner.rename_opts(from, to, options).await
    }
}

#[derive(Debug)]
struct MeteredUpload {
    inner: Box<dyn MultipartUpload>,
    requests: Arc<Requests>,
}

#[async_trait]
impl MultipartUpload for MeteredUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        self.requests.put(data.content_length());
        self.inner.put_part(data)
    }

    async fn complete(&mut self) -> Result<PutResult> {
        self.requests.put(0);
        self.inner.complete().await
    }

    async fn abort(&mut self) -> Result<()> {
        self.inner.abort().await
    }
}
