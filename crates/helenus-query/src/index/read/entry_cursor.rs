//! Cursors over the live entries of one value or of a range of values.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;

use crate::analysis::restrictions::token::TokenBounds;
use crate::failure::ExecutionError;
use crate::index::entries::{decode_entry, entry_key};
use crate::limits::scope;
use crate::rows::{PartitionKey, RowAt, RowSelection};
use crate::schema::Index;
use crate::storage::ExecutionContext;
use crate::storage::row_reads::{RangeCursor, ReversedRangeCursor, RowCursor};
use helenus_row::ByteRange;

/// An entry: its value, the base partition, the base row's encoded clustering, and the entry's timestamp.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) value: Bytes,
    pub(crate) base: PartitionKey,
    pub(crate) clustering: Bytes,
    pub(crate) written_us: i64,
}

impl Entry {
    /// Returns the base row in a form that has the order of a scan of the base table.
    pub(super) fn row(&self) -> (i64, &Bytes, &Bytes) {
        (self.base.token, &self.base.bytes, &self.clustering)
    }

    /// Returns the bytes of the value and of the row's key.
    pub(super) fn len(&self) -> usize {
        self.value.len() + self.base.bytes.len() + self.clustering.len()
    }
}

#[allow(clippy::large_enum_variant, reason = "one for a whole read")]
enum Source {
    Value(RowCursor),
    Range(RangeCursor),
    Reversed(ReversedRangeCursor),
}

/// A cursor over entries. Those of a value have the order of their rows. Those of a range have the order of values, and for each value the
/// order of their rows.
pub(super) struct EntryCursor {
    index: Arc<Index>,
    source: Source,
    /// The value of the current entries. `None` before the first value of a range.
    value: Option<Bytes>,
    now_s: i64,
}

impl EntryCursor {
    /// Returns a cursor over the wanted entries of a value.
    pub fn of_value(index: Arc<Index>, value: Bytes, wanted: RowSelection, now_s: i64) -> EntryCursor {
        let partition = entry_key(&index, value.clone());
        let rows = RowCursor::new(&index.table, partition, None, wanted, false);
        EntryCursor {
            index,
            source: Source::Value(rows),
            value: Some(value),
            now_s,
        }
    }

    /// Returns a cursor over the entries with keys in the range, for an index in the order of values.
    pub fn of_range(index: Arc<Index>, keys: ByteRange, now_s: i64) -> EntryCursor {
        let cursor = RangeCursor::within(&index.table, keys, RowSelection::all());
        EntryCursor {
            index,
            source: Source::Range(cursor),
            value: None,
            now_s,
        }
    }

    /// Returns a cursor over the entries with keys in the range, from the last to the first.
    pub fn of_range_reversed(index: Arc<Index>, keys: ByteRange, now_s: i64) -> EntryCursor {
        let cursor = ReversedRangeCursor::within(&index.table, keys);
        EntryCursor {
            index,
            source: Source::Reversed(cursor),
            value: None,
            now_s,
        }
    }

    pub async fn next(&mut self, context: &ExecutionContext) -> Result<Option<Entry>, ExecutionError> {
        while let Some((value, found)) = self.next_stored(context).await? {
            let Some(live) = found.row.live(self.now_s)? else {
                scope::checkpoint().await?;
                continue;
            };
            let (base, clustering) = decode_entry(&self.index, &found.clustering)?;
            return Ok(Some(Entry {
                value,
                base,
                clustering,
                written_us: live.liveness.map_or(i64::MIN, |liveness| liveness.timestamp_us),
            }));
        }
        Ok(None)
    }

    async fn next_stored(
        &mut self,
        context: &ExecutionContext,
    ) -> Result<Option<(Bytes, RowAt)>, ExecutionError> {
        if let Source::Reversed(cursor) = &mut self.source {
            let found = cursor.next(context).await?;
            return Ok(found.map(|(partition, row)| (partition.bytes, row)));
        }
        loop {
            if let Some(value) = &self.value {
                let found = match &mut self.source {
                    Source::Value(rows) => rows.next(context).await?,
                    Source::Range(cursor) => cursor.next_row(context).await?,
                    Source::Reversed(_) => None,
                };
                if let Some(found) = found {
                    return Ok(Some((value.clone(), found)));
                }
            }
            let Source::Range(cursor) = &mut self.source else {
                return Ok(None);
            };
            let next = cursor.next_partition(context, &self.index.table).await?;
            let Some(partition) = next else { return Ok(None) };
            self.value = Some(partition.key.bytes);
        }
    }
}

/// A stream of entries that were already read, and then of those of a cursor.
pub(super) struct EntryStream {
    read: std::vec::IntoIter<Entry>,
    rest: Option<EntryCursor>,
    /// The base partitions whose entries are returned. It does not apply to entries that were already read.
    bases: Bases,
}

/// Base partitions whose entries are returned.
#[derive(Clone, Debug)]
pub(crate) enum Bases {
    All,
    Tokens(TokenBounds),
    /// The partitions with these serialized keys.
    Keys(HashSet<Bytes>),
}

impl Bases {
    pub fn contains(&self, base: &PartitionKey) -> bool {
        match self {
            Bases::All => true,
            Bases::Tokens(bounds) => bounds.contains(base.token),
            Bases::Keys(keys) => keys.contains(&base.bytes),
        }
    }
}

impl EntryStream {
    pub fn new(read: Vec<Entry>, rest: Option<EntryCursor>) -> EntryStream {
        EntryStream {
            read: read.into_iter(),
            rest,
            bases: Bases::All,
        }
    }

    /// Returns a stream of the cursor's entries for the given base partitions.
    pub fn within(cursor: EntryCursor, bases: Bases) -> EntryStream {
        EntryStream {
            read: Vec::new().into_iter(),
            rest: Some(cursor),
            bases,
        }
    }

    pub async fn next(&mut self, context: &ExecutionContext) -> Result<Option<Entry>, ExecutionError> {
        if let Some(entry) = self.read.next() {
            return Ok(Some(entry));
        }
        let Some(cursor) = &mut self.rest else {
            return Ok(None);
        };
        while let Some(entry) = cursor.next(context).await? {
            if self.bases.contains(&entry.base) {
                return Ok(Some(entry));
            }
            scope::checkpoint().await?;
        }
        Ok(None)
    }
}
