//! What the measuring programs share: real rows in a store, the process' own figures, percentiles.

#![allow(dead_code, reason = "each program uses its part")]

#[path = "../../tests/integration/plain_model.rs"]
mod plain_model;

use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;
use helenus_row::compaction_filter::{self, RowFilter, TableState};
use helenus_row::{
    Cell, CellRules, ColumnId, Deletion, Liveness, RowBuilder, RowRef, TableId, archive, key, merge,
    murmur3_token, read,
};
use helenus_tablet::{CompactFilter, CompactionContext, DataModelError, Store, StoreConfig};
use plain_model::PlainModel;

/// The one table.
pub const TABLE: TableId = TableId(7);
/// As in the query layer.
const PURGE_GRACE_S: i64 = 10;

/// A data model with rows as the query layer stores them, without an archive.
pub const ROWS: PlainModel = PlainModel {
    may_be_alive: |key, operand| {
        let kind = key::key_kind(key).ok();
        let oldest = kind.and_then(|kind| archive::oldest_us(kind, operand).ok());
        oldest.is_none_or(|oldest| oldest.is_some())
    },
    partition_prefix_len: key::partition_prefix_len,
    compaction: row_filter,
    ..PlainModel::new(merge_row)
};

fn merge_row(key: &[u8], existing: Option<&Bytes>, operands: &[Bytes]) -> Result<Bytes, DataModelError> {
    let kind = key::key_kind(key).map_err(|error| DataModelError(error.to_string()))?;
    merge::merge(kind, existing, operands).map_err(|error| DataModelError(error.to_string()))
}

fn row_filter(context: &CompactionContext) -> Box<dyn CompactFilter> {
    let context = compaction_filter::CompactionContext {
        forgets_headers: true,
        now_s: context.now_ms.div_euclid(1000),
        newer: std::sync::Arc::new(|_| i64::MAX),
    };
    let tables: Tables = |_| TableState::Live {
        has_origin: false,
        purge_grace_s: PURGE_GRACE_S,
        late_window_s: 0,
        rules: CellRules::default(),
    };
    Box::new(RowFilter::new(context, tables))
}

type Tables = fn(TableId) -> TableState;

/// A partition: its token and the prefix of its keys.
pub struct Partition {
    pub token: i64,
    pub prefix: Bytes,
}

impl Partition {
    pub fn new(name: &str) -> Partition {
        let token = murmur3_token(name.as_bytes());
        Partition {
            token,
            prefix: key::partition_prefix(TABLE, token, name.as_bytes()),
        }
    }

    /// The key of the row with an `int` clustering column.
    pub fn row(&self, clustering: u32) -> Bytes {
        let mut encoded = vec![3];
        encoded.extend_from_slice(&(clustering ^ (1 << 31)).to_be_bytes());
        key::key_in_partition(&self.prefix, key::KeyKind::Row, &encoded)
    }

    /// The key of the one row of a partition without clustering columns.
    pub fn single_row(&self) -> Bytes {
        key::key_in_partition(&self.prefix, key::KeyKind::Row, &[])
    }

    /// Where the partition ends.
    pub fn end(&self) -> Bytes {
        key::successor(&self.prefix).unwrap_or_default()
    }

    /// Reads the rows from the first on, until `limit` are alive; returns how many were alive and how many dead.
    pub async fn slice(&self, store: &Store, limit: usize, now_s: i64) -> (usize, usize) {
        let range = self.prefix.clone()..self.end();
        let mut scan = store
            .tablet(self.token)
            .unwrap()
            .scan(range, false)
            .await
            .unwrap();
        let (mut live, mut dead) = (0, 0);
        while live < limit
            && let Some((_, packed)) = scan.next().await.unwrap()
        {
            let row = RowRef::parse(packed).unwrap();
            match read::live_row(&row, None, &CellRules::default(), now_s).unwrap() {
                Some(_) => live += 1,
                None => {
                    dead += 1;
                    scan.mark_dead();
                }
            }
        }
        store.tablet(self.token).unwrap().passed(live as u64, dead as u64);
        (live, dead)
    }
}

