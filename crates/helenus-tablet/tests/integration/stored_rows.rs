//! Rows as the query layer stores them: random changes, and the rows that must be read after them.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use helenus_row::compaction_filter::{self, RowFilter, TableState};
use helenus_row::{
    Cell, CellRules, ClusteringRange, ColumnId, Deletion, Expiry, Liveness, PartitionHeader, RowBuilder,
    RowRef, TableId, archive, key, merge, murmur3_token, read,
};
use helenus_tablet::{
    ArchiveKeys, CompactFilter, CompactionContext, DataModelError, KeptPartition, KeyLayout, PartitionMeter,
    RowCachePolicy, RowMerge, SstableRules, Store, StoreConfig, TombstoneArchive,
};
use rand::Rng;
use rand::rngs::SmallRng;

/// The table of most tests, a branch of it, and a branch of that branch.
pub const TABLE: TableId = TableId(7);
pub const BRANCH: TableId = TableId(8);
pub const BRANCH_OF_BRANCH: TableId = TableId(9);
pub const PARTITIONS: [&str; 2] = ["one", "two"];
pub const ROWS: u8 = 32;
/// All times are long ago, so that tombstones are old enough to be purged and all writes are late.
const LONG_AGO_S: i64 = 1;
const NOW_S: i64 = 1_000_000_000;

/// A data model with rows as the query layer stores them, and an archive that keeps all tombstones.
pub struct Rows;

fn damaged(error: impl std::fmt::Display) -> DataModelError {
    DataModelError(error.to_string())
}

impl RowMerge for Rows {
    fn merge(
        &self,
        key: &[u8],
        existing: Option<&Bytes>,
        operands: &[Bytes],
    ) -> Result<Bytes, DataModelError> {
        merge::merge(key::key_kind(key).map_err(damaged)?, existing, operands).map_err(damaged)
    }

    fn may_copy(&self, _key: &[u8]) -> bool {
        false
    }

    fn may_be_alive(&self, key: &[u8], operand: &Bytes) -> bool {
        self.oldest_us(key, operand).unwrap().is_some()
    }
}

impl KeyLayout for Rows {
    fn table_of(&self, key: &[u8]) -> u32 {
        key.first_chunk().map_or(0, |table| u32::from_be_bytes(*table))
    }

    fn token_of(&self, key: &[u8]) -> Option<i64> {
        key::token_of(key)
    }

    fn partition_prefix_len(&self, key: &[u8], _complete: bool) -> Option<usize> {
        key::partition_prefix_len(key)
    }
}

impl RowCachePolicy for Rows {
    fn kept_partition(&self, _key: &[u8]) -> Option<KeptPartition> {
        None
    }

    fn caches_row(&self, _key: &[u8]) -> bool {
        true
    }
}

impl TombstoneArchive for Rows {
    fn oldest_us(&self, key: &[u8], operand: &Bytes) -> Result<Option<i64>, DataModelError> {
        archive::oldest_us(key::key_kind(key).map_err(damaged)?, operand).map_err(damaged)
    }

    fn archive(&self, key: &[u8], row: &Bytes) -> Result<Option<(Bytes, Bytes)>, DataModelError> {
        if archive::is_archive_key(key) {
            return Ok(None);
        }
        let kind = key::key_kind(key).map_err(damaged)?;
        let tombstones = archive::tombstones_of(kind, row, i64::MAX).map_err(damaged)?;
        Ok(tombstones.map(|tombstones| (archive::archive_key(key).unwrap(), tombstones)))
    }

    fn is_archive(&self, key: &[u8]) -> bool {
        archive::is_archive_key(key)
    }

    fn archives_over(&self, key: &[u8]) -> Option<ArchiveKeys> {
        let header = key::header_of(key).ok()?;
        Some(ArchiveKeys {
            row: archive::archive_key(key).ok()?,
            header: archive::archive_key(&header).ok(),
            unarchived_header: Some(header),
        })
    }

    fn archives_of_origin(&self, _key: &[u8], origin: &[u8]) -> Option<ArchiveKeys> {
        self.archives_over(origin)
    }

