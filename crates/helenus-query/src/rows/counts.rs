//! Counts of the rows of a read.

use helenus_row::read::RowState;

/// Counts of the rows of a part of a read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowCounts {
    pub live: usize,
    pub dead: usize,
    /// Dead cells, plus dead rows without cells.
    pub tombstones: usize,
    /// The last partition's token. `None` if no partition was read.
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
