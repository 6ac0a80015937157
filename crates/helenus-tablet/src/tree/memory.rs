//! Memtables. Each applied batch is one sorted table. Tables are joined a few at a time, so that their number stays small. Versions of one
//! key become one when their tables are joined.

use std::cmp::Ordering;
use std::iter::Peekable;
use std::sync::Arc;

use super::Versions;
use super::rows::{EntryKind, SortedBlock, SortedBlockBuilder, leading_bytes};
use crate::data_model::{DataModelError, RowMerge};
use crate::priority::yield_if_due;
use crate::tree::changes::{Change, ChangeTable};

/// Number of tables of similar size that are joined.
const JOINED: usize = 4;
/// Size of the first step. Smaller tables count as equal in size.
const SMALL_BYTES: usize = 64 << 10;
/// Bits of the filter for each key.
const FILTER_BITS: usize = 10;

/// Rows of consecutive batches.
pub(crate) struct MemTable {
    pub rows: Arc<SortedBlock>,
    /// The sequence numbers of the first and of the last batch.
    pub first_seq: u64,
    pub last_seq: u64,
    /// The hash of each row's key.
    hashes: Box<[u32]>,
    filter: Filter,
}

impl MemTable {
    /// Creates a memtable from a batch of staged changes.
    pub fn new(table: &ChangeTable, hash: impl Fn(&[u8]) -> u64) -> MemTable {
        let seq = table.last_lsn;
        let mut rows = SortedBlockBuilder::with_capacity(table.rows.len(), table.content_len());
        let mut hashes = Vec::with_capacity(table.rows.len());
        for (key, change) in &table.rows {
            yield_if_due();
            let key = key.bytes();
            match change {
                Change::Whole(value) => rows.push(key, value, seq, EntryKind::Whole),
                Change::Operand(operand) => rows.push(key, operand, seq, EntryKind::Operand),
            }
            hashes.push(short(hash(key)));
        }
        MemTable::from_parts(rows.finish(), hashes, seq, seq)
    }

    fn from_parts(rows: SortedBlock, hashes: Vec<u32>, first_seq: u64, last_seq: u64) -> MemTable {
        MemTable {
            filter: Filter::new(&hashes),
            hashes: hashes.into(),
            rows: Arc::new(rows),
            first_seq,
            last_seq,
        }
    }

    /// Creates a memtable from rows of consecutive batches and the hashes of their keys.
    pub(super) fn from_hashes(rows: SortedBlock, hashes: &[u64], first_seq: u64, last_seq: u64) -> MemTable {
        let hashes = hashes.iter().map(|hash| short(*hash)).collect();
        MemTable::from_parts(rows, hashes, first_seq, last_seq)
    }

    /// Returns false if no row has a key with this hash.
    pub fn may_have(&self, hash: u64) -> bool {
        self.filter.may_have(short(hash))
    }

    /// Returns true if a row has a key that begins with `prefix`.
    pub fn has_prefix(&self, prefix: &[u8]) -> bool {
        let at = self.rows.lower_bound(prefix);
        at < self.rows.len() && self.rows.key(at).starts_with(prefix)
    }

    /// Joins tables, which are given from new to old.
    fn join(tables: &[Arc<MemTable>], model: &dyn RowMerge) -> Result<Option<MemTable>, DataModelError> {
        let (Some(newest), Some(oldest)) = (tables.first(), tables.last()) else {
            return Ok(None);
        };
        let count = tables.iter().map(|table| table.rows.len()).sum();
        let bytes = tables.iter().map(|table| table.rows.content_len()).sum();
        let mut joined = SortedBlockBuilder::with_capacity(count, bytes);
        let mut hashes = Vec::with_capacity(count);
        let mut versions = Versions::default();
        let mut rows = Merged::new(tables).peekable();
        while let Some((table, at)) = rows.next() {
            let key = table.rows.key(at);
            let has_more = |rows: &mut Peekable<Merged>| {
                let next = rows.peek();
                next.is_some_and(|(next, at)| next.rows.key(*at) == key)
            };
            hashes.extend(table.hashes.get(at));
            if !has_more(&mut rows) {
                joined.copy(&table.rows, at);
                continue;
            }
            versions.add(&table.rows, at);
            while has_more(&mut rows)
                && let Some((older, at)) = rows.next()
            {
                versions.add(&older.rows, at);
            }
            let (kind, value) = versions.fold(model, key)?;
            joined.push(key, &value, table.rows.seq(at), kind);
        }
        Ok(Some(MemTable::from_parts(
            joined.finish(),
            hashes,
            oldest.first_seq,
            newest.last_seq,
        )))
    }

    fn step(&self) -> u32 {
        (self.rows.size() / SMALL_BYTES).max(1).ilog(JOINED)
    }
}

