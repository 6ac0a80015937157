//! Choice among several indexes for a read, and the order of its rows.
//!
//! The entries of all usable indexes are read concurrently. The index whose entries end first finds the fewest rows. It is chosen, and its
//! entries are used. The filter checks the other restrictions.
//!
//! A scan returns rows in the order of the table, and so do the entries of one value. The entries of a range of values have the order of
//! the values. If they are few, they are sorted by their rows, and the result is the same as that of a scan, page by page. If they are
//! many, rows are returned in the order of the values, and the paging state contains the last entry of the page. But if the statement needs
//! the order of the table, the table is scanned.

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_row::{ByteRange, key};

use super::entry_cursor::{Entry, EntryCursor, EntryStream};
use super::positions::{BaseRange, entry_slices, rest_of_entries, rest_start};
use crate::analysis::restrictions::token::TokenBounds;
use crate::analysis::select::limits::NO_LIMIT;
use crate::analysis::select::paging::{EntryPosition, PagingState, invalid, mark};
use crate::failure::ExecutionError;
use crate::index::entries::{entry_key, is_by_partition};
use crate::index::lookup::{EntrySelection, IndexLookup};
use crate::index::value_range::ValueRange;
use crate::limits::scope;
use crate::rows::PartitionKey;
use crate::schema::{Index, Table};
use crate::storage::ExecutionContext;

/// Minimum and maximum number of entries of each index that are read before one is chosen. In between, the number is the LIMIT. The page
/// size has no influence, so that the result does not depend on it.
const PROBED_MIN: usize = 128;
const PROBED_MAX: usize = 2_048;
/// Number of entries that are read before a choice if rows must have the order of the table. Otherwise the table would be scanned.
const PROBED_IN_TABLE_ORDER: usize = 10_000;
/// Number of entries that are read before a choice for later pages. It is larger, so that they keep the order of the first page, whatever
/// was written meanwhile.
const PROBED_RESUMED: usize = 2 * PROBED_IN_TABLE_ORDER;
/// Maximum bytes of the entries that are read before a choice.
const PROBED_BYTES_MAX: usize = 4 << 20;
/// Entries between two checkpoints.
const CHECKPOINT_ENTRIES: usize = 64;

/// Properties of the statement that determine how many entries are read before a choice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProbeLimits {
    /// Maximum number of rows of all pages.
    pub rows_max: u32,
    /// True if rows must have the order of the table.
    pub needs_table_order: bool,
}

impl Default for ProbeLimits {
    fn default() -> ProbeLimits {
        ProbeLimits {
            rows_max: NO_LIMIT,
            needs_table_order: true,
        }
    }
}

/// A read by one of several indexes.
pub(crate) struct IndexRead<'a> {
    /// The possible lookups. Those of single values come first.
    pub lookups: &'a [IndexLookup],
    pub range: BaseRange<'a>,
    pub now_s: i64,
    pub resume: Option<&'a PagingState>,
    pub limits: ProbeLimits,
}

/// The order in which an index read returns rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowOrder {
    Table,
    Values,
}

/// The chosen index and its entries.
pub(super) struct Chosen<'a> {
    pub lookup: &'a IndexLookup,
    pub entries: EntryStream,
    pub order: RowOrder,
}

/// An index whose entries are being read before the choice.
struct Probe<'a> {
    lookup: &'a IndexLookup,
    cursor: EntryCursor,
    read: Vec<Entry>,
}

impl<'a> Probe<'a> {
    fn chosen(self, order: RowOrder) -> Chosen<'a> {
        Chosen {
            lookup: self.lookup,
            entries: EntryStream::new(self.read, Some(self.cursor)),
            order,
        }
    }
}

