//! Table options, as in Cassandra 5's `TableParams`: stored, validated and shown. COMPAT.md lists those without an effect here.

mod caching;
pub(crate) mod cdc;
mod compaction;
mod compression;
mod declared;
pub(crate) mod partition_rate_limit;
mod registry;
mod retry_policy;
pub(crate) mod transactional_mode;
pub(crate) mod values;

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

pub use cdc::CdcOptions;
pub(crate) use declared::{apply, check_form, of_new, read};
pub use partition_rate_limit::PartitionRateLimit;
use registry::REGISTRY;
pub use transactional_mode::TransactionalMode;

/// The options of a table, with Cassandra 5's defaults. Maps keep the declared strings. Schema documents contain this structure as it is,
/// and an option that a document lacks has its default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TableOptions {
    pub additional_write_policy: String,
    pub allow_auto_snapshot: bool,
    pub bloom_filter_fp_chance: f64,
    pub caching: BTreeMap<String, String>,
    #[serde(
        skip_serializing_if = "CdcOptions::is_default",
        deserialize_with = "cdc::stored"
    )]
    pub cdc: CdcOptions,
    pub comment: String,
    pub compaction: BTreeMap<String, String>,
    pub compression: BTreeMap<String, String>,
    pub crc_check_chance: f64,
    pub default_time_to_live_s: i32,
    pub extensions: BTreeMap<String, Vec<u8>>,
    pub gc_grace_s: i32,
    pub incremental_backups: bool,
    pub max_index_interval: i32,
    /// Name of a memtable configuration. `default` if none is declared.
    pub memtable: String,
    pub memtable_flush_period_ms: i32,
    pub min_index_interval: i32,
    /// ScyllaDB's rate limit, which Cassandra does not have. `None` if there is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_partition_rate_limit: Option<PartitionRateLimit>,
    pub read_repair: String,
    pub speculative_retry: String,
    /// Cassandra 6's option: the transactions that may use the table.
    #[serde(skip_serializing_if = "TransactionalMode::is_off")]
    pub transactional_mode: TransactionalMode,
}

fn strings<const N: usize>(pairs: [(&str, &str); N]) -> BTreeMap<String, String> {
    pairs
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

impl Default for TableOptions {
    fn default() -> TableOptions {
        TableOptions {
            additional_write_policy: "99p".to_owned(),
            allow_auto_snapshot: true,
            bloom_filter_fp_chance: 0.01,
            caching: strings([("keys", "ALL"), ("rows_per_partition", "NONE")]),
            cdc: CdcOptions::default(),
            comment: String::new(),
            compaction: strings([
                (
                    "class",
                    "org.apache.cassandra.db.compaction.SizeTieredCompactionStrategy",
                ),
                ("max_threshold", "32"),
                ("min_threshold", "4"),
            ]),
            compression: strings([
                ("chunk_length_in_kb", "16"),
                ("class", "org.apache.cassandra.io.compress.LZ4Compressor"),
            ]),
            crc_check_chance: 1.0,
            default_time_to_live_s: 0,
            extensions: BTreeMap::new(),
            gc_grace_s: 864_000,
            incremental_backups: true,
            max_index_interval: 2048,
            memtable: "default".to_owned(),
            memtable_flush_period_ms: 0,
            min_index_interval: 128,
            per_partition_rate_limit: None,
            read_repair: "BLOCKING".to_owned(),
            speculative_retry: "99p".to_owned(),
            transactional_mode: TransactionalMode::Off,
        }
    }
}

impl TableOptions {
    /// Returns false if `compression` is switched off. This is stored, but has no effect.
    pub(crate) fn is_compressed(&self) -> bool {
        self.compression
            .get("enabled")
            .is_none_or(|enabled| enabled != "false")
    }

    /// Returns false if `caching` excludes both keys and rows. The table's rows then do not enter the row cache.
    pub(crate) fn is_cached(&self) -> bool {
        let mut parts = ["keys", "rows_per_partition"].into_iter();
        !parts.all(|part| self.caching.get(part).is_some_and(|value| value == "NONE"))
    }

    /// Returns true if `compaction` names leveled compaction, which has another default for `bloom_filter_fp_chance`.
    fn is_leveled(&self) -> bool {
        self.is_compacted_by(".LeveledCompactionStrategy")
    }

    /// Returns true if `compaction` names compaction by time windows.
    pub(crate) fn is_compacted_by_windows(&self) -> bool {
        self.is_compacted_by(".TimeWindowCompactionStrategy")
    }

    fn is_compacted_by(&self, strategy: &str) -> bool {
        let class = self.compaction.get("class");
        class.is_some_and(|class| class.ends_with(strategy))
    }
}

/// Returns the options as DESCRIBE shows them, as `name = value`. A view has no TTL. The rate limit and the
/// transactional mode are shown only if they are set, because Cassandra 5 does not have them.
pub(crate) fn describe(options: &TableOptions, is_view: bool) -> Vec<String> {
    let is_shown = |name: &str| match name {
        "default_time_to_live" => !is_view,
        partition_rate_limit::NAME => options.per_partition_rate_limit.is_some(),
        transactional_mode::NAME => !options.transactional_mode.is_off(),
        _ => true,
    };
    REGISTRY
        .iter()
        .filter(|option| is_shown(option.name))
        .map(|option| format!("{} = {}", option.name, (option.literal)(options)))
        .collect()
}

/// Returns the options that are not null in `system_schema.tables` and `system_schema.views`, as columns of these tables.
pub(crate) fn cells(options: &TableOptions) -> impl Iterator<Item = (&'static str, Bytes)> {
    REGISTRY
        .iter()
        .filter_map(|option| Some((option.name, (option.cell)(options)?)))
}