/// Returns the bytes of the tables' rows.
pub(super) fn size(tables: &[Arc<MemTable>]) -> usize {
    tables.iter().map(|table| table.rows.size()).sum()
}

/// Joins the newest tables if a join is due, and returns the newest table. `tables` are given from new to old. Those that are not joined
/// have older batches than the result.
pub(super) fn join_due(
    mut tables: Vec<Arc<MemTable>>,
    model: &dyn RowMerge,
) -> Result<Option<Arc<MemTable>>, DataModelError> {
    while let Some(newest) = tables.first() {
        let step = newest.step();
        let alike = tables.iter().take_while(|table| table.step() <= step).count();
        if alike < JOINED {
            break;
        }
        let joined = join_all(tables.get(..alike).unwrap_or_default(), model)?;
        tables.splice(..alike, joined);
    }
    Ok(tables.into_iter().next())
}

/// Joins all tables, which are given from new to old.
pub(super) fn join_all(
    tables: &[Arc<MemTable>],
    model: &dyn RowMerge,
) -> Result<Option<Arc<MemTable>>, DataModelError> {
    Ok(MemTable::join(tables, model)?.map(Arc::new))
}

/// An iterator over the places of tables' rows in order of keys. Those of one key go from new to old, without rows that a newer one hides.
pub(super) struct Merged<'a> {
    /// The next row of each table that has rows left, from new to old tables. Versions of one key go from new to old across tables, and
    /// within one.
    sources: Vec<NextRow<'a>>,
    /// The last row that hides older versions of its key.
    hiding: Option<(&'a MemTable, usize)>,
}

/// The next row of a table.
struct NextRow<'a> {
    table: &'a MemTable,
    place: usize,
    /// Leading bytes of the row's key, by which most comparisons are decided.
    leading: u128,
}

impl<'a> NextRow<'a> {
    /// Returns the row at a place. `None` if the place is beyond the last row.
    fn at(table: &'a MemTable, place: usize) -> Option<NextRow<'a>> {
        (place < table.rows.len()).then(|| NextRow {
            table,
            place,
            leading: leading_bytes(table.rows.key(place)),
        })
    }

    fn compare(&self, other: &NextRow<'_>) -> Ordering {
        let keys = || {
            let key = self.table.rows.key(self.place);
            key.cmp(other.table.rows.key(other.place))
        };
        self.leading.cmp(&other.leading).then_with(keys)
    }
}

impl<'a> Merged<'a> {
    /// Creates the iterator. `tables` are given from new to old.
    pub fn new(tables: &'a [Arc<MemTable>]) -> Merged<'a> {
        let first = tables.iter().filter_map(|table| NextRow::at(table, 0));
        Merged {
            sources: first.collect(),
            hiding: None,
        }
    }

    fn next_of_all(&mut self) -> Option<(&'a MemTable, usize)> {
        let sources = self.sources.iter_mut().enumerate();
        let (index, source) = sources.min_by(|(_, a), (_, b)| a.compare(b))?;
        let (table, place) = (source.table, source.place);
        match NextRow::at(table, place + 1) {
            Some(next) => *source = next,
            None => {
                self.sources.remove(index);
            }
        }
        Some((table, place))
    }
}

impl<'a> Iterator for Merged<'a> {
    type Item = (&'a MemTable, usize);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            yield_if_due();
            let (table, at) = self.next_of_all()?;
            let rows = &table.rows;
            let is_hidden = self
                .hiding
                .is_some_and(|(table, whole)| table.rows.key(whole) == rows.key(at));
            if is_hidden {
                continue;
            }
            if rows.kind(at) != EntryKind::Operand {
                self.hiding = Some((table, at));
            }
            return Some((table, at));
        }
    }
}

/// Returns the bits of a hash that are kept.
fn short(hash: u64) -> u32 {
    (hash >> 32) as u32
}

/// A Bloom filter whose bits of one key lie in one word.
struct Filter(Box<[u64]>);

impl Filter {
    fn new(hashes: &[u32]) -> Filter {
        let mut filter = Filter(vec![0; (hashes.len() * FILTER_BITS).div_ceil(64)].into());
        for &hash in hashes {
            let (word, bits) = filter.place(hash);
            if let Some(word) = filter.0.get_mut(word) {
                *word |= bits;
            }
        }
        filter
    }

    fn may_have(&self, hash: u32) -> bool {
        let (word, bits) = self.place(hash);
        self.0.get(word).is_some_and(|word| word & bits == bits)
    }

    fn place(&self, hash: u32) -> (usize, u64) {
        let word = (u64::from(hash) * self.0.len() as u64) >> 32;
        let mixed = u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let bit = |shift: u32| 1u64 << ((mixed >> shift) & 63);
        (word as usize, bit(58) | bit(52) | bit(46) | bit(40))
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