impl<'a> IndexRead<'a> {
    /// Returns the chosen index. `None` if the table must be scanned.
    pub(super) async fn choose(
        &self,
        context: &ExecutionContext,
        table: &Table,
    ) -> Result<Option<Chosen<'a>>, ExecutionError> {
        if let Some(state) = self.resume
            && let Some(entry) = &state.entry
        {
            return self.go_on(table, state, entry).map(Some).map_err(Into::into);
        }
        let probe = |lookup| self.probe(table, lookup);
        let mut probes = self.lookups.iter().map(probe).collect::<Result<Vec<_>, _>>()?;
        if let [alone] = probes.as_slice()
            && !alone.lookup.is_range()
        {
            return Ok(probes.pop().map(|probe| probe.chosen(RowOrder::Table)));
        }
        let count_max = self.probed_max();
        if let Some(least) = self.first_to_end(context, &mut probes, count_max).await? {
            return Ok(Some(self.ended(table, probes.swap_remove(least))));
        }
        // Lookups of single values are preferred, and come first.
        let first = probes.into_iter().next();
        Ok(first.and_then(|probe| match probe.lookup.is_range() {
            false => Some(probe.chosen(RowOrder::Table)),
            true => self.may_order_by_value().then(|| probe.chosen(RowOrder::Values)),
        }))
    }

    /// Returns the index with the fewest entries. `None` if all have many.
    pub(super) async fn choose_few(
        &self,
        context: &ExecutionContext,
        table: &Table,
    ) -> Result<Option<Chosen<'a>>, ExecutionError> {
        let probe = |lookup| self.probe(table, lookup);
        let mut probes = self.lookups.iter().map(probe).collect::<Result<Vec<_>, _>>()?;
        let least = self.first_to_end(context, &mut probes, PROBED_MAX).await?;
        Ok(least.map(|least| self.ended(table, probes.swap_remove(least))))
    }

    /// Returns the choice of an index all of whose entries have been read.
    fn ended(&self, table: &Table, mut probe: Probe<'a>) -> Chosen<'a> {
        if probe.lookup.is_range() {
            self.sort(table, &mut probe);
        }
        Chosen {
            lookup: probe.lookup,
            entries: EntryStream::new(probe.read, None),
            order: RowOrder::Table,
        }
    }

    fn probed_max(&self) -> usize {
        match self.resume {
            Some(_) => PROBED_RESUMED,
            None if self.may_order_by_value() => {
                (self.limits.rows_max as usize).clamp(PROBED_MIN, PROBED_MAX)
            }
            None => PROBED_IN_TABLE_ORDER,
        }
    }

    fn may_order_by_value(&self) -> bool {
        let is_whole_table = matches!(self.range, BaseRange::Tokens(bounds) if bounds == TokenBounds::ALL);
        is_whole_table && self.resume.is_none() && !self.limits.needs_table_order
    }

    fn probe(&self, table: &Table, lookup: &'a IndexLookup) -> Result<Probe<'a>, CqlError> {
        let index = &lookup.index;
        let cursor = match &lookup.entries {
            EntrySelection::Value(value) => {
                let mut slices = entry_slices(index, self.range)?;
                if let Some(state) = self.resume {
                    slices = rest_of_entries(table, index, is_by_partition(index, table), &slices, state)?;
                }
                EntryCursor::of_value(index.clone(), value.clone(), slices, self.now_s)
            }
            EntrySelection::Range(range) => {
                EntryCursor::of_range(index.clone(), range.keys(index), self.now_s)
            }
        };
        Ok(Probe {
            lookup,
            cursor,
            read: Vec::new(),
        })
    }

    /// Reads the entries of all indexes concurrently. Returns the position of the index whose entries end first. `None` if there are too
    /// many entries.
    async fn first_to_end(
        &self,
        context: &ExecutionContext,
        probes: &mut [Probe<'_>],
        count_max: usize,
    ) -> Result<Option<usize>, ExecutionError> {
        let mut bytes = 0;
        if probes.is_empty() {
            return Ok(None);
        }
        for count in 0..=count_max {
            if count % CHECKPOINT_ENTRIES == CHECKPOINT_ENTRIES - 1 {
                scope::checkpoint().await?;
            }
            for (place, probe) in probes.iter_mut().enumerate() {
                let Some(entry) = probe.cursor.next(context).await? else {
                    return Ok(Some(place));
                };
                bytes += entry.len();
                probe.read.push(entry);
            }
            if bytes > PROBED_BYTES_MAX {
                break;
            }
        }
        Ok(None)
    }

    /// Keeps one entry for each row of the base range after the last page, in the order of the table.
    fn sort(&self, table: &Table, probe: &mut Probe<'_>) {
        if let BaseRange::Tokens(bounds) = self.range {
            probe.read.retain(|entry| bounds.contains(entry.base.token));
        }
        if let Some(state) = self.resume {
            let key = PartitionKey::new(state.partition_key.clone());
            let by_partition = is_by_partition(&probe.lookup.index, table);
            probe.read.retain(|entry| {
                let partition = (entry.base.token, &entry.base.bytes).cmp(&(key.token, &key.bytes));
                match &state.clustering {
                    None => partition.is_gt(),
                    Some(_) if by_partition => partition.is_ge(),
                    Some(last) => partition.then_with(|| entry.clustering.cmp(last)).is_gt(),
                }
            });
        }
        // The newest entry of a row is kept if the row has changed its value meanwhile.
        let newest_first = |entry: &Entry| std::cmp::Reverse(entry.written_us);
        probe.read.sort_by(|a, b| {
            a.row()
                .cmp(&b.row())
                .then_with(|| newest_first(a).cmp(&newest_first(b)))
        });
        probe.read.dedup_by(|next, kept| next.row() == kept.row());
    }

    /// Continues in the order of values, after the entry with which the last page ended.
    fn go_on(
        &self,
        table: &Table,
        state: &PagingState,
        entry: &EntryPosition,
    ) -> Result<Chosen<'a>, CqlError> {
        let of_entry = |lookup: &&IndexLookup| match &lookup.entries {
            EntrySelection::Range(range) => {
                mark(lookup.index.table.id) == entry.index && range.contains(&entry.value)
            }
            EntrySelection::Value(_) => false,
        };
        let lookup = self.lookups.iter().find(of_entry).ok_or_else(invalid)?;
        let (EntrySelection::Range(range), BaseRange::Tokens(_)) = (&lookup.entries, self.range) else {
            return Err(invalid());
        };
        let keys = rest_of_range(table, &lookup.index, range, state, &entry.value)?;
        let cursor = EntryCursor::of_range(lookup.index.clone(), keys, self.now_s);
        Ok(Chosen {
            lookup,
            entries: EntryStream::new(Vec::new(), Some(cursor)),
            order: RowOrder::Values,
        })
    }
}

/// Returns the keys of a range after the entry of the last page's last row.
pub(super) fn rest_of_range(
    table: &Table,
    index: &Index,
    range: &ValueRange,
    state: &PagingState,
    value: &Bytes,
) -> Result<ByteRange, CqlError> {
    let of_value = entry_key(index, value.clone());
    let number = index.table.number;
    let start = rest_start(table, index, is_by_partition(index, table), state)?;
    let start = match start {
        Some(clustering) => Some(key::row_key(number, of_value.token, &of_value.bytes, &clustering)),
        None => key::partition_range(number, of_value.token, &of_value.bytes).end,
    };
    let whole = range.keys(index);
    Ok(ByteRange {
        start: start.map_or(whole.start.clone(), |start| start.max(whole.start)),
        end: whole.end,
    })
}
