//! What the store asks about rows: how they merge, and what a compaction may forget.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;
use helenus_row::compact::{self, RowFilter, TableState};
use helenus_row::{ByteRange, CellRules, KeyKind, TableId, key, merge};
use helenus_tablet::{Below, CompactFilter, CompactionContext, Decision, HookError, Hooks, Verdict};

use super::HeaderTables;
use crate::schema::Schema;

/// Tombstones are kept this long whatever is below, so that a write that is still under way with an older timestamp
/// stays deleted.
const PURGE_GRACE_S: i64 = 10;

/// The tables that exist, each with what it says of its cells: compaction sweeps the rows of any other
/// table and the cells of those columns. Unknown until the schema is read, and then nothing is swept.
#[derive(Debug, Default)]
pub struct LiveTables {
    known: ArcSwap<Option<Known>>,
}

#[derive(Debug)]
struct Known {
    tables: HashMap<TableId, CellRules>,
    /// The hidden tables of indexes.
    indexes: HashSet<TableId>,
    /// Tables of this number and above are made by schemas that are newer than the one known.
    next_number: u32,
}

impl LiveTables {
    /// Replaces the set by the tables of a schema and the hidden tables of their indexes.
    pub fn set(&self, schema: &Schema) {
        let tables = schema
            .stored_tables()
            .flat_map(|table| table.indexes.iter().map(|index| &index.table).chain([table]))
            .map(|table| (table.number, table.purgeable_cells()))
            .collect();
        let indexes = schema.stored_tables().flat_map(|table| &table.indexes);
        let indexes = indexes.map(|index| index.table.number).collect();
        self.known.store(Arc::new(Some(Known {
            tables,
            indexes,
            next_number: schema.next_table_number,
        })));
    }

    fn is_index(&self, table: TableId) -> bool {
        let known = self.known.load();
        known
            .as_ref()
            .as_ref()
            .is_some_and(|known| known.indexes.contains(&table))
    }

    fn state(&self, table: TableId) -> TableState {
        let live = |rules| TableState::Live {
            purge_grace_s: PURGE_GRACE_S,
            rules,
        };
        match self.known.load().as_ref() {
            Some(known) if table.0 < known.next_number => {
                known.tables.get(&table).cloned().map_or(TableState::Gone, live)
            }
            _ => live(CellRules::default()),
        }
    }
}

/// The data model, plugged into the store.
#[derive(Debug)]
pub struct RowHooks {
    pub live_tables: Arc<LiveTables>,
    pub headers: Arc<HeaderTables>,
}

impl RowHooks {
    /// For tools that read a store without its schema: rows merge, and compactions sweep no table.
    pub fn without_schema() -> Arc<RowHooks> {
        Arc::new(RowHooks {
            live_tables: Arc::default(),
            headers: Arc::default(),
        })
    }
}

impl Hooks for RowHooks {
    fn merge(&self, key: &[u8], existing: Option<&Bytes>, operands: &[Bytes]) -> Result<Bytes, HookError> {
        let kind = key::key_kind(key).map_err(|error| HookError(error.to_string()))?;
        merge::merge(kind, existing, operands).map_err(|error| HookError(error.to_string()))
    }

    fn may_copy(&self, key: &[u8]) -> bool {
        key.first_chunk()
            .is_none_or(|table| !self.headers.contains(TableId(u32::from_be_bytes(*table))))
    }

    fn keeps_partition(&self, key: &[u8]) -> bool {
        key.first_chunk()
            .is_some_and(|table| self.live_tables.is_index(TableId(u32::from_be_bytes(*table))))
    }

    fn token_of(&self, key: &[u8]) -> Option<i64> {
        key::token_of(key)
    }

    fn partition_prefix_len(&self, key: &[u8], _complete: bool) -> Option<usize> {
        key::partition_prefix_len(key)
    }

    fn compaction(&self, context: &CompactionContext) -> Box<dyn CompactFilter> {
        let context = compact::CompactionContext {
            forgets_headers: true,
            now_s: context.now_ms.div_euclid(1000),
        };
        let live_tables = self.live_tables.clone();
        let tables: TableStates = Box::new(move |table| live_tables.state(table));
        Box::new(Filter {
            rows: RowFilter::new(context, tables),
        })
    }
}

type TableStates = Box<dyn FnMut(TableId) -> TableState + Send + Sync>;

struct Filter {
    rows: RowFilter<TableStates>,
}

impl CompactFilter for Filter {
    fn needs(&self, key: &[u8]) -> Option<Bytes> {
        self.rows.needs_header(key)
    }

    fn provide(&mut self, key: &Bytes, row: Option<&Bytes>) -> Result<(), HookError> {
        self.rows
            .set_header(key, row.map(|row| row.as_ref()))
            .map_err(|error| HookError(error.to_string()))
    }

    fn entry(&mut self, key: &[u8], value: &Bytes, below: Below) -> Result<Verdict, HookError> {
        let below = match below {
            Below::Nothing => compact::Below::Nothing,
            Below::Hidden => compact::Below::Hidden,
            Below::Something => compact::Below::Something,
        };
        let verdict = self
            .rows
            .filter(key, value, below)
            .map_err(|error| HookError(error.to_string()))?;
        Ok(Verdict {
            decision: match verdict.decision {
                compact::Decision::Keep => Decision::Keep,
                compact::Decision::Drop => Decision::Drop,
                compact::Decision::Replace(bytes) => Decision::Replace(bytes),
            },
            waits: verdict.waits,
            is_dead: verdict.is_dead,
        })
    }

    fn covers(&self, key: &Bytes) -> Option<(Bytes, Option<Bytes>)> {
        let parts = key::split_key(key).ok()?;
        let prefix = (parts.kind == KeyKind::Header).then(|| key.slice_ref(parts.partition_prefix))?;
        let range = ByteRange::with_prefix(&prefix);
        Some((prefix, range.end))
    }
}
