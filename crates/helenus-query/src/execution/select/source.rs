//! Sources of the rows of a SELECT, partition by partition: given keys, a range of tokens, an index, or the nearest rows.

use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_row::key::row_key;

use crate::analysis::restrictions::token::TokenBounds;
use crate::analysis::select::paging::{EntryPosition, PagingState};
use crate::failure::ExecutionError;
use crate::index::nearest::NearestSource;
use crate::index::read::IndexSource;
use crate::rows::{PartitionKey, RowAt, RowCounts, RowSelection, StoredRow};
use crate::schema::Table;
use crate::storage::ExecutionContext;
use crate::storage::key_reads::get_many;
use crate::storage::row_reads::range_cursor::fitting::FittingRows;
use crate::storage::row_reads::row_cursor::KnownRows;
use crate::storage::row_reads::{RangeCursor, RowCursor, read_header, read_stored_static};
use crate::trace;

/// A source of a stored table's rows.
#[allow(clippy::large_enum_variant, reason = "one for a whole read")]
pub(crate) enum RowSource {
    Keys(KeySource),
    Range(RangeSource),
    Index(IndexSource),
    Nearest(NearestSource),
}

impl RowSource {
    /// Returns the next partition. The rest of the current one is skipped.
    pub async fn next_partition(
        &mut self,
        context: &ExecutionContext,
        table: &Table,
    ) -> Result<Option<PartitionKey>, ExecutionError> {
        match self {
            RowSource::Keys(source) => Ok(source.next_partition(context, table).await?),
            RowSource::Range(source) => Ok(source.next_partition(context, table).await?),
            RowSource::Index(source) => source.next_partition(context, table).await,
            RowSource::Nearest(source) => source.next_partition(context, table).await,
        }
    }

    /// Returns true if the current partition is the last of the named ones.
    pub fn is_at_last_key(&self) -> bool {
        match self {
            RowSource::Keys(source) => source.keys.len() == 0,
            RowSource::Range(_) | RowSource::Index(_) | RowSource::Nearest(_) => false,
        }
    }

    /// Returns true if the statement names each partition by its key and no index is read.
    pub fn is_of_named_keys(&self) -> bool {
        matches!(self, RowSource::Keys(_))
    }

    /// Returns true if partitions are read by their keys, and not as a range.
    pub fn is_of_keys(&self) -> bool {
        !matches!(self, RowSource::Range(_))
    }

    /// Returns the static row of the current partition.
    pub async fn static_row(
        &mut self,
        context: &ExecutionContext,
        table: &Table,
    ) -> Result<Option<StoredRow>, CqlError> {
        match self {
            RowSource::Keys(source) => source.static_row(context, table).await,
            RowSource::Range(source) => Ok(source.static_row.clone()),
            RowSource::Index(source) => source.static_row(context, table).await,
            RowSource::Nearest(source) => source.static_row(context, table).await,
        }
    }

    /// Returns the index entry of the last returned row. `None` unless rows have the order of entries.
    pub fn entry_position(&self) -> Option<EntryPosition> {
        match self {
            RowSource::Index(source) => source.position(),
            RowSource::Keys(_) | RowSource::Range(_) | RowSource::Nearest(_) => None,
        }
    }

    /// Returns the next row of the current partition, live or dead.
    pub async fn next_row(
        &mut self,
        context: &ExecutionContext,
        table: &Table,
    ) -> Result<Option<RowAt>, ExecutionError> {
        match self {
            RowSource::Keys(source) => match &mut source.rows {
                Some(rows) => rows.next(context).await,
                None => Ok(None),
            },
            RowSource::Range(source) => Ok(source.next_row(context).await?),
            RowSource::Index(source) => source.next_row(context, table).await,
            RowSource::Nearest(source) => source.next_row(context, table).await,
        }
    }

