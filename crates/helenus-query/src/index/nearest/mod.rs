//! Nearest-neighbour search: finds the rows whose vectors are nearest to a query vector, by means of posting lists.
//!
//! The lists are read in the order of their centroids' distances. The entries with the nearest packed vectors are followed to their rows,
//! which the statement filters and ranks by the rows' own vectors. The search ends when enough rows have passed. If one in
//! [`ENTRIES_TO_A_ROW`] entries has been followed and too few rows have passed, as many lists are read as before. So a filter that keeps
//! few rows widens the search.

mod candidates;
pub(crate) mod directories;
pub(crate) mod list_reader;
pub(crate) mod lists;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_row::key;
use helenus_row::read::LiveRow;

use self::candidates::{Candidate, Candidates, ListCandidates};
use self::lists::ListQuery;
use super::entries::decode_entry;
use super::posting_lists::directory::SearchOrder;
use super::posting_lists::hidden_rows::{list_partition, vector};
use super::posting_lists::packed_vector::{distance, pack};
use super::posting_lists::prepared;
use super::similarity::SimilarityFunction;
use super::stale_entry::{STALE_MAX, StaleEntries, StaleEntry};
use super::stale_removal;
use crate::analysis::restrictions::token::TokenBounds;
use crate::failure::ExecutionError;
use crate::limits::scope;
use crate::rows::{PartitionKey, RowAt, RowSelection, StoredRow};
use crate::schema::{Index, Table};
use crate::storage::row_reads::row_cursor::KnownRows;
use crate::storage::row_reads::{read_header, read_stored_row_under, read_stored_static};
use crate::storage::{ExecutionContext, key_reads};
use crate::trace;

/// Number of lists that are read first.
const LISTS_FIRST: usize = 16;
/// Number of lists that are read concurrently. In a cluster there are more, because each other node receives one request for all of its
/// lists.
const LISTS_AT_ONCE: usize = 8;
const LISTS_AT_ONCE_IN_CLUSTER: usize = 32;
/// Entries read for each one that is followed to its row, before more lists are read.
const ENTRIES_TO_A_ROW: usize = 12;
/// Maximum number of entries in memory. Beyond it, entries are followed before more lists are read.
const ENTRIES_MAX: usize = 200_000;
/// Additional rows that must pass, because packed vectors give only an approximate order.
const SPARE_ROWS: usize = 4;
/// Number of rows that are read together in a cluster.
const AHEAD: usize = 32;

/// An entry that is being followed to its row.
struct Followed {
    candidate: Candidate,
    base: PartitionKey,
    clustering: Bytes,
}

/// The query of a search.
pub(crate) struct NearestSearch {
    pub index: Arc<Index>,
    pub vector: Vec<f32>,
    /// Number of rows that the statement needs.
    pub limit: usize,
    pub bounds: TokenBounds,
    /// The rows of each partition that the statement selects.
    pub wanted: RowSelection,
}

/// A source of base rows, approximately in the order of their distances.
pub(crate) struct NearestSource {
    search: NearestSearch,
    measure: SimilarityFunction,
    /// The lists that are still to be read, in order. Those of a family are read one after another.
    lists: SearchOrder,
    lists_read: usize,
    /// Entries that were read but not followed.
    candidates: Candidates,
    entries_read: usize,
    followed: usize,
    /// Number of rows that have passed the filter.
    passed: usize,
    seen: HashSet<(Bytes, Bytes)>,
    /// Entries whose rows have been read ahead.
    ahead: VecDeque<Followed>,
    rows_ahead: KnownRows,
    current: Option<Followed>,
    /// True if the row of the current entry has been returned.
    is_given: bool,
    stale: HashMap<i64, Vec<StaleEntry>>,
}

impl NearestSource {
    pub async fn open(
        context: &ExecutionContext,
        mut search: NearestSearch,
    ) -> Result<NearestSource, ExecutionError> {
        let index = &search.index;
        trace::step(|| format!("Searching the posting lists of index {}", index.name));
        let directory = directories::current(context, index).await?;
        let measure = SimilarityFunction::of(index);
        search.vector = prepared(measure, search.vector);
        let lists = directory.search_order(measure, &search.vector);
        Ok(NearestSource {
            search,
            measure,
            lists,
            lists_read: 0,
            candidates: Candidates::default(),
            entries_read: 0,
            followed: 0,
            passed: 0,
            seen: HashSet::new(),
            ahead: VecDeque::new(),
            rows_ahead: KnownRows::new(),
            current: None,
            is_given: false,
            stale: HashMap::new(),
        })
    }

    /// Counts a returned row that has passed the filter.
    pub fn row_passed(&mut self) {
        self.passed += 1;
    }

    fn is_done(&self) -> bool {
        let limit = self.search.limit;
        self.passed >= limit + limit / 4 + SPARE_ROWS
    }

    /// Returns the partition of the next entry to follow. `None` if the search is over.
    pub async fn next_partition(
        &mut self,
        context: &ExecutionContext,
        table: &Table,
    ) -> Result<Option<PartitionKey>, ExecutionError> {
        if self.is_done() {
            return Ok(None);
        }
        if self.ahead.is_empty() {
            self.look_ahead(context, table).await?;
        }
        self.is_given = false;
        self.current = self.ahead.pop_front();
        Ok(self.current.as_ref().map(|followed| followed.base.clone()))
    }

