//! The object store of local tablets. The store detects a full disk, and marks errors for which a retry is useless.

use std::fmt;
use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use object_store::path::Path;
use object_store::{
    GetOptions, GetResult, MultipartUpload, ObjectStore, ObjectStoreExt, PutMultipartOptions, PutOptions,
    PutPayload, PutResult, RenameOptions, Result, UploadPart,
};
use parking_lot::Mutex;
use slatedb_common::retry::NonRetryable;
use tokio::sync::watch;

use crate::disk::checksummed_objects::ManifestChecksums;
use crate::disk::disk_reserve::DiskReserve;
use crate::disk::incremental_delete::FileDeleter;
use crate::disk::open_files::OpenFiles;
use crate::disk::sst_writer;
use crate::disk::sst_writer::TempFileUpload;
use crate::error::{StoreError, has_no_space};
use crate::object_store_layers::delegate_to_inner;

/// Files that are deleted concurrently.
const DELETED_AT_ONCE: usize = 4;
/// Minimum interval between two measurements of the free space.
const PROBE_INTERVAL_MS: u128 = 100;
/// Interval between two log messages about a full disk. Small files may still fit, so the disk can appear full many times.
const FULL_LOGGED_EACH: Duration = Duration::from_secs(600);

/// Free space for writes on the disk.
#[derive(Debug)]
pub(crate) struct DiskSpace {
    folder: PathBuf,
    reserve: u64,
    total: u64,
    /// The reserved file that lets the store be opened on a full disk. While this file is deleted, writes must leave its size free in
    /// addition. Otherwise the space of log segments that are deleted at the start would admit a few writes.
    room: Arc<DiskReserve>,
    /// True if an upload failed because the disk was full, and none has succeeded since. SlateDB retries at least once a second.
    upload_failed: AtomicBool,
    /// Number of uploads that failed because the disk was full.
    failures: watch::Sender<u64>,
    /// Time of the last log message about a full disk. `None` if there was none.
    logged: Mutex<Option<Instant>>,
    /// Results of the last measurement.
    below_reserve: AtomicBool,
    free_bytes: AtomicU64,
    probed: Mutex<Option<Instant>>,
    /// Free bytes that a test simulates. Negative to measure the real disk.
    simulated_free: AtomicI64,
}

impl DiskSpace {
    /// Watches the disk of `folder`. The reserve is at most a twentieth of the disk, so that small disks stay usable.
    pub fn new(folder: &FilePath, reserve: u64, room: Arc<DiskReserve>) -> Self {
        let total =
            rustix::fs::statvfs(folder).map_or(u64::MAX, |stat| stat.f_blocks.saturating_mul(stat.f_frsize));
        DiskSpace {
            folder: folder.to_path_buf(),
            reserve: reserve.min(total / 20),
            total,
            room,
            upload_failed: AtomicBool::new(false),
            failures: watch::Sender::new(0),
            logged: Mutex::new(None),
            below_reserve: AtomicBool::new(false),
            free_bytes: AtomicU64::new(u64::MAX),
            probed: Mutex::new(None),
            simulated_free: AtomicI64::new(-1),
        }
    }

    fn probe(&self) {
        let mut probed = self.probed.lock();
        if probed.is_some_and(|at| at.elapsed().as_millis() < PROBE_INTERVAL_MS) {
            return;
        }
        *probed = Some(Instant::now());
        let free = match u64::try_from(self.simulated_free.load(Ordering::Relaxed)) {
            Ok(free) => free,
            Err(_) => free_bytes(&self.folder),
        };
        self.free_bytes.store(free, Ordering::Relaxed);
        self.below_reserve.store(free < self.kept(), Ordering::Release);
    }

    /// Returns the bytes that writes must leave free. 0 if no reserve is configured.
    fn kept(&self) -> u64 {
        match self.reserve {
            0 => 0,
            reserve => reserve + self.room.owed(self.total),
        }
    }

