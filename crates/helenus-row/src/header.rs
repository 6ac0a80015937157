//! The partition header: the deletions that cover more than one row.

use bytes::Bytes;

use crate::error::RowError;
use crate::key::ClusteringRange;
use crate::row::Deletion;
use crate::varint::{Reader, put_bytes, put_signed, put_unsigned};

const HAS_DELETION: u8 = 1;
/// Flag: the last range tombstone reaches to the end of the partition.
const OPEN_END: u8 = 1 << 1;

/// A deletion of the clusterings in `[start, end)`. Both are positions in the encoded clustering space (see
/// [`crate::key::KeyLayout::slice`]). `end` is `None` if the range reaches to the end of the partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeTombstone {
    pub start: Bytes,
    pub end: Option<Bytes>,
    pub deletion: Deletion,
}

/// The value at the header key of a partition, both as merge operand and as stored value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartitionHeader {
    /// The deletion of the whole partition, including its static row.
    pub deletion: Option<Deletion>,
    /// The range tombstones, ascending and not overlapping. Each is stronger than `deletion`, and adjacent ones differ in their deletions.
    /// Static rows are not covered by range tombstones.
    pub range_tombstones: Vec<RangeTombstone>,
}

impl PartitionHeader {
    /// Returns a header that deletes the whole partition.
    pub fn deleting_partition(deletion: Deletion) -> PartitionHeader {
        PartitionHeader {
            deletion: Some(deletion),
            range_tombstones: Vec::new(),
        }
    }

    /// Returns a header that deletes the clusterings of these ranges. The ranges may overlap and come in any order.
    pub fn deleting_ranges(
        ranges: impl IntoIterator<Item = ClusteringRange>,
        deletion: Deletion,
    ) -> PartitionHeader {
        let range_tombstones = crate::key::tidy(ranges.into_iter().collect())
            .into_iter()
            .map(|ClusteringRange { start, end }| RangeTombstone { start, end, deletion })
            .collect();
        PartitionHeader {
            deletion: None,
            range_tombstones,
        }
    }

    /// Returns true if nothing is deleted.
    pub fn is_empty(&self) -> bool {
        self.deletion.is_none() && self.range_tombstones.is_empty()
    }

    /// Returns the deletion that applies to the row of this encoded clustering: the stronger of the partition's and
    /// the range tombstone's.
    pub fn deletion_at(&self, clustering: &[u8]) -> Option<Deletion> {
        let after = self
            .range_tombstones
            .partition_point(|tombstone| *tombstone.start <= *clustering);
        let covering = after
            .checked_sub(1)
            .and_then(|at| self.range_tombstones.get(at))
            .filter(|tombstone| tombstone.end.as_ref().is_none_or(|end| *clustering < **end));
        Deletion::max(self.deletion, covering.map(|tombstone| tombstone.deletion))
    }

    /// Returns a header with the deletions of both. Where they overlap, the stronger deletion is kept.
    pub fn merge(&self, other: &PartitionHeader) -> PartitionHeader {
        let deletion = Deletion::max(self.deletion, other.deletion);
        PartitionHeader {
            deletion,
            range_tombstones: merge_ranges(&self.range_tombstones, &other.range_tombstones, deletion),
        }
    }

    /// Keeps the range tombstones for which `keep` holds.
    pub(crate) fn retain_ranges(&mut self, keep: impl FnMut(&RangeTombstone) -> bool) {
        self.range_tombstones.retain(keep);
    }

    /// Returns the packed bytes: flags, deletion, then the range tombstones. Times are relative to the preceding deletion.
    pub fn encode(&self) -> Bytes {
        let mut out = Vec::new();
        let open_end = self
            .range_tombstones
            .last()
            .is_some_and(|last| last.end.is_none());
        let mut flags = 0;
        if self.deletion.is_some() {
            flags |= HAS_DELETION;
        }
        if open_end {
            flags |= OPEN_END;
        }
        out.push(flags);
        let mut previous = Deletion {
            timestamp_us: 0,
            local_deletion_s: 0,
        };
        if let Some(deletion) = self.deletion {
            put_deletion(&mut out, deletion, &mut previous);
        }
        put_unsigned(&mut out, self.range_tombstones.len() as u64);
        for tombstone in &self.range_tombstones {
            put_bytes(&mut out, &tombstone.start);
            // Only the last range can be open, since ranges don't overlap.
            if let Some(end) = &tombstone.end {
                put_bytes(&mut out, end);
            }
            put_deletion(&mut out, tombstone.deletion, &mut previous);
        }
        out.into()
    }