    /// Returns the counts of the rows that were skipped without being returned since the last call. `None` if the source skips no rows.
    pub fn take_skipped(&mut self) -> Option<RowCounts> {
        match self {
            RowSource::Range(source) => source.fitting.as_mut().map(|rows| rows.take_skipped()),
            RowSource::Keys(_) | RowSource::Index(_) | RowSource::Nearest(_) => None,
        }
    }

    /// Returns true as long as [`RowSource::mark_dead`] has an effect.
    pub fn is_at_dead_front(&self) -> bool {
        match self {
            RowSource::Keys(source) => source.rows.as_ref().is_some_and(RowCursor::is_at_dead_front),
            RowSource::Range(_) | RowSource::Index(_) | RowSource::Nearest(_) => false,
        }
    }

    /// Records that the last returned row is dead, so that its index entry is stale.
    pub fn row_is_dead(&mut self) {
        match self {
            RowSource::Index(source) => source.row_is_dead(),
            RowSource::Nearest(source) => source.note_stale(),
            RowSource::Keys(_) | RowSource::Range(_) => {}
        }
    }

    /// Has stale index entries removed.
    pub fn report(&mut self, context: &Arc<ExecutionContext>) {
        match self {
            RowSource::Index(source) => source.report(context),
            RowSource::Nearest(source) => source.report(context),
            RowSource::Keys(_) | RowSource::Range(_) => {}
        }
    }

    /// Marks the last returned row as dead, whatever the time.
    pub fn mark_dead(&mut self) {
        match self {
            RowSource::Keys(source) => {
                if let Some(rows) = &mut source.rows {
                    rows.mark_dead();
                }
            }
            RowSource::Range(_) | RowSource::Index(_) | RowSource::Nearest(_) => {}
        }
    }
}

/// A source of partitions by key, in the given order.
pub(crate) struct KeySource {
    keys: std::vec::IntoIter<PartitionKey>,
    wanted: RowSelection,
    reversed: bool,
    resume: Option<PagingState>,
    current: Option<PartitionKey>,
    rows: Option<RowCursor>,
    /// Rows of the next partitions that were read ahead in a cluster. Below are the number of these partitions, and the number to read
    /// ahead next time.
    known: Option<Arc<KnownRows>>,
    known_partitions: usize,
    read_ahead: usize,
}

/// Number of partitions whose rows are read together in a cluster: at first, and in the next constant at most. It starts small, because a
/// statement may need few rows.
const READ_AHEAD_MIN: usize = 4;
const READ_AHEAD_MAX: usize = 128;
/// Maximum number of rows that are read together.
const ROWS_AHEAD_MAX: usize = 512;

impl KeySource {
    pub fn new(
        mut keys: Vec<PartitionKey>,
        wanted: RowSelection,
        reversed: bool,
        resume: Option<&PagingState>,
    ) -> KeySource {
        if let Some(state) = resume {
            let place = keys
                .iter()
                .position(|key| key.bytes == state.partition_key)
                .unwrap_or(keys.len());
            let is_done = usize::from(state.clustering.is_none());
            keys.drain(..(place + is_done).min(keys.len()));
        }
        KeySource {
            keys: keys.into_iter(),
            wanted,
            reversed,
            resume: resume.filter(|state| state.clustering.is_some()).cloned(),
            current: None,
            rows: None,
            known: None,
            known_partitions: 0,
            read_ahead: READ_AHEAD_MIN,
        }
    }

    /// Reads the rows of the next partitions together, in a cluster. `key` is the first partition.
    async fn read_ahead(&mut self, context: &ExecutionContext, table: &Table, key: &PartitionKey) {
        if let Some(left) = self.known_partitions.checked_sub(1) {
            self.known_partitions = left;
            return;
        }
        let (Some(cluster), RowSelection::Names(names)) = (context.cluster(), &self.wanted) else {
            return;
        };
        if self.keys.len() == 0 || self.resume.is_some() || context.hooks.headers.contains(table.number) {
            return;
        }
        let count = self.read_ahead.min(ROWS_AHEAD_MAX / names.len().max(1)).max(1);
        let next = std::iter::once(key).chain(self.keys.as_slice()).take(count);
        let row = |key: &PartitionKey, name: &Bytes| {
            let row = row_key(table.number, key.token, &key.bytes, name);
            (key.token, row)
        };
        let rows: Vec<(i64, Bytes)> = next
            .flat_map(|key| names.iter().map(move |name| row(key, name)))
            .collect();
        self.known = Some(Arc::new(get_many(context, cluster.as_ref(), &rows).await));
        self.known_partitions = count - 1;
        self.read_ahead = (2 * count).min(READ_AHEAD_MAX);
    }

