//! The parts on disk while the cache is open, stored in foyer's block engine.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use foyer::{
    BlockEngineConfig, Device, DeviceBuilder, EvictionPicker, FifoPicker, FsDeviceBuilder, HybridCache,
    HybridCacheBuilder, HybridCachePolicy, Load, PsyncIoEngineConfig, RecoverMode, Spawner, StorageFilter,
};
use futures::FutureExt;
use parking_lot::Mutex;
use tokio::runtime::Runtime;

use super::hot_parts::{HotParts, SecondChance};
use super::part::{PART_BYTES, PartKey};

/// Maximum memory of a buffer of parts that wait to be written. Foyer has two such buffers.
const BUFFER_BYTES_MAX: u64 = 16 << 20;
/// Concurrent reads and writes of the disk.
const IO_THREADS: usize = 16;
/// Files that are read concurrently when the cache is opened.
const RECOVERED_AT_ONCE: usize = 8;
/// Maximum time to wait for the disk.
const WRITE_WAIT: Duration = Duration::from_secs(5);
/// Attempts of a probe write. A probe may be dropped because other parts are being written.
const PROBES: usize = 3;
const PROBE_PAUSE: Duration = Duration::from_millis(200);

/// The open disk cache.
pub(super) struct Parts {
    cache: HybridCache<PartKey, Bytes>,
    device: Arc<dyn Device>,
    hot: Arc<HotParts>,
    buffer_bytes: u64,
    /// The runtime of foyer's tasks and of its reading and writing threads, separate from the runtimes of requests.
    runtime: Mutex<Option<Runtime>>,
}

impl Parts {
    /// Opens the blocks in a folder, and rebuilds the index of their parts.
    pub async fn open(folder: PathBuf, block_bytes: u64, blocks: u64) -> Result<Parts, String> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .max_blocking_threads(IO_THREADS)
            .thread_name("helenus-cache")
            .enable_all()
            .build()
            .map_err(|error| error.to_string())?;
        let handle = runtime.handle().clone();
        let opening = handle.spawn(Parts::open_in(runtime, folder, block_bytes, blocks));
        opening.await.unwrap_or_else(|error| Err(error.to_string()))
    }

    async fn open_in(
        runtime: Runtime,
        folder: PathBuf,
        block_bytes: u64,
        blocks: u64,
    ) -> Result<Parts, String> {
        let runtime = Shutdown(Some(runtime));
        let bytes = block_bytes.saturating_mul(blocks);
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let failed = |error: foyer::Error| error.to_string();
        let device = FsDeviceBuilder::new(folder)
            .with_capacity(size(bytes))
            .build()
            .map_err(failed)?;
        let hot = HotParts::new(bytes / PART_BYTES * 2);
        let buffer_bytes = (bytes / 8).clamp(block_bytes.min(2 << 20), BUFFER_BYTES_MAX);
        let engine = BlockEngineConfig::new(device.clone())
            .with_block_size(size(block_bytes))
            .with_recover_concurrency(RECOVERED_AT_ONCE)
            .with_buffer_pool_size(size(buffer_bytes))
            .with_submit_queue_size_threshold(size(buffer_bytes))
            .with_eviction_pickers(vec![Box::new(FifoPicker::default()) as Box<dyn EvictionPicker>])
            .with_reinsertion_filter(StorageFilter::new().with_condition(SecondChance(hot.clone())));
        let cache = HybridCacheBuilder::new()
            .with_name("helenus")
            .with_policy(HybridCachePolicy::WriteOnInsertion)
            .with_flush_on_close(false)
            // Parts are not kept in memory, because SlateDB's block cache has the decoded blocks.
            .memory(1)
            .with_shards(1)
            .storage()
            .with_engine_config(engine)
            .with_io_engine_config(PsyncIoEngineConfig::new())
            .with_recover_mode(RecoverMode::Quiet)
            .with_spawner(Spawner::from(tokio::runtime::Handle::current()))
            .build()
            .await
            .map_err(failed)?;
        Ok(Parts {
            cache,
            device,
            hot,
            buffer_bytes,
            runtime: Mutex::new(runtime.keep()),
        })
    }

    /// Returns a part. `None` if the part is missing or does not match its checksum.
    pub async fn get(&self, key: &PartKey) -> Result<Option<Bytes>, String> {
        let loaded = caught(self.cache.storage().load(key)).await?;
        Ok(match loaded.map_err(|error| error.to_string())? {
            Load::Entry { value, .. } => Some(value),
            Load::Piece { piece, .. } => Some(piece.value().clone()),
            Load::Throttled | Load::Miss => None,
        })
    }

    /// Marks a part as read, so that it is spared once when it would be replaced.
    pub fn spare(&self, key: &PartKey) {
        self.hot.mark(self.cache.memory().hash(key));
    }

    /// Queues a part to be written. The part is dropped if the queue is full.
    pub fn insert(&self, key: PartKey, part: Bytes) {
        drop(self.cache.storage_writer(key).force().insert(part));
    }

    /// Returns the number of bytes that may be inserted between two flushes without dropping any.
    pub fn batch_bytes(&self) -> usize {
        (self.buffer_bytes / 4) as usize
    }

    /// Waits until all inserted parts are written. Returns false after [`WRITE_WAIT`].
    pub async fn flush(&self) -> bool {
        let written = caught(self.cache.storage().wait());
        matches!(tokio::time::timeout(WRITE_WAIT, written).await, Ok(Ok(())))
    }

    /// Checks whether an inserted part is found afterwards. Foyer does not report failed writes, so this is the only way to notice them.
    pub async fn takes_writes(&self) -> bool {
        for index in 0..PROBES {
            let key = PartKey {
                object: "probe".into(),
                index: index as u32,
            };
            self.cache.storage().delete(&key);
            self.insert(key.clone(), Bytes::from_static(b"probe"));
            if !self.flush().await {
                return false;
            }
            if self.cache.storage().may_contains(&key) {
                return true;
            }
            tokio::time::sleep(PROBE_PAUSE).await;
        }
        false
    }

    pub fn capacity_bytes(&self) -> u64 {
        self.device.capacity() as u64
    }

    /// Writes pending parts and shuts the runtime down.
    pub async fn close(&self) {
        let closing = caught(self.cache.close());
        let is_closed = matches!(tokio::time::timeout(WRITE_WAIT, closing).await, Ok(Ok(Ok(()))));
        let runtime = self.runtime.lock().take();
        if !is_closed {
            self.leave_open();
        }
        drop(Shutdown(runtime));
    }

    /// Keeps the files open until the process ends. Writes in progress use file descriptors, which must not be reused for other files.
    fn leave_open(&self) {
        std::mem::forget(self.device.clone());
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        let runtime = self.runtime.lock().take();
        if runtime.is_some() {
            self.leave_open();
        }
        drop(Shutdown(runtime));
    }
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts")
            .field("capacity_bytes", &self.capacity_bytes())
            .finish_non_exhaustive()
    }
}

/// Converts a panic of foyer to an error. After a failed write, foyer may find its state inconsistent and panic.
async fn caught<T>(work: impl Future<Output = T>) -> Result<T, String> {
    let done = AssertUnwindSafe(work).catch_unwind().await;
    done.map_err(|_| "the cache has panicked".to_owned())
}

/// Shuts a runtime down when dropped, without waiting for its tasks.
struct Shutdown(Option<Runtime>);

impl Shutdown {
    fn keep(mut self) -> Option<Runtime> {
        self.0.take()
    }
}

impl Drop for Shutdown {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
