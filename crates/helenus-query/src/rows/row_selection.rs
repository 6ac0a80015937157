//! Selections of rows within a partition.

use std::sync::Arc;

use bytes::Bytes;
use helenus_row::ClusteringRange;

/// The rows of a partition to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowSelection {
    /// The rows of these encoded clusterings, which are in ascending order.
    Names(Arc<[Bytes]>),
    /// The rows within these ranges of encoded clusterings, which are ascending and do not overlap.
    Slices(Arc<[ClusteringRange]>),
}

impl RowSelection {
    /// Selects every row.
    pub fn all() -> RowSelection {
        RowSelection::Slices(Arc::new([ClusteringRange::all()]))
    }

    /// Returns true if every row is selected.
    pub fn is_all(&self) -> bool {
        matches!(self, RowSelection::Slices(ranges) if **ranges == [ClusteringRange::all()])
    }

    pub fn is_empty(&self) -> bool {
        match self {
            RowSelection::Names(names) => names.is_empty(),
            RowSelection::Slices(ranges) => ranges.iter().all(ClusteringRange::is_empty),
        }
    }

    /// Returns true if the row of that encoded clustering is selected.
    pub fn contains(&self, clustering: &[u8]) -> bool {
        match self {
            RowSelection::Names(names) => names
                .binary_search_by(|name| name.as_ref().cmp(clustering))
                .is_ok(),
            RowSelection::Slices(ranges) => ranges.iter().any(|range| range.contains(clustering)),
        }
    }

    /// Returns the selected rows after `clustering`, in the direction of reading.
    pub fn after(&self, clustering: &[u8], reversed: bool) -> RowSelection {
        match self {
            RowSelection::Names(names) => {
                let is_left = |name: &&Bytes| {
                    if reversed {
                        name.as_ref() < clustering
                    } else {
                        name.as_ref() > clustering
                    }
                };
                RowSelection::Names(names.iter().filter(is_left).cloned().collect())
            }
            RowSelection::Slices(ranges) => {
                let rest = rest_range(clustering, reversed);
                let left = ranges
                    .iter()
                    .map(|range| range.intersect(&rest))
                    .filter(|range| !range.is_empty());
                RowSelection::Slices(left.collect())
            }
        }
    }
}

pub(crate) fn rest_range(clustering: &[u8], reversed: bool) -> ClusteringRange {
    if reversed {
        return ClusteringRange {
            start: Bytes::new(),
            end: Some(Bytes::copy_from_slice(clustering)),
        };
    }
    // Only a longer clustering (of a compact table) begins with an encoded clustering. So the next byte string is at or before the next
    // clustering.
    let mut start = clustering.to_vec();
    start.push(0);
    ClusteringRange {
        start: start.into(),
        end: None,
    }
}
