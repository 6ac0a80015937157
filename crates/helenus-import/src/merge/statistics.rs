//! Numbers of merged and left out things.

use std::ops::AddAssign;

/// Numbers of what was merged. Versions of a row count as one row, and each version's cells count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    pub partitions: u64,
    pub rows: u64,
    /// Cells with values, of all versions.
    pub cells: u64,
    /// Deletions of partitions, ranges, rows, collections and cells, of all versions.
    pub tombstones: u64,
    /// Cells from before the drop of a column that exists again.
    pub cells_before_drop: u64,
    /// Cells from before the time from which on cells are taken.
    pub cells_before_since: u64,
    /// Cells that a deletion of their partition or range covers, and that aren't sent.
    pub shadowed: u64,
    /// Counters with a total.
    pub counters: u64,
    /// Cells of columns that are left out, in the order of the layout's list.
    pub left_out: Vec<u64>,
}

impl Statistics {
    pub(crate) fn new(left_out: usize) -> Statistics {
        Statistics {
            left_out: vec![0; left_out],
            ..Statistics::default()
        }
    }

    pub(crate) fn leave_out(&mut self, position: usize) {
        if let Some(count) = self.left_out.get_mut(position) {
            *count += 1;
        }
    }

    /// Returns the difference to earlier statistics of the same merge.
    #[must_use]
    pub fn since(&self, earlier: &Statistics) -> Statistics {
        let of = |position: usize| earlier.left_out.get(position).copied().unwrap_or(0);
        Statistics {
            partitions: self.partitions - earlier.partitions,
            rows: self.rows - earlier.rows,
            cells: self.cells - earlier.cells,
            tombstones: self.tombstones - earlier.tombstones,
            cells_before_drop: self.cells_before_drop - earlier.cells_before_drop,
            cells_before_since: self.cells_before_since - earlier.cells_before_since,
            shadowed: self.shadowed - earlier.shadowed,
            counters: self.counters - earlier.counters,
            left_out: self
                .left_out
                .iter()
                .enumerate()
                .map(|(position, count)| count - of(position))
                .collect(),
        }
    }
}

impl AddAssign<&Statistics> for Statistics {
    fn add_assign(&mut self, other: &Statistics) {
        self.partitions += other.partitions;
        self.rows += other.rows;
        self.cells += other.cells;
        self.tombstones += other.tombstones;
        self.cells_before_drop += other.cells_before_drop;
        self.cells_before_since += other.cells_before_since;
        self.shadowed += other.shadowed;
        self.counters += other.counters;
        if self.left_out.len() < other.left_out.len() {
            self.left_out.resize(other.left_out.len(), 0);
        }
        for (count, added) in self.left_out.iter_mut().zip(&other.left_out) {
            *count += added;
        }
    }
}
