//! Reads through an index. Its entries for a value, or for a range of values, lead to base rows, each of which is read and checked.

pub(crate) mod entry_cursor;
pub(crate) mod in_order;
pub(crate) mod positions;
pub(crate) mod probe;
pub(crate) mod stale_detection;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_row::header::PartitionHeader;
use helenus_row::key;

use self::entry_cursor::{Entry, EntryStream};
use self::probe::{Chosen, IndexRead, RowOrder};
use super::entries::is_by_partition;
use super::stale_entry::StaleEntry;
use crate::analysis::select::paging::{EntryPosition, PagingState, mark};
use crate::failure::ExecutionError;
use crate::limits::scope;
use crate::rows::{PartitionKey, RowAt, RowSelection, StoredRow};
use crate::schema::{Index, Table};
use crate::storage::row_reads::{RowCursor, read_header, read_stored_row_under, read_stored_static};
use crate::storage::{ExecutionContext, key_reads};
use crate::trace;

/// Number of entries that are read ahead in a cluster: at first, and in the next constant at most.
const AHEAD_MIN: usize = 8;
const AHEAD_MAX: usize = 128;

/// A source of base rows that an index finds.
pub(crate) struct IndexSource {
    index: Arc<Index>,
    is_by_partition: bool,
    entries: EntryStream,
    order: RowOrder,
    wanted: RowSelection,
    resume: Option<PagingState>,
    /// Entries that were read ahead, and below the number of entries to read next and the base rows that were read with them.
    ahead: VecDeque<Entry>,
    ahead_count: usize,
    rows_ahead: HashMap<Bytes, Option<Bytes>>,
    /// The next entry, which was read while looking for the end of the current partition.
    pending: Option<Entry>,
    current: Option<PartitionKey>,
    /// The partition's entry if entries are by partition, or that of the last returned row.
    given: Option<Entry>,
    /// Stale entries, with their values.
    stale: Vec<(Bytes, StaleEntry)>,
    header: Option<PartitionHeader>,
    /// Rows of the current partition, if entries are by partition.
    rows: Option<RowCursor>,
}

impl IndexSource {
    /// Returns the rows of the read by one of its indexes. `None` if no index is worth using.
    pub async fn open(
        context: &ExecutionContext,
        table: &Table,
        read: &IndexRead<'_>,
        wanted: RowSelection,
    ) -> Result<Option<IndexSource>, ExecutionError> {
        let chosen = read.choose(context, table).await?;
        Ok(chosen.map(|chosen| IndexSource::of(table, read, chosen, wanted)))
    }

    /// Returns the rows of the read by one of its indexes if that finds few rows. `None` otherwise.
    pub async fn open_few(
        context: &ExecutionContext,
        table: &Table,
        read: &IndexRead<'_>,
        wanted: RowSelection,
    ) -> Result<Option<IndexSource>, ExecutionError> {
        let chosen = read.choose_few(context, table).await?;
        Ok(chosen.map(|chosen| IndexSource::of(table, read, chosen, wanted)))
    }

    fn of(table: &Table, read: &IndexRead<'_>, chosen: Chosen<'_>, wanted: RowSelection) -> IndexSource {
        let Chosen {
            lookup,
            entries,
            order,
        } = chosen;
        IndexSource::new(table, &lookup.index, entries, order, read.resume, wanted)
    }

    fn new(
        table: &Table,
        index: &Arc<Index>,
        entries: EntryStream,
        order: RowOrder,
        resume: Option<&PagingState>,
        wanted: RowSelection,
    ) -> IndexSource {
        trace::step(|| {
            format!(
                "Executing read on {} using index {}",
                table.full_name(),
                index.name
            )
        });
        let resume = resume.filter(|state| state.clustering.is_some());
        IndexSource {
            is_by_partition: is_by_partition(index, table),
            index: index.clone(),
            entries,
            order,
            wanted,
            resume: resume.cloned(),
            ahead: VecDeque::new(),
            ahead_count: AHEAD_MIN,
            rows_ahead: HashMap::new(),
            pending: None,
            current: None,
            given: None,
            stale: Vec::new(),
            header: None,
            rows: None,
        }
    }

    /// Returns the position of the last returned row's entry. `None` unless rows have the order of values.
    pub fn position(&self) -> Option<EntryPosition> {
        let entry = self.given.as_ref().filter(|_| self.order == RowOrder::Values)?;
        Some(EntryPosition {
            index: mark(self.index.table.id),
            value: entry.value.clone(),
        })
    }