    /// Checks that there is space for more writes.
    pub fn check(&self) -> std::result::Result<(), StoreError> {
        self.probe();
        if self.below_reserve.load(Ordering::Acquire) {
            return Err(StoreError::DiskFull(format!(
                "{} bytes are free at {}, {} are kept in reserve",
                self.free_bytes.load(Ordering::Relaxed),
                self.folder.display(),
                self.kept()
            )));
        }
        if self.upload_failed.load(Ordering::Acquire) {
            return Err(StoreError::DiskFull(format!(
                "data could not be flushed to {}: the disk is full",
                self.folder.display()
            )));
        }
        Ok(())
    }

    /// Simulates a disk with so many free bytes, for tests. `None` ends the simulation.
    pub fn simulate_free(&self, free: Option<u64>) {
        let free = free.and_then(|free| i64::try_from(free).ok()).unwrap_or(-1);
        self.simulated_free.store(free, Ordering::Relaxed);
        *self.probed.lock() = None;
    }

    /// Returns the free bytes as of the last measurement.
    pub fn free_bytes(&self) -> u64 {
        self.probe();
        self.free_bytes.load(Ordering::Relaxed)
    }

    /// Returns the used percentage of the disk as of the last measurement, rounded up.
    pub fn usage_percentage(&self) -> u8 {
        usage_percentage(self.total, self.free_bytes())
    }

    /// Waits until the next upload fails because the disk is full.
    pub async fn next_failure(&self) {
        let mut failures = self.failures.subscribe();
        // The wait cannot fail, because `self` owns the sender.
        let _ = failures.changed().await;
    }

    /// Returns true for the first failure, and then at most once in [`FULL_LOGGED_EACH`].
    fn is_to_be_logged(&self) -> bool {
        let mut logged = self.logged.lock();
        let is_due = logged.is_none_or(|logged| logged.elapsed() >= FULL_LOGGED_EACH);
        if is_due {
            *logged = Some(Instant::now());
        }
        is_due
    }

    fn uploaded<T>(&self, result: Result<T>) -> Result<T> {
        match &result {
            Ok(_) => self.upload_failed.store(false, Ordering::Release),
            Err(error) if has_no_space(error) => {
                self.failures.send_modify(|failures| *failures += 1);
                if !self.upload_failed.swap(true, Ordering::AcqRel) && self.is_to_be_logged() {
                    tracing::error!(folder = %self.folder.display(), "the disk is full: writes are refused until there is room");
                }
            }
            Err(_) => {}
        }
        result
    }
}

/// Returns the used percentage of a disk with `total` bytes of which `free` are free, rounded up.
fn usage_percentage(total: u64, free: u64) -> u8 {
    let used = u128::from(total.saturating_sub(free));
    let percentage = (used * 100).div_ceil(u128::from(total.max(1)));
    u8::try_from(percentage).unwrap_or(100)
}

/// Returns the free bytes of the disk of a folder.
pub(crate) fn free_bytes(folder: &FilePath) -> u64 {
    rustix::fs::statvfs(folder).map_or(u64::MAX, |stat| stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// An object store on a local disk. A failed read is not retried without end; it fails the request that needs it.
#[derive(Debug, Clone)]
pub(crate) struct LocalStore {
    inner: object_store::local::LocalFileSystem,
    space: Arc<DiskSpace>,
    files: Arc<OpenFiles>,
    deleter: FileDeleter,
    checksums: Arc<ManifestChecksums>,
    fsync: bool,
}

impl LocalStore {
    pub fn open(
        root: &FilePath,
        space: Arc<DiskSpace>,
        deleter: FileDeleter,
        checksums: Arc<ManifestChecksums>,
        fsync: bool,
    ) -> std::result::Result<Self, StoreError> {
        let inner = object_store::local::LocalFileSystem::new_with_prefix(root)
            .map_err(|error| StoreError::Unavailable(error.to_string()))?
            .with_fsync(fsync);
        Ok(LocalStore {
            inner,
            space,
            files: Arc::default(),
            deleter,
            checksums,
            fsync,
        })
    }

    /// Deletes an object. A missing object is no error, as with S3.
    async fn delete_one(&self, location: Path) -> Result<Path> {
        match self.table_path(&location) {
            Some(path) => {
                let (deleter, at) = (self.deleter.clone(), path.clone());
                let delete = move || match deleter.delete(&path) {
                    Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
                    result => result,
                };
                sst_writer::blocking(at, delete).await?;
            }
            None => match self.inner.delete(&location).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(error),
            },
        }
        self.files.forget(&location);
        Ok(location)
    }

    /// Returns the path of an SSTable in the file system. `None` if the object is no SSTable. Names of SSTables are never reused.
    fn table_path(&self, location: &Path) -> Option<PathBuf> {
        let is_table = location.as_ref().ends_with(".sst");
        is_table.then(|| self.inner.path_to_filesystem(location).ok())?
    }
}

impl fmt::Display for LocalStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.inner)
    }
}

