//! Ranges of keys and of clusterings, as bytes.

use bytes::Bytes;

use super::KeyKind;

/// Keys from `start`, inclusive, to `end`, exclusive. `end` is `None` if the range has no upper bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ByteRange {
    pub start: Bytes,
    pub end: Option<Bytes>,
}

impl ByteRange {
    /// Returns the range of all keys that start with `prefix`.
    pub fn with_prefix(prefix: &[u8]) -> ByteRange {
        ByteRange {
            start: Bytes::copy_from_slice(prefix),
            end: successor(prefix),
        }
    }

    /// Returns true if no key can lie in the range.
    pub fn is_empty(&self) -> bool {
        self.end.as_ref().is_some_and(|end| *end <= self.start)
    }

    pub fn contains(&self, key: &[u8]) -> bool {
        *self.start <= *key && self.end.as_ref().is_none_or(|end| *key < **end)
    }
}

/// Encoded clusterings from `start`, inclusive, to `end`, exclusive. `end` is `None` if the range reaches to the end of the partition.
/// Since components are prefix-free, "before all rows that start with p" is `enc(p)` and "after" them is [`successor`]`(enc(p))`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusteringRange {
    pub start: Bytes,
    pub end: Option<Bytes>,
}

impl ClusteringRange {
    /// Returns the range of all rows of a partition.
    pub fn all() -> ClusteringRange {
        ClusteringRange {
            start: Bytes::new(),
            end: None,
        }
    }

    /// Returns the range of the rows whose encoded clustering starts with `prefix`.
    pub fn with_prefix(prefix: Bytes) -> ClusteringRange {
        ClusteringRange {
            end: successor(&prefix),
            start: prefix,
        }
    }

    /// Returns true if no clustering can lie in the range.
    pub fn is_empty(&self) -> bool {
        self.end.as_ref().is_some_and(|end| *end <= self.start)
    }

    pub fn contains(&self, clustering: &[u8]) -> bool {
        *self.start <= *clustering && self.end.as_ref().is_none_or(|end| *clustering < **end)
    }

    /// Returns the keys of the rows in this range of the partition with the given [`super::partition_prefix`].
    pub fn in_partition(&self, partition_prefix: &[u8]) -> ByteRange {
        let key = |kind: u8, clustering: &[u8]| -> Bytes {
            [partition_prefix, &[kind], clustering].concat().into()
        };
        ByteRange {
            start: key(KeyKind::Row as u8, &self.start),
            end: Some(match &self.end {
                Some(end) => key(KeyKind::Row as u8, end),
                None => key(KeyKind::Row as u8 + 1, &[]),
            }),
        }
    }

    /// Returns the intersection of the two ranges.
    pub fn intersect(&self, other: &ClusteringRange) -> ClusteringRange {
        ClusteringRange {
            start: self.start.clone().max(other.start.clone()),
            end: match (&self.end, &other.end) {
                (Some(a), Some(b)) => Some(a.min(b).clone()),
                (Some(end), None) | (None, Some(end)) => Some(end.clone()),
                (None, None) => None,
            },
        }
    }
}

/// One side of a restriction on a tuple of clustering columns: `(c1, c2) > (1, 2)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TupleBound {
    /// Serialized values of the columns from the first restricted one on.
    pub values: Vec<Bytes>,
    pub inclusive: bool,
}

/// Returns the least byte string that is above all strings that start with `prefix`. `None` if `prefix` is empty or has only 0xff bytes.
pub fn successor(prefix: &[u8]) -> Option<Bytes> {
    let last = prefix.iter().rposition(|&byte| byte != 0xff)?;
    let mut above = prefix.get(..=last)?.to_vec();
    *above.last_mut()? += 1;
    Some(above.into())
}

/// Sorts the ranges, removes empty ones, and joins those that overlap or touch.
pub(crate) fn tidy(mut ranges: Vec<ClusteringRange>) -> Vec<ClusteringRange> {
    ranges.retain(|range| !range.is_empty());
    ranges.sort_by(|a, b| a.start.cmp(&b.start));
    let mut tidied: Vec<ClusteringRange> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match tidied.last_mut() {
            Some(last) if last.end.as_ref().is_none_or(|end| range.start <= *end) => {
                last.end = match (last.end.take(), range.end) {
                    (Some(a), Some(b)) => Some(a.max(b)),
                    _ => None,
                };
            }
            _ => tidied.push(range),
        }
    }
    tidied
}