    /// Takes the nearest entries that were not followed yet. In a cluster, it takes several and reads their rows together.
    async fn look_ahead(&mut self, context: &ExecutionContext, table: &Table) -> Result<(), ExecutionError> {
        let cluster = context.cluster();
        let count = cluster.map_or(1, |_| AHEAD);
        while self.ahead.len() < count {
            let may_follow = self.followed * ENTRIES_TO_A_ROW < self.entries_read
                || self.entries_read - self.followed.min(self.entries_read) > ENTRIES_MAX
                || self.lists.is_empty();
            if may_follow && let Some(candidate) = self.candidates.pop() {
                self.followed += 1;
                let (base, clustering) = decode_entry(&self.search.index, &candidate.entry)?;
                let is_wanted =
                    self.search.bounds.contains(base.token) && self.search.wanted.contains(&clustering);
                if is_wanted && !self.seen.contains(&(base.bytes.clone(), clustering.clone())) {
                    self.ahead.push_back(Followed {
                        candidate,
                        base,
                        clustering,
                    });
                }
            } else if self.lists.is_empty() {
                break;
            } else {
                self.read_lists(context).await?;
            }
        }
        let Some(cluster) = cluster else { return Ok(()) };
        let row_key = |Followed { base, clustering, .. }: &Followed| {
            let key = key::row_key(table.number, base.token, &base.bytes, clustering);
            (base.token, key)
        };
        let keys: Vec<(i64, Bytes)> = self.ahead.iter().map(row_key).collect();
        self.rows_ahead = key_reads::get_many(context, cluster.as_ref(), &keys).await;
        Ok(())
    }

    /// Reads more lists, as many as were read before.
    async fn read_lists(&mut self, context: &ExecutionContext) -> Result<(), ExecutionError> {
        let mut left = self.lists_read.max(LISTS_FIRST);
        let at_once = context
            .cluster()
            .map_or(LISTS_AT_ONCE, |_| LISTS_AT_ONCE_IN_CLUSTER);
        while left > 0 && !self.lists.is_empty() {
            let families: Vec<Vec<i64>> = self.lists.by_ref().take(left.min(at_once)).collect();
            let count: usize = families.iter().map(Vec::len).sum();
            self.lists_read += count;
            left = left.saturating_sub(count);
            let wanted = ListQuery {
                index: &self.search.index,
                measure: self.measure,
                vector: &self.search.vector,
            };
            let read = lists::search(context, wanted, families).await?;
            self.entries_read += read.iter().map(ListCandidates::len).sum::<usize>();
            self.candidates.add(read);
            scope::checkpoint().await?;
        }
        Ok(())
    }

    pub async fn static_row(
        &self,
        context: &ExecutionContext,
        table: &Table,
    ) -> Result<Option<StoredRow>, CqlError> {
        let Some(followed) = &self.current else {
            return Ok(None);
        };
        let header = read_header(context, table, &followed.base).await?;
        read_stored_static(context, table, &followed.base, header.as_ref()).await
    }

    /// Returns the row of the current entry, once. `None` if the row does not exist.
    pub async fn next_row(
        &mut self,
        context: &ExecutionContext,
        table: &Table,
    ) -> Result<Option<RowAt>, ExecutionError> {
        let Some(Followed { base, clustering, .. }) = &self.current else {
            return Ok(None);
        };
        if std::mem::replace(&mut self.is_given, true) {
            return Ok(None);
        }
        let clustering = clustering.clone();
        let header = read_header(context, table, base).await?;
        let key = key::row_key(table.number, base.token, &base.bytes, &clustering);
        let row = match self.rows_ahead.remove(&key) {
            None => read_stored_row_under(context, table, base, &clustering, header.as_ref()).await?,
            Some(found) => {
                let shadow = header.as_ref().and_then(|header| header.deletion_at(&clustering));
                found
                    .map(|packed| StoredRow::parse(packed, shadow, &table.cell_rules))
                    .transpose()?
            }
        };
        if row.is_none() {
            self.note_stale();
        }
        Ok(row.map(|row| RowAt { clustering, row }))
    }

    /// Returns true if the row has the vector of the current entry, and was not returned before.
    pub fn stands_for(&mut self, table: &Table, row: &LiveRow<'_>) -> bool {
        let Some(followed) = &self.current else {
            return false;
        };
        let vector = vector(table, &self.search.index, Some(row));
        let is_of_row = vector.is_some_and(|vector| {
            let distance = distance(self.measure, &self.search.vector, &pack(&vector));
            distance.is_some_and(|distance| distance.total_cmp(&followed.candidate.distance).is_eq())
        });
        match is_of_row {
            true => {
                let row = (followed.base.bytes.clone(), followed.clustering.clone());
                self.seen.insert(row)
            }
            false => {
                self.note_stale();
                false
            }
        }
    }

    /// Records that the current entry is stale.
    pub fn note_stale(&mut self) {
        let count: usize = self.stale.values().map(Vec::len).sum();
        if let Some(followed) = &self.current
            && count < STALE_MAX
        {
            self.stale
                .entry(followed.candidate.list)
                .or_default()
                .push(StaleEntry {
                    partition: followed.base.clone(),
                    clustering: followed.clustering.clone(),
                    written_us: followed.candidate.written_us,
                });
        }
    }

    /// Has the owners of the rows remove the stale entries.
    pub fn report(&mut self, context: &Arc<ExecutionContext>) {
        for (list, entries) in self.stale.drain() {
            stale_removal::report(
                context,
                StaleEntries {
                    index: self.search.index.table.number.0,
                    value: list_partition(list).bytes,
                    entries,
                },
            );
        }
    }
}
