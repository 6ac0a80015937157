//! Limits of a request's memory, time and rate.

pub mod answers;
pub mod client_memory;
pub mod guardrails;
pub(crate) mod node_limits;
pub(crate) mod partition_rates;
pub mod scope;
pub(crate) mod timeouts;
pub(crate) mod token_bucket;

pub use timeouts::Timeouts;

use std::sync::Arc;
use std::time::Duration;

/// Limits on statements, with Cassandra's names where Cassandra has them.
#[derive(Clone, Debug)]
pub struct Limits {
    pub statement_len_max: usize,
    pub batch_size_warn_bytes: usize,
    pub batch_size_fail_bytes: usize,
    pub tombstone_warn_threshold: usize,
    pub tombstone_failure_threshold: usize,
    /// Bytes of all prepared statements that are kept. A statement takes about 2.5 KB, so the default keeps some 50,000: two for each of
    /// 10,000 tables, and more.
    pub prepared_cache_bytes: usize,
    /// Bytes of rows after which a page ends early, even if it has fewer rows than requested.
    pub page_bytes_max: usize,
    /// Memory for clients' requests and answers. When it is short, pages end early.
    pub client_memory_bytes: usize,
    /// Maximum time of a request that needs other nodes.
    pub request_timeout: Duration,
    /// Maximum time of computing on this node.
    pub timeouts: Timeouts,
    /// Bytes of one answer here, and in the next field of all answers that are being made or sent.
    pub answer_bytes_max: usize,
    pub answers_bytes_max: usize,
    /// Parts of scans of whole tables that are read concurrently, over all requests.
    pub scan_concurrency: usize,
    /// Sampling rate of the list of the most active partitions: one of this many reads and writes is counted. 0 turns the list off.
    pub partition_sampling_interval: u32,
    /// True if columns can be masked. Roles without the permission to unmask then see masked values.
    pub dynamic_data_masking_enabled: bool,
    /// Snapshots that TRUNCATE, DROP TABLE and DROP KEYSPACE take.
    pub auto_snapshot: AutoSnapshot,
    /// Age of the oldest time that can be read. `None` if earlier times cannot be read. Fixed when the engine is opened.
    pub point_in_time_window: Option<Duration>,
    /// Guardrails for clients that are not superusers.
    pub guardrails: Arc<guardrails::Guardrails>,
}

/// Snapshots of tables that are truncated or dropped, and how long they are kept (Cassandra's `auto_snapshot` and `auto_snapshot_ttl`).
#[derive(Clone, Copy, Debug)]
pub struct AutoSnapshot {
    pub is_on: bool,
    /// `None` if snapshots are kept until they are cleared.
    pub ttl: Option<Duration>,
}

impl Default for AutoSnapshot {
    /// Keeps snapshots for three days. Cassandra keeps them until they are cleared.
    fn default() -> AutoSnapshot {
        AutoSnapshot {
            is_on: true,
            ttl: Some(Duration::from_secs(3 * 24 * 3600)),
        }
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            statement_len_max: 64 << 20,
            batch_size_warn_bytes: 5 << 10,
            batch_size_fail_bytes: 50 << 20,
            tombstone_warn_threshold: 1_000,
            tombstone_failure_threshold: 100_000,
            prepared_cache_bytes: 128 << 20,
            page_bytes_max: 64 << 20,
            client_memory_bytes: usize::MAX,
            request_timeout: Duration::from_secs(10),
            timeouts: Timeouts::default(),
            answer_bytes_max: 256 << 20,
            answers_bytes_max: 512 << 20,
            scan_concurrency: std::thread::available_parallelism()
                .map_or(1, |cores| (cores.get() / 2).max(1)),
            partition_sampling_interval: 64,
            dynamic_data_masking_enabled: false,
            auto_snapshot: AutoSnapshot::default(),
            point_in_time_window: None,
            guardrails: Arc::default(),
        }
    }
}
