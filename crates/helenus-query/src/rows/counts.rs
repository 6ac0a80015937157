//! Counts of the rows that a read has met.

use helenus_row::read::RowState;

/// What a part of a read has met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowCounts {
    pub live: usize,
    pub dead: usize,
    /// Dead cells, and dead rows without any.
    pub tombstones: usize,
    /// The token of the last partition, if there was one.
    pub last_token: Option<i64>,
}

impl RowCounts {
    /// Counts a row.
    pub(crate) fn add(&mut self, row: RowState) {
        match row.is_live {
            true => self.live += 1,
            false => self.dead += 1,
        }
        self.tombstones += row.tombstones;
    }
}
