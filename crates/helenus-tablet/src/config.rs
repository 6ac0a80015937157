//! Settings of a store, with defaults taken from the machine.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use slatedb_common::clock::SystemClock;

use crate::error::StoreError;

const MIB: u64 = 1 << 20;

/// Where a store lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreUrl {
    /// A local folder: data in it, and the log beside the data.
    File(PathBuf),
    /// A bucket (`s3://`, `s3express://`, `gs://`, `az://`) with a prefix, or `memory://name`, which lasts as long as the process.
    Remote(url::Url),
}

impl StoreUrl {
    /// Parses `file:///path`, a plain path, or an object store's URL.
    pub fn parse(text: &str) -> Result<Self, StoreError> {
        let bad = |why: &str| {
            StoreError::InvalidConfig(format!(
                "store = \"{text}\": {why}; allowed are a path, file:///path, s3://bucket/prefix, gs://bucket/prefix, az://container/prefix and \
                 memory://name"
            ))
        };
        if !text.contains("://") {
            if text.is_empty() {
                return Err(StoreError::InvalidConfig("the store's location is empty".into()));
            }
            // A slip in a URL must not make a folder.
            let in_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
            if let Some((scheme, _)) = text.split_once(':')
                && scheme.bytes().all(in_scheme)
            {
                return Err(bad(&format!(
                    "a URL has :// after its scheme, and a folder of that name is written ./{text}"
                )));
            }
            return Ok(StoreUrl::File(PathBuf::from(text)));
        }
        let url = url::Url::parse(text).map_err(|error| bad(&error.to_string()))?;
        match url.scheme() {
            "file" => url
                .to_file_path()
                .map(StoreUrl::File)
                .map_err(|()| bad("a file URL needs an absolute path")),
            "memory" => Ok(StoreUrl::Remote(url)),
            "s3" | "s3a" | "s3express" | "gs" | "az" | "azure" | "abfs" | "abfss" => {
                if url.host_str().is_none_or(str::is_empty) {
                    return Err(bad("the bucket is missing"));
                }
                Ok(StoreUrl::Remote(url))
            }
            other => Err(bad(&format!("unknown scheme {other}"))),
        }
    }
}

impl std::fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StoreUrl::File(path) => write!(f, "file://{}", path.display()),
            StoreUrl::Remote(url) => write!(f, "{url}"),
        }
    }
}

/// Settings of a store. `StoreConfig::new` fills them in from the machine's memory and cores.
#[derive(Clone)]
pub struct StoreConfig {
    pub url: StoreUrl,
    /// Where the log of a store in a bucket lies, if not beside its data: another bucket, or a folder that all nodes share. A store has one
    /// from its beginning, or never.
    pub log_store: Option<StoreUrl>,
    /// Where that bucket is served, if not where the environment says.
    pub log_store_endpoint: Option<String>,
    /// Tablets of a new store; an existing store keeps the ones that it has.
    pub tablet_count: usize,
    /// Blocks, indexes and filters of SSTables, for all tablets together.
    pub block_cache_bytes: u64,
    /// Written and not yet flushed, for all tablets together. Writes wait when it is used up.
    pub memtable_bytes: u64,
    /// Merged rows, for all tablets together. 0 turns the row cache off.
    pub row_cache_bytes: u64,
    /// Size of one file of the log.
    pub log_segment_bytes: u64,
    /// The log's size above which the tablets that hold it back are flushed.
    pub log_max_bytes: u64,
    /// Writes are refused when less than this is free on the log's disk, so that flushes still have room.
    pub disk_reserve_bytes: u64,
    /// Bytes of writes in flight above which new ones wait.
    pub write_in_flight_bytes: u64,
    /// How often the compactor looks for work.
    pub compaction_poll_interval: Duration,
    /// How long files that a compaction has replaced are kept, for reads that still use them. Longer scans are waited for.
    pub garbage_age: Duration,
    /// fsync of data files and of the log. Off only in tests that need no durability.
    pub fsync: bool,
    /// A write that an object store has not confirmed by then fails; its outcome is unknown.
    pub write_timeout: Duration,
    /// A read that an object store has not answered by then fails.
    pub read_timeout: Duration,
    /// Whether all tablets of a store in a bucket are opened with it. In a cluster each node opens those that it owns.
    pub open_all_tablets: bool,
    /// Threads of the background runtime (flushes, compactions, garbage collection).
    pub background_threads: usize,
    /// Wall-clock source; the machine's when `None`.
    pub clock: Option<Arc<dyn SystemClock>>,
    /// Seed of SlateDB's random generator; from the operating system when `None`.
    pub seed: Option<u64>,
}

