//! The disk cache: parts of SSTables of a bucket on the node's local disk. With it, a node serves data many times its memory without
//! requests to the bucket.
//!
//! SSTables never change, so they are cached under their path, in parts of a fixed size ([`part`]). [`object_store`] stands between a
//! tablet and the bucket. A read takes the cached parts from disk and fetches the others, with one request for neighbouring parts. An
//! upload inserts the parts as they are written. Manifests, logs and documents are not cached, because they change.
//!
//! The parts are stored by `foyer` ([`parts`]) in files of equal size, which are filled and reused in turn. The index is in memory and is
//! rebuilt from the files when the cache is opened. Each part has a checksum; a part that does not match counts as missing. The disk is
//! never required: after any failure, the data is read from the bucket.
//!
//! [`DiskCache`] opens the parts, closes them after failures, and shrinks the cache when the disk fills up ([`space`]).

mod folder;
mod hot_parts;
pub(crate) mod object_store;
mod part;
mod parts;
mod space;
mod upload;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use parking_lot::Mutex;
use uuid::Uuid;

use self::folder::CacheFolder;
use self::object_store::ReadPolicy;
use self::part::PartKey;
use self::parts::Parts;
use self::space::DiskSpace;

/// Interval of the checks of the cache for failures and of its disk for space.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// Maximum time that the opening of a store waits for the cache. A large cache is read in while the store already serves requests. Tests
/// wait for the whole opening, so that its check does not interfere with theirs on a slow machine.
const OPEN_WAIT: Duration = Duration::from_secs(if cfg!(test) { 60 } else { 1 });
/// Number of failed reads between two checks after which the cache is closed.
const ERRORS_MAX: u64 = 8;
/// Time after which a failed cache is opened again.
const RETRY_AFTER: Duration = Duration::from_secs(60);
/// Minimum time between a change of size and the next growth.
const GROW_AFTER: Duration = Duration::from_secs(60);

/// Folder and size of the disk cache.
#[derive(Debug, Clone)]
pub(crate) struct DiskCacheConfig {
    pub folder: PathBuf,
    /// Size in bytes. `None` to derive the size from the free space of the disk.
    pub bytes: Option<u64>,
}

impl DiskCacheConfig {
    /// Returns the folder, the size of the cache and the size of its blocks. `None` if there is not enough space.
    fn prepare(&self, identity: Uuid) -> std::io::Result<Option<(CacheFolder, u64, u64)>> {
        let folder = CacheFolder::lock(&self.folder)?;
        let space = folder.space()?;
        let wanted = self
            .bytes
            .unwrap_or_else(|| space.cache_bytes_default(folder.used_bytes(), crate::machine_memory_bytes()));
        if wanted < space::BYTES_MIN {
            return Ok(None);
        }
        let block_bytes = folder.prepare(identity, wanted)?;
        Ok(Some((folder, wanted, block_bytes)))
    }
}

/// Counters and size of the disk cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiskCacheStats {
    /// Reads of parts that were on disk (hits), and of parts that were not (misses).
    pub hits: u64,
    pub misses: u64,
    /// Parts handed to the disk. Under overload some of them are not written.
    pub inserted: u64,
    /// Reads and writes that have failed.
    pub errors: u64,
    /// Bytes on disk, as of the last check.
    pub bytes: u64,
    /// The current size: less than configured if the disk is full, and 0 after a failure.
    pub capacity_bytes: u64,
}

#[derive(Debug, Default)]
struct Counters {
    hits: AtomicU64,
    misses: AtomicU64,
    inserted: AtomicU64,
    errors: AtomicU64,
    bytes: AtomicU64,
}

/// State between two checks. Only the holder of its lock may open and close the parts.
#[derive(Debug)]
struct State {
    capacity: u64,
    changed: Instant,
    /// Time of the failure that closed the cache. `None` if the cache has not failed.
    failed: Option<Instant>,
    /// Values of the counters at the last check.
    inserted: u64,
    errors: u64,
    is_closed: bool,
}

/// The disk cache of a store.
#[derive(Debug)]
pub(crate) struct DiskCache {
    folder: CacheFolder,
    /// The configured size in bytes.
    wanted: u64,
    block_bytes: u64,
    /// `None` while the cache is being opened, after a failure, and if there is no space.
    parts: ArcSwapOption<Parts>,
    counters: Counters,
    /// Lock that admits one new SSTable at a time, so that none of its parts is dropped.
    writing: tokio::sync::Mutex<()>,
    state: tokio::sync::Mutex<State>,
    checks: Mutex<Option<tokio::task::JoinHandle<()>>>,
}

