//! The store's hooks for rows: how rows merge, and what a compaction may drop.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use bytes::Bytes;
use helenus_row::compaction_filter::{self, RowFilter, TableState};
use helenus_row::{CellRules, TableId, archive, key, merge};
use helenus_tablet::{
    ArchiveKeys, CompactFilter, CompactionContext, DataModelError, KeptPartition, KeyLayout, PartitionMeter,
    RowCachePolicy, RowMerge, SstableRules, TombstoneArchive,
};

use super::{HeaderTables, PartitionThresholds};
use crate::schema::{Schema, Table, TableOptions};

/// Minimum seconds that a compaction keeps a tombstone, whatever it covers. A write with an older timestamp that is still running is then
/// deleted too.
const PURGE_GRACE_S: i64 = 10;

/// Seconds after a deletion during which late writes with older timestamps are still deleted, if the table's `gc_grace_seconds` is
/// Cassandra's default.
const LATE_WINDOW_S: i64 = 600;

/// Table numbers from here on are the node's own, such as that of the batch log. Clients do not write to these tables.
const RESERVED: u32 = 0xFFFF_FF00;

/// Limits of an indexed value's entries that the row cache keeps as one piece.
const KEPT_VALUE: KeptPartition = KeptPartition {
    rows_max: 12,
    bytes_max: 4 << 10,
    dead_rows_max: 12,
};
/// Limits of a posting list that the row cache keeps as one piece. After a split, a list has many dead rows for a while.
const KEPT_LIST: KeptPartition = KeptPartition {
    rows_max: 512,
    bytes_max: 1 << 20,
    dead_rows_max: 100_000,
};

/// Properties of a table that a compaction needs.
#[derive(Clone, Debug, Default)]
struct LiveTable {
    rules: CellRules,
    late_window_s: i64,
    has_origin: bool,
}

impl LiveTable {
    fn of(table: &Table) -> LiveTable {
        LiveTable {
            rules: table.purgeable_cells(),
            // Only the node writes to a view, so there are no late writes.
            late_window_s: if table.is_view() {
                0
            } else {
                late_window_s(&table.options)
            },
            has_origin: table.origin.is_some(),
        }
    }
}

fn late_window_s(options: &TableOptions) -> i64 {
    match options.gc_grace_s {
        gc_grace_s if gc_grace_s == TableOptions::default().gc_grace_s => LATE_WINDOW_S,
        gc_grace_s => i64::from(gc_grace_s),
    }
}

/// The existing tables, with the properties that a compaction needs. A compaction sweeps the rows of all other tables and the cells of
/// dropped columns. Before the schema is loaded, the tables are unknown and nothing is swept.
#[derive(Debug, Default)]
pub struct LiveTables {
    known: ArcSwap<Option<KnownTables>>,
    /// True if some table keeps its rows out of the row cache.
    has_uncached: AtomicBool,
    /// True if tables were dropped since the last call of `take_gone`.
    has_gone: AtomicBool,
}

#[derive(Debug)]
struct KnownTables {
    tables: HashMap<TableId, LiveTable>,
    /// The hidden tables of indexes, each with the limits of the partitions that the row cache keeps as one piece.
    indexes: HashMap<TableId, KeptPartition>,
    /// The tables whose rows are kept out of the row cache.
    uncached: HashSet<TableId>,
    /// The first table number that this schema has not assigned. Tables from this number on belong to newer schemas.
    next_number: u32,
}

impl LiveTables {
    /// Replaces the set by the tables of a schema and its snapshots, with the hidden tables of their indexes.
    pub fn set(&self, schema: &Schema) {
        let of_index = |table: &Table| LiveTable {
            late_window_s: 0,
            ..LiveTable::of(table)
        };
        let tables = schema.kept_tables().flat_map(|table| {
            let indexes = table.indexes.iter().map(|index| &index.table);
            indexes
                .map(move |index| (index.number, of_index(index)))
                .chain([(table.number, LiveTable::of(table))])
        });
        let tables: HashMap<TableId, LiveTable> = tables.collect();
        if let Some(known) = self.known.load().as_ref()
            && known.tables.keys().any(|number| !tables.contains_key(number))
        {
            self.has_gone.store(true, Ordering::Release);
        }
        let indexes = schema.stored_tables().flat_map(|table| &table.indexes);
        let indexes = indexes.map(|index| {
            let kept = match index.has_posting_lists {
                true => KEPT_LIST,
                false => KEPT_VALUE,
            };
            (index.table.number, kept)
        });
        let indexes = indexes.collect();
        let uncached = schema.stored_tables().filter(|table| !table.options.is_cached());
        let uncached: HashSet<TableId> = uncached.map(|table| table.number).collect();
        let has_uncached = !uncached.is_empty();
        self.known.store(Arc::new(Some(KnownTables {
            tables,
            indexes,
            uncached,
            next_number: schema.next_table_number,
        })));
        self.has_uncached.store(has_uncached, Ordering::Release);
    }