    /// Reads a packed header.
    ///
    /// # Errors
    /// [`RowError`] if the bytes aren't a packed header.
    pub fn decode(packed: &[u8]) -> Result<PartitionHeader, RowError> {
        let mut reader = Reader::new(packed);
        let flags = reader.byte()?;
        if flags & !(HAS_DELETION | OPEN_END) != 0 {
            return Err(RowError::Corrupt("unknown header flags"));
        }
        let mut previous = Deletion {
            timestamp_us: 0,
            local_deletion_s: 0,
        };
        let deletion = match flags & HAS_DELETION {
            0 => None,
            _ => Some(read_deletion(&mut reader, &mut previous)?),
        };
        let count = reader.unsigned()?;
        let mut range_tombstones = Vec::new();
        for position in 0..count {
            let start = Bytes::copy_from_slice(reader.bytes()?);
            let open = flags & OPEN_END != 0 && position + 1 == count;
            let end = if open {
                None
            } else {
                Some(Bytes::copy_from_slice(reader.bytes()?))
            };
            let deletion = read_deletion(&mut reader, &mut previous)?;
            range_tombstones.push(RangeTombstone { start, end, deletion });
        }
        if !reader.is_empty() {
            return Err(RowError::Corrupt("bytes after the last range tombstone"));
        }
        Ok(PartitionHeader {
            deletion,
            range_tombstones,
        })
    }
}

fn put_deletion(out: &mut Vec<u8>, deletion: Deletion, previous: &mut Deletion) {
    put_signed(out, deletion.timestamp_us.wrapping_sub(previous.timestamp_us));
    put_signed(
        out,
        deletion.local_deletion_s.wrapping_sub(previous.local_deletion_s),
    );
    *previous = deletion;
}

fn read_deletion(reader: &mut Reader<'_>, previous: &mut Deletion) -> Result<Deletion, RowError> {
    *previous = Deletion {
        timestamp_us: previous.timestamp_us.wrapping_add(reader.signed()?),
        local_deletion_s: previous.local_deletion_s.wrapping_add(reader.signed()?),
    };
    Ok(*previous)
}

/// Merges two lists of range tombstones, with one pass over the bounds of both. Between two bounds, the strongest deletion is kept if it is
/// stronger than the partition's. The result depends only on the deletion that each clustering has.
fn merge_ranges(
    a: &[RangeTombstone],
    b: &[RangeTombstone],
    partition: Option<Deletion>,
) -> Vec<RangeTombstone> {
    if b.is_empty() || a.is_empty() {
        let one = if b.is_empty() { a } else { b };
        return one
            .iter()
            .filter(|t| Some(t.deletion) > partition)
            .cloned()
            .collect();
    }
    let mut bounds: Vec<&Bytes> = a
        .iter()
        .chain(b)
        .flat_map(|tombstone| std::iter::once(&tombstone.start).chain(&tombstone.end))
        .collect();
    bounds.sort_unstable();
    bounds.dedup();
    let mut merged: Vec<RangeTombstone> = Vec::with_capacity(bounds.len());
    let (mut in_a, mut in_b) = (RangeTombstoneCursor { rest: a }, RangeTombstoneCursor { rest: b });
    for (position, &start) in bounds.iter().enumerate() {
        let end = bounds.get(position + 1).copied().cloned();
        let Some(deletion) = Deletion::max(in_a.at(start), in_b.at(start)) else {
            continue;
        };
        if Some(deletion) <= partition {
            continue;
        }
        match merged.last_mut() {
            Some(last) if last.deletion == deletion && last.end.as_ref() == Some(start) => last.end = end,
            _ => merged.push(RangeTombstone {
                start: start.clone(),
                end,
                deletion,
            }),
        }
    }
    merged
}

/// Walks a list of range tombstones along ascending positions.
struct RangeTombstoneCursor<'a> {
    rest: &'a [RangeTombstone],
}

impl RangeTombstoneCursor<'_> {
    fn at(&mut self, position: &Bytes) -> Option<Deletion> {
        while let [first, rest @ ..] = self.rest {
            if first.end.as_ref().is_none_or(|end| position < end) {
                return (first.start <= *position).then_some(first.deletion);
            }
            self.rest = rest;
        }
        None
    }
}