    async fn next_partition(
        &mut self,
        context: &ExecutionContext,
        table: &Table,
    ) -> Result<Option<PartitionKey>, CqlError> {
        let Some(key) = self.keys.next() else {
            return Ok(None);
        };
        let wanted = match self.resume.take().and_then(|state| state.clustering) {
            Some(clustering) => self.wanted.after(&clustering, self.reversed),
            None => self.wanted.clone(),
        };
        trace::step(|| format!("Executing single-partition query on {}", table.name));
        let header = read_header(context, table, &key).await?;
        self.read_ahead(context, table, &key).await;
        let rows = RowCursor::new(table, key.clone(), header, wanted, self.reversed);
        self.rows = Some(rows.with_known(self.known.clone()));
        self.current = Some(key.clone());
        Ok(Some(key))
    }

    async fn static_row(
        &mut self,
        context: &ExecutionContext,
        table: &Table,
    ) -> Result<Option<StoredRow>, CqlError> {
        let (Some(key), Some(rows)) = (&self.current, &self.rows) else {
            return Ok(None);
        };
        read_stored_static(context, table, key, rows.header()).await
    }
}

/// A source of the partitions of a range of tokens.
pub(crate) struct RangeSource {
    bounds: TokenBounds,
    wanted: RowSelection,
    cursor: RangeCursor,
    static_row: Option<StoredRow>,
    /// The filter by which rows are skipped. `None` if every row is returned.
    fitting: Option<Box<FittingRows>>,
}

impl RangeSource {
    pub fn new(
        table: &Table,
        bounds: TokenBounds,
        wanted: RowSelection,
        resume: Option<&PagingState>,
    ) -> RangeSource {
        trace::step(|| format!("Executing seq scan on {}", table.name));
        let mut cursor = RangeCursor::new(table, bounds.start, bounds.end, wanted.clone());
        if let Some(state) = resume {
            let key = PartitionKey::new(state.partition_key.clone());
            match &state.clustering {
                Some(clustering) => cursor.resume_in(key, clustering.clone()),
                None => cursor.skip_past(&key),
            }
        }
        RangeSource {
            bounds,
            wanted,
            cursor,
            static_row: None,
            fitting: None,
        }
    }

    /// Returns only rows that may be part of the result. Called before the first partition is read.
    pub fn skip_others(&mut self, fitting: Option<FittingRows>) {
        self.fitting = fitting.map(Box::new);
    }

    /// Returns the tokens, and the rows of each partition, that this source returns.
    pub fn requested(&self) -> (TokenBounds, &RowSelection) {
        (self.bounds, &self.wanted)
    }

    async fn next_partition(
        &mut self,
        context: &ExecutionContext,
        table: &Table,
    ) -> Result<Option<PartitionKey>, CqlError> {
        let found = match &mut self.fitting {
            Some(rows) => self.cursor.next_fitting_partition(context, rows).await?,
            None => self.cursor.next_partition(context, table).await?,
        };
        Ok(found.map(|found| {
            self.static_row = found.static_row;
            found.key
        }))
    }

    async fn next_row(&mut self, context: &ExecutionContext) -> Result<Option<RowAt>, CqlError> {
        match &mut self.fitting {
            Some(rows) => self.cursor.next_fitting_row(context, rows).await,
            None => self.cursor.next_row(context).await,
        }
    }
}
