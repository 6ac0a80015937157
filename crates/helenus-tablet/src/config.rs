//! Settings of a store, with defaults derived from the machine.

mod topic;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use slatedb_common::clock::SystemClock;

pub use topic::{SaslMechanism, TopicConfig, TopicUrl};

use crate::error::StoreError;
use crate::throttle::Throttles;

const MIB: u64 = 1 << 20;

/// The location of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreUrl {
    /// A local folder with the data and the log.
    File(PathBuf),
    /// A bucket (`s3://`, `s3express://`, `gs://`, `az://`) with a prefix, or `memory://name`, which exists only as long as the process.
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
            // A mistyped URL must be refused, not taken as the name of a folder.
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

/// Settings of a store. `StoreConfig::new` derives them from the machine's memory and cores.
#[derive(Clone)]
pub struct StoreConfig {
    pub url: StoreUrl,
    /// The location of the log of a store in a bucket: another bucket, or a folder that all nodes share. The location is chosen when the
    /// store is created. `None` if the log lies beside the data or in a topic.
    pub log_store: Option<StoreUrl>,
    /// The endpoint of the log's bucket. `None` for the endpoint in the environment.
    pub log_store_endpoint: Option<String>,
    /// The topic of the log. The topic is chosen when the store is created; its brokers may change. `None` if the log lies in no topic.
    pub log_topic: Option<TopicUrl>,
    /// Settings of the connections to the topic's brokers.
    pub log_topic_config: TopicConfig,
    /// The number of tablets of a new store. An existing store keeps its own number.
    pub tablet_count: usize,
    /// Bytes of memory for blocks, indexes and filters of SSTables, for all tablets together.
    pub block_cache_bytes: u64,
    /// Bytes of memory for unflushed rows, for all tablets together. Writes wait when it is used up.
    pub memtable_bytes: u64,
    /// Bytes of memory for merged rows, for all tablets together. 0 disables the row cache.
    pub row_cache_bytes: u64,
    /// The folder of the disk cache of a store in a bucket. `None` disables the disk cache.
    pub cache_dir: Option<PathBuf>,
    /// Bytes of the disk cache. `None` to derive the size from the free space of its disk; 0 disables the disk cache.
    pub cache_disk_bytes: Option<u64>,
    /// Bytes of a file of the log.
    pub log_segment_bytes: u64,
    /// Bytes of the log above which the tablets that pin it are flushed.
    pub log_max_bytes: u64,
    /// Free bytes of the log's disk below which writes are refused, so that flushes still have room.
    pub disk_reserve_bytes: u64,
    /// Bytes of writes in flight above which further writes wait.
    pub write_in_flight_bytes: u64,
    /// The interval at which the compactor looks for work.
    pub compaction_poll_interval: Duration,
    /// The time after which rows in memory are flushed to SSTables, for a store in a bucket. `None` if there is no such limit: then rows of
    /// rarely written tablets stay in memory and in the log.
    pub flush_interval: Option<Duration>,
    /// True if a store in a bucket is only read, beside the processes that write to it ([`crate::Store::follow_tablets`]).
    pub read_only: bool,
    /// The interval at which a read-only store looks for new data.
    pub read_only_refresh_interval: Duration,
    /// The time for which files that a compaction has replaced are kept, for reads that still use them. Longer scans keep their files
    /// longer.
    pub garbage_age: Duration,
    /// True if the log is kept below `history/` when no tablet needs it any more, so that the history can be read.
    pub keeps_history: bool,
    /// True if data files and the log are synced. False only in tests that need no durability.
    pub fsync: bool,
    /// Minimum time between two PUTs of the log in a bucket. A longer time means fewer PUTs and slower writes.
    pub log_interval: Duration,
    /// The time after which a write that the object store has not confirmed fails. The outcome of such a write is unknown.
    pub write_timeout: Duration,
    /// The time after which a read that the object store has not answered fails.
    pub read_timeout: Duration,
    /// True if all tablets of a store in a bucket are opened with it. In a cluster, a node opens only the tablets that it owns.
    pub open_all_tablets: bool,
    /// Limits of the throughput of flushes, compactions and requests to a bucket.
    pub throttles: Throttles,
    /// Threads of the background runtime (flushes, compactions, garbage collection).
    pub background_threads: usize,
    /// The wall clock. `None` for the machine's clock.
    pub clock: Option<Arc<dyn SystemClock>>,
    /// The seed of SlateDB's random generator. `None` for a seed from the operating system.
    pub seed: Option<u64>,
}

impl StoreConfig {
    /// Returns the defaults for this machine: about a twentieth of its memory in total, and one tablet for each core. A store in a bucket
    /// gets 16 tablets.
    pub fn new(url: StoreUrl) -> Self {
        let memory = crate::machine_memory_bytes();
        let cores = std::thread::available_parallelism().map_or(2, |n| n.get());
        let tablet_count = match url {
            StoreUrl::File(_) => cores.clamp(2, 16),
            // Nodes that join later share these tablets.
            StoreUrl::Remote(_) => 16,
        };
        let memtable_bytes = (memory / 48).clamp(64 * MIB, 4096 * MIB);
        let flush_interval = match url {
            StoreUrl::File(_) => None,
            StoreUrl::Remote(_) => Some(Duration::from_secs(300)),
        };
        // In a bucket, each poll costs requests.
        let compaction_poll_interval = match &url {
            StoreUrl::File(_) => Duration::from_secs(1),
            StoreUrl::Remote(_) => Duration::from_secs(5),
        };
        StoreConfig {
            url,
            log_store: None,
            log_store_endpoint: None,
            log_topic: None,
            log_topic_config: TopicConfig::default(),
            tablet_count,
            block_cache_bytes: (memory / 64).clamp(32 * MIB, 16 << 30),
            memtable_bytes,
            row_cache_bytes: (memory / 96).clamp(16 * MIB, 4 << 30),
            cache_dir: None,
            cache_disk_bytes: None,
            log_segment_bytes: 32 * MIB,
            log_max_bytes: memtable_bytes.max(256 * MIB),
            disk_reserve_bytes: memtable_bytes + 64 * MIB,
            write_in_flight_bytes: (memtable_bytes / 8).max(16 * MIB),
            compaction_poll_interval,
            flush_interval,
            read_only: false,
            read_only_refresh_interval: Duration::from_secs(1),
            log_interval: Duration::ZERO,
            write_timeout: Duration::from_secs(2),
            read_timeout: Duration::from_secs(5),
            open_all_tablets: true,
            garbage_age: Duration::from_secs(5),
            keeps_history: false,
            fsync: true,
            throttles: Throttles::default(),
            background_threads: (cores / 2).clamp(1, 8),
            clock: None,
            seed: None,
        }
    }

    /// Returns small sizes for tests: a store in `path` that flushes and compacts early.
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
        if let (StoreUrl::File(_), Some(topic)) = (&self.url, &self.log_topic) {
            return bad(format!(
                "log_store = \"{topic}\": a store in a local folder has its log there; a log store is for stores in a bucket"
            ));
        }
        if let (StoreUrl::File(_), true) = (&self.url, self.read_only) {
            return bad(format!(
                "store = \"{}\": a store in a local folder has one process; read-only nodes are for stores in a bucket",
                self.url
            ));
        }
        if let (Some(topic), true) = (&self.log_topic, self.keeps_history) {
            return bad(format!(
                "log_store = \"{topic}\": the history of a log in a topic is not kept: leave point_in_time_window out, or have the log in a bucket"
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