    fn apply_archived_tombstones(
        &self,
        key: &[u8],
        operand: &Bytes,
        row: Option<&Bytes>,
        header: Option<&Bytes>,
        now_ms: i64,
    ) -> Result<Bytes, DataModelError> {
        let parts = key::split_key(key).map_err(damaged)?;
        archive::under_tombstones(&parts, operand, row, header, now_ms / 1000).map_err(damaged)
    }
}

impl SstableRules for Rows {
    fn compaction(&self, context: &CompactionContext) -> Box<dyn CompactFilter> {
        let newer = context.newer.clone();
        let context = compaction_filter::CompactionContext {
            forgets_headers: true,
            now_s: context.now_ms / 1000,
            newer: Arc::new(move |table| newer(table.0)),
        };
        let tables: Tables = |table| TableState::Live {
            has_origin: table != TABLE,
            purge_grace_s: 0,
            late_window_s: i64::MAX,
            rules: CellRules::default(),
        };
        Box::new(RowFilter::new(context, tables))
    }

    fn partition_meter(&self) -> Option<Box<dyn PartitionMeter>> {
        None
    }
}

type Tables = fn(TableId) -> TableState;

pub fn token(partition: &str) -> i64 {
    murmur3_token(partition.as_bytes())
}

pub fn row_key(table: TableId, partition: &str, row: u8) -> Bytes {
    key::row_key(table, token(partition), partition.as_bytes(), &[3, row])
}

fn header_key(table: TableId, partition: &str) -> Bytes {
    key::header_key(table, token(partition), partition.as_bytes())
}

pub fn deletion(timestamp_us: i64) -> Deletion {
    Deletion {
        timestamp_us,
        local_deletion_s: LONG_AGO_S,
    }
}

/// Returns a random change of one row.
fn change(random: &mut SmallRng, timestamp_us: i64) -> Bytes {
    let column = ColumnId(random.random_range(1..3));
    let value = Bytes::from(vec![random.random(); 3]);
    let expiry = Expiry {
        ttl_s: 5,
        expires_at_s: LONG_AGO_S + 5,
    };
    let mut row = RowBuilder::new();
    match random.random_range(0..7) {
        0 | 1 => row.cell(column, Cell::live(timestamp_us, value)),
        2 => row.delete_row(deletion(timestamp_us)),
        3 => row.cell(column, Cell::tombstone(timestamp_us, LONG_AGO_S)),
        4 => row
            .liveness(Liveness {
                timestamp_us,
                expiry: Some(expiry),
            })
            .cell(column, Cell::expiring(timestamp_us, expiry, value)),
        _ => row
            .liveness(Liveness {
                timestamp_us,
                expiry: None,
            })
            .cell(column, Cell::live(timestamp_us, value)),
    };
    row.build()
}

/// Returns random operations on keys of one partition.
pub fn operations(
    random: &mut SmallRng,
    table: TableId,
    partition: &str,
    timestamp_us: i64,
) -> Vec<(Bytes, Bytes)> {
    let first = random.random_range(0..ROWS);
    match random.random_range(0..12) {
        0 => {
            let header = PartitionHeader::deleting_partition(deletion(timestamp_us));
            vec![(header_key(table, partition), header.encode())]
        }
        1 | 2 => {
            let range = ClusteringRange {
                start: Bytes::from(vec![3, first]),
                end: Some(Bytes::from(vec![3, first.saturating_add(10)])),
            };
            let header = PartitionHeader::deleting_ranges([range], deletion(timestamp_us));
            vec![(header_key(table, partition), header.encode())]
        }
        3 | 4 => {
            let rows = match random.random() {
                true => 0..first,
                false => first..ROWS,
            };
            let delete = |row| {
                let deleted = RowBuilder::new().delete_row(deletion(timestamp_us)).build();
                (row_key(table, partition, row), deleted)
            };
            rows.map(delete).collect()
        }
        _ => vec![(row_key(table, partition, first), change(random, timestamp_us))],
    }
}

/// Returns the live cells of a row, as a SELECT shows them. `None` if none is alive.
pub fn live(packed: Bytes, shadow: Option<Deletion>) -> Option<String> {
    let row = RowRef::parse(packed).unwrap();
    let live = read::live_row(&row, shadow, &CellRules::default(), NOW_S).unwrap()?;
    Some(format!("{:?} {:?}", live.liveness, live.columns))
}