    /// Returns true if tables were dropped since the last call.
    pub(crate) fn take_gone(&self) -> bool {
        self.has_gone.swap(false, Ordering::AcqRel)
    }

    /// Returns true if the table is known to be dropped, so that its rows may be swept.
    pub(crate) fn is_gone(&self, table: TableId) -> bool {
        table.0 < RESERVED && self.get(table).is_none()
    }

    /// Returns true if the row at `key` may be kept in the row cache.
    fn caches_row(&self, key: &[u8]) -> bool {
        if !self.has_uncached.load(Ordering::Acquire) {
            return true;
        }
        let known = self.known.load();
        let Some((known, table)) = known.as_ref().as_ref().zip(table_of(key)) else {
            return true;
        };
        !known.uncached.contains(&table)
    }

    fn kept_partition(&self, table: TableId) -> Option<KeptPartition> {
        let known = self.known.load();
        known.as_ref().as_ref()?.indexes.get(&table).copied()
    }

    /// Returns the table. `None` if it is known to be dropped.
    fn get(&self, table: TableId) -> Option<LiveTable> {
        LiveTables::of(self.known.load().as_ref().as_ref(), table)
    }

    /// Returns the table as of the given knowledge. `None` if it was dropped. A table that is not known yet gets Cassandra's defaults, and
    /// may have an origin.
    fn of(known: Option<&KnownTables>, table: TableId) -> Option<LiveTable> {
        match known {
            Some(known) if table.0 < known.next_number => known.tables.get(&table).cloned(),
            _ => Some(LiveTable {
                rules: CellRules::default(),
                late_window_s: LATE_WINDOW_S,
                has_origin: table.0 < RESERVED,
            }),
        }
    }

    fn late_window_s(&self, table: TableId) -> i64 {
        match self.known.load().as_ref() {
            _ if table.0 >= RESERVED => 0,
            Some(known) if table.0 < known.next_number => {
                known.tables.get(&table).map_or(0, |table| table.late_window_s)
            }
            _ => LATE_WINDOW_S,
        }
    }

    /// Returns the table's state for a compaction. `had_origin` is true if the table had an origin when the compaction began.
    fn state(&self, table: TableId, had_origin: bool) -> TableState {
        self.get(table)
            .map_or(TableState::Gone, |table| TableState::Live {
                purge_grace_s: PURGE_GRACE_S,
                late_window_s: table.late_window_s,
                has_origin: table.has_origin || had_origin,
                rules: table.rules,
            })
    }
}

/// The data model, as the store calls it.
#[derive(Debug)]
pub struct RowHooks {
    pub live_tables: Arc<LiveTables>,
    pub headers: Arc<HeaderTables>,
    pub(crate) partitions: Arc<PartitionThresholds>,
}

impl RowHooks {
    /// Returns hooks for tools that read a store without its schema: rows merge, and compactions sweep no table.
    pub fn without_schema() -> Arc<RowHooks> {
        Arc::new(RowHooks {
            live_tables: Arc::default(),
            headers: Arc::default(),
            partitions: Arc::default(),
        })
    }
}

impl RowMerge for RowHooks {
    fn merge(
        &self,
        key: &[u8],
        existing: Option<&Bytes>,
        operands: &[Bytes],
    ) -> Result<Bytes, DataModelError> {
        let kind = key::key_kind(key).map_err(damaged)?;
        merge::merge(kind, existing, operands).map_err(damaged)
    }

    fn may_copy(&self, key: &[u8]) -> bool {
        table_of(key).is_none_or(|table| !self.headers.contains(table))
    }

    fn may_be_alive(&self, key: &[u8], operand: &Bytes) -> bool {
        // A header only deletes, so it has no oldest time. A row that cannot be decoded may contain anything, so it counts as alive.
        self.oldest_us(key, operand).unwrap_or(Some(i64::MIN)).is_some()
    }
}