impl DiskCache {
    /// Opens the disk cache of the store with that identity. `None` if the configured size is 0, or, with a warning, if the cache cannot be
    /// opened.
    pub async fn start(config: &DiskCacheConfig, identity: Uuid) -> Option<Arc<DiskCache>> {
        if config.bytes == Some(0) {
            return None;
        }
        let folder = config.folder.display();
        match DiskCache::open(config, identity).await {
            Ok(Some(cache)) => Some(cache),
            Ok(None) => {
                tracing::warn!(%folder, "no disk cache: there is too little free space for one");
                None
            }
            Err(error) => {
                tracing::warn!(%folder, %error, "no disk cache");
                None
            }
        }
    }

    async fn open(config: &DiskCacheConfig, identity: Uuid) -> std::io::Result<Option<Arc<DiskCache>>> {
        let config = config.clone();
        let preparing = crate::threads::spawn_blocking(move || config.prepare(identity));
        let Some((folder, wanted, block_bytes)) = preparing.await.map_err(std::io::Error::other)?? else {
            return Ok(None);
        };
        let cache = Arc::new(DiskCache {
            folder,
            wanted,
            block_bytes,
            parts: ArcSwapOption::empty(),
            counters: Counters::default(),
            writing: tokio::sync::Mutex::default(),
            state: tokio::sync::Mutex::new(State {
                capacity: wanted,
                changed: Instant::now(),
                failed: None,
                inserted: 0,
                errors: 0,
                is_closed: false,
            }),
            checks: Mutex::default(),
        });
        let opening = cache.clone();
        let opening = tokio::spawn(async move {
            let mut state = opening.state.lock().await;
            opening.open_parts(&mut state).await;
            drop(state);
            opening.check().await;
        });
        let _ = tokio::time::timeout(OPEN_WAIT, opening).await;
        let checked = Arc::downgrade(&cache);
        let checks = tokio::spawn(async move {
            loop {
                tokio::time::sleep(CHECK_INTERVAL).await;
                let Some(cache) = checked.upgrade() else { return };
                cache.check().await;
            }
        });
        *cache.checks.lock() = Some(checks);
        Ok(Some(cache))
    }

    fn is_open(&self) -> bool {
        self.parts.load().is_some()
    }