/// Marks an error of a read as permanent, so that SlateDB returns it instead of retrying.
fn final_on_read<T>(result: Result<T>) -> Result<T> {
    result.map_err(|error| match error {
        object_store::Error::Generic { store, source } => object_store::Error::Generic {
            store,
            source: Box::new(NonRetryable(source)),
        },
        other => other,
    })
}

#[async_trait]
impl ObjectStore for LocalStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        let result = match self.table_path(location) {
            Some(path) => sst_writer::put(path, payload, self.fsync).await,
            None => {
                let payload = ManifestChecksums::seal(location, payload);
                self.inner.put_opts(location, payload, opts).await
            }
        };
        self.space.uploaded(result)
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let result: Result<Box<dyn MultipartUpload>> = match self.table_path(location) {
            Some(path) => TempFileUpload::begin(path, self.fsync)
                .await
                .map(|upload| Box::new(upload) as _),
            None => self.inner.put_multipart_opts(location, opts).await,
        };
        // Creating the file does not count as a success, because a full disk is noticed only when the file is filled.
        let inner = match result {
            Ok(inner) => inner,
            Err(error) => return self.space.uploaded(Err(error)),
        };
        Ok(Box::new(Upload {
            inner,
            location: location.clone(),
            files: self.files.clone(),
            space: self.space.clone(),
        }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        if let Some(range) = OpenFiles::wanted(location, &options)
            && let Ok(path) = self.inner.path_to_filesystem(location)
            && let Some(result) = self.files.read(location, path, range).await
        {
            return Ok(result);
        }
        if ManifestChecksums::applies_to(location, &options) {
            let found = final_on_read(self.inner.get_opts(location, options).await)?;
            return self.checksums.verify(found).await;
        }
        final_on_read(self.inner.get_opts(location, options).await)
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        final_on_read(self.inner.get_ranges(location, ranges).await)
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let this = self.clone();
        let delete = move |location: Result<Path>| {
            let this = this.clone();
            async move { this.delete_one(location?).await }
        };
        locations.map(delete).buffered(DELETED_AT_ONCE).boxed()
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        let result = self.inner.rename_opts(from, to, options).await;
        self.files.forget(from);
        self.files.forget(to);
        result
    }

    delegate_to_inner! {
        list, list_with_offset, list_with_delimiter,
        copy_opts,
    }
}

#[derive(Debug)]
struct Upload {
    inner: Box<dyn MultipartUpload>,
    location: Path,
    files: Arc<OpenFiles>,
    space: Arc<DiskSpace>,
}

#[async_trait]
impl MultipartUpload for Upload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let part = self.inner.put_part(data);
        let space = self.space.clone();
        Box::pin(async move {
            let result = part.await;
            match result {
                Ok(()) => Ok(()),
                Err(error) => space.uploaded(Err(error)),
            }
        })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let result = self.inner.complete().await;
        self.files.forget(&self.location);
        self.space.uploaded(result)
    }

    async fn abort(&mut self) -> Result<()> {
        self.inner.abort().await
    }
}

#[cfg(test)]
mod tests {
    use super::usage_percentage;

    #[test]
    fn the_used_part_of_a_disk_is_rounded_up() {
        assert_eq!(usage_percentage(1000, 1000), 0);
        assert_eq!(usage_percentage(1000, 999), 1);
        assert_eq!(usage_percentage(1000, 500), 50);
        assert_eq!(usage_percentage(1000, 0), 100);
        assert_eq!(usage_percentage(u64::MAX, u64::MAX), 0, "a disk of unknown size");
        assert_eq!(usage_percentage(0, 0), 0);
    }
}
