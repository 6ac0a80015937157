//! Ranges of keys and of clusterings, as bytes.

use bytes::Bytes;

/// Keys from `start`, inclusive, to `end`, exclusive (`None`: to the end of everything).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ByteRange {
    pub start: Bytes,
    pub end: Option<Bytes>,
}

/// Encoded clusterings from `start`, inclusive, to `end`, exclusive (`None`: to the end of the partition). Since components are
/// prefix-free, "before all rows that start with p" is `enc(p)` and "after" them is [`successor`]`(enc(p))`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusteringRange {
    pub start: Bytes,
    pub end: Option<Bytes>,
}

impl ClusteringRange {
    /// Every row of the partition.
    pub fn all() -> ClusteringRange {
        ClusteringRange {
            start: Bytes::new(),
            end: None,
        }
    }

    /// True if no clustering can lie in the range.
    pub fn is_empty(&self) -> bool {
        self.end.as_ref().is_some_and(|end| *end <= self.start)
    }

    pub fn contains(&self, clustering: &[u8]) -> bool {
        *self.start <= *clustering && self.end.as_ref().is_none_or(|end| *clustering < **end)
    }

    /// The keys of the rows in this range of a partition ([`super::partition_prefix`]).
    pub fn in_partition(&self, _partition_prefix: &[u8]) -> ByteRange {
        unimplemented!()
    }

    /// What lies in both.
    pub fn intersect(&self, _other: &ClusteringRange) -> ClusteringRange {
        unimplemented!()
    }
}

/// One side of a restriction on a tuple of clustering columns: `(c1, c2) > (1, 2)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TupleBound {
    /// Serialized values of the columns from the first restricted one on.
    pub values: Vec<Bytes>,
    pub inclusive: bool,
}

/// The least byte string that is above all that start with `prefix`; `None` if nothing is.
pub fn successor(_prefix: &[u8]) -> Option<Bytes> {
    unimplemented!()
}
