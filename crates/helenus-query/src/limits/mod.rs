//! What requests may take of the node.

pub mod answers;
pub mod client_memory;
pub mod guardrails;
pub(crate) mod partition_rates;
pub mod scope;
pub(crate) mod timeouts;
pub(crate) mod token_bucket;

pub use timeouts::Timeouts;

use std::sync::Arc;
use std::time::Duration;

/// Limits on what a statement may ask for, with Cassandra's names where it has them.
#[derive(Clone, Debug)]
pub struct Limits {
    pub statement_len_max: usize,
    pub batch_size_warn_bytes: usize,
    pub batch_size_fail_bytes: usize,
    pub tombstone_warn_threshold: usize,
    pub tombstone_failure_threshold: usize,
    /// Prepared statements kept, in bytes: about 2.5 KB each, so some 50,000 by default, a pair for each of 10,000 tables and room to spare.
    pub prepared_cache_bytes: usize,
    /// Bytes of rows after which a page ends early, whatever its size in rows.
    pub page_bytes_max: usize,
    /// Memory for clients' requests and answers; when it is short, pages end early.
    pub client_memory_bytes: usize,
    /// How long a request may take when other nodes are asked.
    pub request_timeout: Duration,
    /// How long requests may compute here.
    pub timeouts: Timeouts,
    /// Bytes of one answer, and of all that are being made and sent.
    pub answer_bytes_max: usize,
    pub answers_bytes_max: usize,
    /// Parts of reads of whole tables that are read at a time, by all requests together.
    pub scan_concurrency: usize,
    /// Of how many reads and writes of a partition one is counted in the list of the most active ones; none with 0.
    pub partition_sampling_interval: u32,
    /// Columns may be masked, and are shown masked to those who may not see what masks hide.
    pub dynamic_data_masking_enabled: bool,
    /// What TRUNCATE, DROP TABLE and DROP KEYSPACE leave behind.
    pub auto_snapshot: AutoSnapshot,
    /// How far back times of the past can be read; none without. It stays as it was when the engine was opened.
    pub point_in_time_window: Option<Duration>,
    /// What clients that are no superusers are warned of and refused.
    pub guardrails: Arc<guardrails::Guardrails>,
}

/// Whether tables leave snapshots behind when they are truncated or dropped, and for how long (Cassandra's `auto_snapshot` and
/// `auto_snapshot_ttl`).
#[derive(Clone, Copy, Debug)]
pub struct AutoSnapshot {
    pub is_on: bool,
    /// None if they stay until they are cleared.
    pub ttl: Option<Duration>,
}

impl Default for AutoSnapshot {
    /// On, for three days. Cassandra's stay until somebody clears them.
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