impl KeyLayout for RowHooks {
    fn table_of(&self, key: &[u8]) -> u32 {
        table_of(key).map_or(0, |table| table.0)
    }

    fn token_of(&self, key: &[u8]) -> Option<i64> {
        key::token_of(key)
    }

    fn partition_prefix_len(&self, key: &[u8], _complete: bool) -> Option<usize> {
        key::partition_prefix_len(key)
    }
}

impl RowCachePolicy for RowHooks {
    fn kept_partition(&self, key: &[u8]) -> Option<KeptPartition> {
        table_of(key).and_then(|table| self.live_tables.kept_partition(table))
    }

    fn caches_row(&self, key: &[u8]) -> bool {
        self.live_tables.caches_row(key)
    }
}

impl TombstoneArchive for RowHooks {
    fn oldest_us(&self, key: &[u8], operand: &Bytes) -> Result<Option<i64>, DataModelError> {
        let kind = key::key_kind(key).map_err(damaged)?;
        archive::oldest_us(kind, operand).map_err(damaged)
    }

    fn archive(&self, key: &[u8], row: &Bytes) -> Result<Option<(Bytes, Bytes)>, DataModelError> {
        let parts = key::split_key(key).map_err(damaged)?;
        let window_s = self.live_tables.late_window_s(parts.table);
        if window_s == 0 {
            return Ok(None);
        }
        let tombstones = archive::tombstones_of(parts.kind, row, window_s).map_err(damaged)?;
        let archived = tombstones.map(|tombstones| Ok((archive::archive_key(key)?, tombstones)));
        archived
            .transpose()
            .map_err(|error: helenus_row::KeyError| damaged(error))
    }

    fn is_archive(&self, key: &[u8]) -> bool {
        archive::is_archive_key(key)
    }

    fn archives_over(&self, key: &[u8]) -> Option<ArchiveKeys> {
        let table = table_of(key)?;
        if self.live_tables.late_window_s(table) == 0 {
            return None;
        }
        let (header, unarchived_header) = match self.headers.contains(table) {
            true => {
                let header = key::header_of(key).ok()?;
                (Some(archive::archive_key(&header).ok()?), Some(header))
            }
            false => (None, None),
        };
        Some(ArchiveKeys {
            row: archive::archive_key(key).ok()?,
            header,
            unarchived_header,
        })
    }

    fn archives_of_origin(&self, key: &[u8], origin: &[u8]) -> Option<ArchiveKeys> {
        // If the origin had headers, the branch is in the set of tables with headers too.
        let has_headers = self.headers.contains(table_of(key)?);
        let header = has_headers.then(|| archive::archive_key(&key::header_of(origin).ok()?).ok());
        Some(ArchiveKeys {
            row: archive::archive_key(origin).ok()?,
            header: header.flatten(),
            unarchived_header: None,
        })
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
        archive::under_tombstones(&parts, operand, row, header, now_ms.div_euclid(1000)).map_err(damaged)
    }
}

impl SstableRules for RowHooks {
    fn compaction(&self, context: &CompactionContext) -> Box<dyn CompactFilter> {
        let newer = context.newer.clone();
        let context = compaction_filter::CompactionContext {
            forgets_headers: true,
            now_s: context.now_ms.div_euclid(1000),
            newer: Arc::new(move |table| newer(table.0)),
        };
        let live_tables = self.live_tables.clone();
        // A table that stops sharing its origin may have received rows since the compaction began. `newer` does not know these rows.
        let before = live_tables.known.load_full();
        let tables: TableStates = Box::new(move |table| {
            let had_origin =
                LiveTables::of(before.as_ref().as_ref(), table).is_some_and(|table| table.has_origin);
            live_tables.state(table, had_origin)
        });
        Box::new(RowFilter::new(context, tables))
    }

    fn partition_meter(&self) -> Option<Box<dyn PartitionMeter>> {
        self.partitions.meter()
    }
}

/// Returns the store's error for a key or a row that cannot be decoded.
fn damaged(error: impl std::fmt::Display) -> DataModelError {
    DataModelError(error.to_string())
}

/// Returns the table of a stored key, or of the beginning of one.
pub(crate) fn table_of(key: &[u8]) -> Option<TableId> {
    let number = key.first_chunk()?;
    Some(TableId(u32::from_be_bytes(*number)))
}

type TableStates = Box<dyn FnMut(TableId) -> TableState + Send + Sync>;