pub type Live = BTreeMap<(String, u8), String>;

/// The merge of all operations that were written.
#[derive(Clone, Default)]
pub struct History(pub BTreeMap<Bytes, Bytes>);

impl History {
    pub fn add(&mut self, key: &Bytes, operand: &Bytes) {
        let before = self.0.get(key);
        let merged = Rows.merge(key, before, std::slice::from_ref(operand)).unwrap();
        self.0.insert(key.clone(), merged);
    }

    pub fn live(&self, table: TableId) -> Live {
        let mut rows = Live::new();
        for partition in PARTITIONS {
            let header = self.0.get(&header_key(table, partition));
            let header = header.map(|header| PartitionHeader::decode(header).unwrap());
            for row in 0..ROWS {
                let shadow = header.as_ref().and_then(|header| header.deletion_at(&[3, row]));
                let packed = self.0.get(&row_key(table, partition, row)).cloned();
                if let Some(live) = packed.and_then(|packed| live(packed, shadow)) {
                    rows.insert((partition.to_owned(), row), live);
                }
            }
        }
        rows
    }
}

async fn header(store: &Store, table: TableId, partition: &str) -> Option<PartitionHeader> {
    let tablet = store.tablet(token(partition)).unwrap();
    let packed = tablet.get(&header_key(table, partition)).await.unwrap();
    packed.map(|packed| PartitionHeader::decode(&packed).unwrap())
}

/// Returns the live rows that scans return. Scans skip rows that earlier ones found dead.
async fn scanned(store: &Store, table: TableId, reversed: bool, from: u8) -> Live {
    let mut rows = Live::new();
    for partition in PARTITIONS {
        let header = header(store, table, partition).await;
        let tablet = store.tablet(token(partition)).unwrap();
        let range = match reversed {
            false => row_key(table, partition, from)..row_key(table, partition, ROWS),
            true => row_key(table, partition, 0)..row_key(table, partition, ROWS - from),
        };
        let mut scan = tablet.scan(range, reversed).await.unwrap();
        while let Some((key, packed)) = scan.next().await.unwrap() {
            let row = *key.last().unwrap();
            let shadow = header.as_ref().and_then(|header| header.deletion_at(&[3, row]));
            match live(packed, shadow) {
                Some(live) => drop(rows.insert((partition.to_owned(), row), live)),
                None => scan.mark_dead(),
            }
        }
    }
    rows
}

/// Returns the live rows that point reads return.
async fn got(store: &Store, table: TableId) -> Live {
    let mut rows = Live::new();
    for partition in PARTITIONS {
        let header = header(store, table, partition).await;
        let tablet = store.tablet(token(partition)).unwrap();
        for row in 0..ROWS {
            let shadow = header.as_ref().and_then(|header| header.deletion_at(&[3, row]));
            let packed = tablet.get(&row_key(table, partition, row)).await.unwrap();
            if let Some(live) = packed.and_then(|packed| live(packed, shadow)) {
                rows.insert((partition.to_owned(), row), live);
            }
        }
    }
    rows
}

pub async fn check(store: &Store, table: TableId, history: &History, random: &mut SmallRng) {
    let expected = history.live(table);
    if random.random() {
        assert_eq!(got(store, table).await, expected, "point reads");
    }
    for reversed in [false, true] {
        let from = random.random_range(0..ROWS / 2) * u8::from(random.random::<bool>());
        let mut expected = expected.clone();
        expected.retain(|(_, row), _| match reversed {
            false => *row >= from,
            true => *row < ROWS - from,
        });
        assert_eq!(
            scanned(store, table, reversed, from).await,
            expected,
            "reversed: {reversed}, from {from}"
        );
    }
}

pub async fn purge(store: &Store) -> u64 {
    let mut dropped = 0;
    for tablet in store.tablets().iter() {
        dropped += tablet.purge_now().await.unwrap();
    }
    dropped
}

pub async fn open(path: &Path) -> Arc<Store> {
    Store::open(StoreConfig::small(path), Arc::new(Rows))
        .await
        .unwrap()
}

/// Copies the folder of an open store. A file that the store removes meanwhile is not copied.
pub fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
            continue;
        }
        match std::fs::copy(entry.path(), target) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            copied => drop(copied.unwrap()),
        }
    }
}
