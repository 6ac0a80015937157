//! What the store asks about rows: how they merge, and what a compaction may forget.

use std::collections::HashSet;
use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;
use helenus_row::compact::{self, RowFilter, TableState};
use helenus_row::{TableId, key, merge};
use helenus_tablet::{CompactFilter, CompactionContext, Decision, HookError, Hooks};

/// Tombstones are kept this long at the last run, so that a write that is still under way with an older timestamp
/// stays deleted.
const PURGE_GRACE_S: i64 = 10;

/// The ids of the tables that exist; rows of any other are swept by compaction. Empty until the schema is read,
/// and then nothing is swept.
#[derive(Debug, Default)]
pub struct LiveTables {
    tables: ArcSwap<Option<HashSet<TableId>>>,
}

impl LiveTables {
    /// Replaces the set.
    pub fn set(&self, tables: HashSet<TableId>) {
        self.tables.store(Arc::new(Some(tables)));
    }

    fn state(&self, table: TableId) -> TableState {
        match self.tables.load().as_ref() {
            Some(tables) if !tables.contains(&table) => TableState::Gone,
            _ => TableState::Live {
                purge_grace_s: PURGE_GRACE_S,
                dropped_columns: Arc::default(),
            },
        }
    }
}

/// The data model, plugged into the store.
#[derive(Debug)]
pub struct RowHooks {
    pub live_tables: Arc<LiveTables>,
}

impl Hooks for RowHooks {
    fn merge(&self, key: &[u8], existing: Option<&Bytes>, operands: &[Bytes]) -> Result<Bytes, HookError> {
        let kind = key::key_kind(key).map_err(|error| HookError(error.to_string()))?;
        merge::merge(kind, existing, operands).map_err(|error| HookError(error.to_string()))
    }

    fn partition_prefix_len(&self, key: &[u8], _complete: bool) -> Option<usize> {
        key::partition_prefix_len(key)
    }

    fn compaction(&self, context: &CompactionContext) -> Box<dyn CompactFilter> {
        let context = compact::CompactionContext {
            is_last_run: context.is_last_run,
            forgets_headers: false,
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
    fn entry(&mut self, key: &[u8], value: &Bytes) -> Result<Decision, HookError> {
        let decision = self
            .rows
            .filter(key, value)
            .map_err(|error| HookError(error.to_string()))?;
        Ok(match decision {
            compact::Decision::Keep => Decision::Keep,
            compact::Decision::Drop => Decision::Drop,
            compact::Decision::Replace(bytes) => Decision::Replace(bytes),
        })
    }
}