impl StoreConfig {
    /// Defaults for this machine: about a twentieth of its memory, in sum, and one tablet a core; 16 in a bucket.
    pub fn new(url: StoreUrl) -> Self {
        let memory = crate::machine_memory_bytes();
        let cores = std::thread::available_parallelism().map_or(2, |n| n.get());
        let tablet_count = match url {
            StoreUrl::File(_) => cores.clamp(2, 16),
            // They are shared out among nodes that are yet to come.
            StoreUrl::Remote(_) => 16,
        };
        let memtable_bytes = (memory / 48).clamp(64 * MIB, 4096 * MIB);
        // Looking for work costs requests in a bucket.
        let compaction_poll_interval = match &url {
            StoreUrl::File(_) => Duration::from_secs(1),
            StoreUrl::Remote(_) => Duration::from_secs(5),
        };
        StoreConfig {
            url,
            log_store: None,
            log_store_endpoint: None,
            tablet_count,
            block_cache_bytes: (memory / 64).clamp(32 * MIB, 16 << 30),
            memtable_bytes,
            row_cache_bytes: (memory / 96).clamp(16 * MIB, 4 << 30),
            log_segment_bytes: 32 * MIB,
            log_max_bytes: memtable_bytes.max(256 * MIB),
            disk_reserve_bytes: memtable_bytes + 64 * MIB,
            write_in_flight_bytes: (memtable_bytes / 8).max(16 * MIB),
            compaction_poll_interval,
            write_timeout: Duration::from_secs(2),
            read_timeout: Duration::from_secs(5),
            open_all_tablets: true,
            garbage_age: Duration::from_secs(5),
            fsync: true,
            background_threads: (cores / 2).clamp(1, 8),
            clock: None,
            seed: None,
        }
    }

    /// Small sizes, for tests: a store in `path` that flushes and compacts early.
    pub fn small(path: &Path) -> Self {
        StoreConfig {
            tablet_count: 2,
            block_cache_bytes: 16 * MIB,
            memtable_bytes: 16 * MIB,
            row_cache_bytes: 4 * MIB,
            log_segment_bytes: MIB,
            log_max_bytes: 8 * MIB,
            disk_reserve_bytes: 8 * MIB,
            write_in_flight_bytes: 16 * MIB,
            compaction_poll_interval: Duration::from_millis(200),
            garbage_age: Duration::from_secs(3),
            background_threads: 1,
            ..StoreConfig::new(StoreUrl::File(path.to_path_buf()))
        }
    }

    pub(crate) fn validate(&self) -> Result<(), StoreError> {
        let bad = |text: String| Err(StoreError::InvalidConfig(text));
        if let (StoreUrl::File(_), Some(log)) = (&self.url, &self.log_store) {
            return bad(format!(
                "log_store = \"{log}\": a store in a local folder has its log there; a log store is for stores in a bucket"
            ));
        }
        if !(1..=1024).contains(&self.tablet_count) {
            return bad(format!(
                "tablet_count = {}: allowed are 1 to 1024",
                self.tablet_count
            ));
        }
        if self.memtable_bytes < 4 * MIB {
            return bad(format!(
                "memtable_bytes = {}: at least {} are needed",
                self.memtable_bytes,
                4 * MIB
            ));
        }
        if !(64 * 1024..=1 << 30).contains(&self.log_segment_bytes) {
            return bad(format!(
                "log_segment_bytes = {}: allowed are 65536 to {}",
                self.log_segment_bytes,
                1u64 << 30
            ));
        }
        Ok(())
    }
}