    async fn next_entry(
        &mut self,
        context: &ExecutionContext,
        table: &Table,
    ) -> Result<Option<Entry>, ExecutionError> {
        if let Some(entry) = self.pending.take() {
            return Ok(Some(entry));
        }
        if self.ahead.is_empty() {
            self.look_ahead(context, table).await?;
        }
        Ok(self.ahead.pop_front())
    }

    /// Reads the next entries. In a cluster, where base rows may be on other nodes, several entries are read, and then their rows together.
    async fn look_ahead(&mut self, context: &ExecutionContext, table: &Table) -> Result<(), ExecutionError> {
        let cluster = context.cluster().filter(|_| !self.is_by_partition);
        let count = cluster.map_or(1, |_| self.ahead_count);
        while self.ahead.len() < count
            && let Some(entry) = self.entries.next(context).await?
        {
            self.ahead.push_back(entry);
        }
        self.ahead_count = (self.ahead_count * 2).min(AHEAD_MAX);
        let Some(cluster) = cluster else { return Ok(()) };
        let row_key = |Entry { base, clustering, .. }: &Entry| {
            let key = key::row_key(table.number, base.token, &base.bytes, clustering);
            (base.token, key)
        };
        let keys: Vec<(i64, Bytes)> = self.ahead.iter().map(row_key).collect();
        self.rows_ahead = key_reads::get_many(context, cluster.as_ref(), &keys).await;
        Ok(())
    }

    /// Returns the base row of an entry. `None` if it does not exist.
    async fn base_row(
        &mut self,
        context: &ExecutionContext,
        table: &Table,
        base: &PartitionKey,
        clustering: &[u8],
    ) -> Result<Option<StoredRow>, CqlError> {
        let header = self.header.as_ref();
        if self.rows_ahead.is_empty() {
            return read_stored_row_under(context, table, base, clustering, header).await;
        }
        let key = key::row_key(table.number, base.token, &base.bytes, clustering);
        let Some(found) = self.rows_ahead.remove(&key) else {
            return read_stored_row_under(context, table, base, clustering, header).await;
        };
        let shadow = header.and_then(|header| header.deletion_at(clustering));
        found
            .map(|packed| StoredRow::parse(packed, shadow, &table.cell_rules))
            .transpose()
    }

    pub async fn next_partition(
        &mut self,
        context: &ExecutionContext,
        table: &Table,
    ) -> Result<Option<PartitionKey>, ExecutionError> {
        // A later entry of the same partition, with another value, may be the one that is not stale.
        let is_each_apart = self.is_by_partition && self.order == RowOrder::Values;
        let left = self.current.take().filter(|_| !is_each_apart);
        let entry = loop {
            match self.next_entry(context, table).await? {
                Some(entry) if left.as_ref() == Some(&entry.base) => scope::checkpoint().await?,
                Some(entry) => break entry,
                None => return Ok(None),
            }
        };
        let key = entry.base.clone();
        self.header = read_header(context, table, &key).await?;
        self.current = Some(key.clone());
        if self.is_by_partition {
            let resumed = self
                .resume
                .take()
                .filter(|state| state.partition_key == key.bytes);
            let wanted = match resumed.and_then(|state| state.clustering) {
                Some(clustering) => self.wanted.after(&clustering, false),
                None => self.wanted.clone(),
            };
            self.rows = Some(RowCursor::new(
                table,
                key.clone(),
                self.header.clone(),
                wanted,
                false,
            ));
            self.given = Some(entry);
        } else {
            self.pending = Some(entry);
        }
        Ok(Some(key))
    }

    pub async fn static_row(
        &mut self,
        context: &ExecutionContext,
        table: &Table,
    ) -> Result<Option<StoredRow>, CqlError> {
        let Some(key) = &self.current else { return Ok(None) };
        read_stored_static(context, table, key, self.header.as_ref()).await
    }

    pub async fn next_row(
        &mut self,
        context: &ExecutionContext,
        table: &Table,
    ) -> Result<Option<RowAt>, ExecutionError> {
        if let Some(rows) = &mut self.rows {
            return rows.next(context).await;
        }
        let Some(current) = self.current.clone() else {
            return Ok(None);
        };
        while let Some(entry) = self.next_entry(context, table).await? {
            if entry.base != current {
                self.pending = Some(entry);
                return Ok(None);
            }
            let is_static = entry.clustering.is_empty() && table.clustering_count > 0;
            if is_static || !self.wanted.contains(&entry.clustering) {
                scope::checkpoint().await?;
                continue;
            }
            let row = self
                .base_row(context, table, &entry.base, &entry.clustering)
                .await?;
            let clustering = entry.clustering.clone();
            self.given = Some(entry);
            match row {
                Some(row) => return Ok(Some(RowAt { clustering, row })),
                None => self.note_stale(),
            }
        }
        Ok(None)
    }
}