    /// Returns a part. `None` if the part is damaged or not on disk; a missing part costs no access to the disk, because the index is in
    /// memory.
    async fn get(&self, key: &PartKey, reads: ReadPolicy) -> Option<Bytes> {
        let parts = self.parts.load_full();
        let found = match &parts {
            Some(parts) => parts.get(key).await,
            None => Ok(None),
        };
        if let (Some(parts), Ok(Some(_)), ReadPolicy::Insert) = (&parts, &found, reads) {
            parts.spare(key);
        }
        let found = found.unwrap_or_else(|error| {
            if self.counters.errors.fetch_add(1, Ordering::Relaxed) == 0 {
                tracing::warn!(folder = %self.folder, %error, "a read from the disk cache has failed; the bucket is read");
            }
            None
        });
        let counter = match found {
            Some(_) => &self.counters.hits,
            None => &self.counters.misses,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        found
    }

    /// Hands parts that were read to the disk. Parts that the disk cannot write in time are dropped.
    fn insert(&self, parts: impl IntoIterator<Item = (PartKey, Bytes)>) {
        let Some(cache) = self.parts.load_full() else {
            return;
        };
        for (key, part) in parts {
            self.counters.inserted.fetch_add(1, Ordering::Relaxed);
            cache.insert(key, part);
        }
    }

    /// Writes the parts of a new SSTable, and waits for the disk so that none is dropped.
    async fn write(&self, parts: Vec<(PartKey, Bytes)>) {
        let Some(cache) = self.parts.load_full() else {
            return;
        };
        let _turn = self.writing.lock().await;
        let mut unwritten = 0;
        for (key, part) in parts {
            unwritten += part.len();
            self.counters.inserted.fetch_add(1, Ordering::Relaxed);
            cache.insert(key, part);
            if unwritten >= cache.batch_bytes() {
                if !cache.flush().await {
                    return;
                }
                unwritten = 0;
            }
        }
        cache.flush().await;
    }

    async fn open_parts(&self, state: &mut State) {
        if state.is_closed || state.capacity == 0 {
            return;
        }
        let count = state.capacity / self.block_bytes;
        let opened = match self.keep_blocks(count).await {
            Ok(blocks) => Parts::open(blocks, self.block_bytes, count).await,
            Err(error) => Err(error.to_string()),
        };
        match opened {
            Ok(parts) => {
                state.failed = None;
                self.parts.store(Some(Arc::new(parts)));
            }
            Err(error) => {
                self.counters.errors.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(folder = %self.folder, error, "the disk cache cannot be opened; the bucket is read");
                state.failed = Some(Instant::now());
            }
        }
    }

    async fn keep_blocks(&self, count: u64) -> std::io::Result<PathBuf> {
        let folder = self.folder.clone();
        let kept = crate::threads::spawn_blocking(move || folder.keep_blocks(count)).await;
        kept.map_err(std::io::Error::other)?
    }

    async fn close_parts(&self) {
        if let Some(parts) = self.parts.swap(None) {
            parts.close().await;
        }
    }

    /// Closes the cache after failures, opens it again later, and fits its size to the free space of the disk.
    async fn check(&self) {
        let folder = self.folder.clone();
        let measured = crate::threads::spawn_blocking(move || (folder.space(), folder.used_bytes())).await;
        let Ok((space, used)) = measured else { return };
        let mut state = self.state.lock().await;
        self.counters.bytes.store(used, Ordering::Relaxed);
        if !self.is_sound(&mut state).await {
            tracing::warn!(folder = %self.folder, "the disk cache fails and is not used for a minute; the bucket is read");
            state.failed = Some(Instant::now());
            self.close_parts().await;
        }
        match state.failed {
            Some(failed) if failed.elapsed() < RETRY_AFTER => {}
            Some(_) => self.open_parts(&mut state).await,
            None => {
                if let Ok(space) = space {
                    self.fit(&mut state, space, used).await;
                }
            }
        }
    }

    /// Returns false if too many reads have failed since the last check, or if inserted parts do not reach the disk.
    async fn is_sound(&self, state: &mut State) -> bool {
        let Some(parts) = self.parts.load_full() else {
            return true;
        };
        let errors = self.counters.errors.load(Ordering::Relaxed);
        let inserted = self.counters.inserted.load(Ordering::Relaxed);
        let failures = errors - std::mem::replace(&mut state.errors, errors);
        let has_inserted = inserted != std::mem::replace(&mut state.inserted, inserted);
        if failures >= ERRORS_MAX {
            return false;
        }
        let is_written = !has_inserted || parts.takes_writes().await;
        if !is_written {
            self.counters.errors.fetch_add(1, Ordering::Relaxed);
        }
        is_written
    }

    /// Shrinks the cache when the disk fills up, and grows it when there is space again.
    async fn fit(&self, state: &mut State, space: DiskSpace, used: u64) {
        let may_grow = state.changed.elapsed() >= GROW_AFTER;
        let Some(capacity) = space.fitting(state.capacity, used, self.wanted, self.block_bytes, may_grow)
        else {
            return;
        };
        let (from, to, free) = (state.capacity, capacity, space.free);
        tracing::info!(folder = %self.folder, from, to, free, "the disk cache is fitted to the space of its disk");
        self.close_parts().await;
        (state.capacity, state.changed) = (capacity, Instant::now());
        match capacity {
            0 => drop(self.keep_blocks(0).await),
            _ => self.open_parts(state).await,
        }
    }

    pub fn stats(&self) -> DiskCacheStats {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let parts = self.parts.load();
        DiskCacheStats {
            hits: get(&self.counters.hits),
            misses: get(&self.counters.misses),
            inserted: get(&self.counters.inserted),
            errors: get(&self.counters.errors),
            bytes: get(&self.counters.bytes),
            capacity_bytes: parts.as_ref().map_or(0, |parts| parts.capacity_bytes()),
        }
    }

    /// Closes the cache. Pending parts are written, so that the next opening finds them.
    pub async fn close(&self) {
        if let Some(checks) = self.checks.lock().take() {
            checks.abort();
        }
        let mut state = self.state.lock().await;
        state.is_closed = true;
        self.close_parts().await;
        self.folder.unlock();
    }
}

#[cfg(test)]
#[path = "disk_cache_tests.rs"]
mod tests;