/// INSERT of one value.
pub fn upsert(timestamp_us: i64, value: Bytes) -> Bytes {
    RowBuilder::new()
        .liveness(Liveness {
            timestamp_us,
            expiry: None,
        })
        .cell(ColumnId(1), Cell::live(timestamp_us, value))
        .build()
}

/// DELETE of a row.
pub fn delete(timestamp_us: i64) -> Bytes {
    RowBuilder::new()
        .delete_row(Deletion {
            timestamp_us,
            local_deletion_s: timestamp_us.div_euclid(1_000_000),
        })
        .build()
}

/// Scrambles a number.
pub fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Bytes that do not compress.
pub fn noise(seed: u64, len: usize) -> Bytes {
    let words = (0..len.div_ceil(8) as u64).flat_map(|part| mix(seed ^ mix(part)).to_le_bytes());
    words.take(len).collect::<Vec<u8>>().into()
}

/// Microseconds since 1970.
pub fn now_us() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.unwrap().as_micros() as i64
}

/// CPU time of the process so far.
pub fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}

/// Resident memory of the process in MiB, now and at its peak.
pub fn resident_mib() -> (u64, u64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
    };
    (field("VmRSS"), field("VmHWM"))
}

/// Bytes of the SSTables in a store's folder, those that nothing refers to any more included.
pub fn table_bytes(root: &Path) -> u64 {
    let Ok(tablets) = std::fs::read_dir(root.join("tablets")) else {
        return 0;
    };
    tablets
        .flatten()
        .filter_map(|tablet| std::fs::read_dir(tablet.path().join("compacted")).ok())
        .flatten()
        .flatten()
        .filter_map(|file| file.metadata().ok())
        .map(|file| file.len())
        .sum()
}

/// Waits until nothing is compacted any more, `limit` at most.
pub async fn settle(store: &Store, limit: Duration) -> Duration {
    let started = Instant::now();
    let mut quiet = 0;
    let mut before = None;
    while quiet < 10 && started.elapsed() < limit {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let stats = store.stats();
        let shape: Vec<_> = stats
            .tablets
            .iter()
            .map(|tablet| (tablet.level0_files, tablet.sorted_runs))
            .collect();
        let busy = stats.compactions_running > 0 || before.as_ref() != Some(&shape);
        quiet = if busy { 0 } else { quiet + 1 };
        before = Some(shape);
    }
    started.elapsed()
}

/// Latencies in µs.
#[derive(Default)]
pub struct Latencies(Vec<f32>);

impl Latencies {
    pub fn add(&mut self, time: Duration) {
        self.0.push(time.as_secs_f32() * 1e6);
    }

    pub fn extend(&mut self, other: Latencies) {
        self.0.extend(other.0);
    }

    pub fn at(&mut self, q: f64) -> f32 {
        self.0.sort_unstable_by(f32::total_cmp);
        let place = ((self.0.len() as f64 * q) as usize).min(self.0.len().saturating_sub(1));
        self.0.get(place).copied().unwrap_or(0.0)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }
}

/// The memory that a store of the measurement has.
#[derive(clap::Args, Debug)]
pub struct Memory {
    /// Size of a memtable
    #[arg(long, value_name = "MIB")]
    pub memtable_mib: Option<u64>,
    /// Size of the block cache
    #[arg(long, value_name = "MIB")]
    pub block_cache_mib: Option<u64>,
    /// Size of the row cache
    #[arg(long, value_name = "MIB")]
    pub row_cache_mib: Option<u64>,
}

impl Memory {
    /// Sets what was asked for; the rest stays.
    pub fn set(&self, config: &mut StoreConfig) {
        let bytes = |mib: Option<u64>, default: u64| mib.map_or(default, |mib| mib << 20);
        config.memtable_bytes = bytes(self.memtable_mib, config.memtable_bytes);
        config.block_cache_bytes = bytes(self.block_cache_mib, config.block_cache_bytes);
        config.row_cache_bytes = bytes(self.row_cache_mib, config.row_cache_bytes);
    }
}
