//! The places of an SSTable's columns in the rows that are sent.

use std::sync::Arc;

use helenus_row::ColumnId;
use helenus_sstable::Column;

/// The place of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Column {
        id: ColumnId,
        /// Time in µs up to which cells are deleted. `None` if the column was never dropped.
        dropped_us: Option<i64>,
    },
    /// Position in the list of columns that are left out.
    LeftOut(usize),
}

/// The places of all columns of one SSTable.
#[derive(Debug)]
pub(crate) struct Targets(Vec<(Arc<Column>, Target)>);

impl Targets {
    pub(super) fn new(targets: impl IntoIterator<Item = (Arc<Column>, Target)>) -> Targets {
        Targets(targets.into_iter().collect())
    }

    /// Returns the place of a cell's column. `hint` is the position of the last one; cells come in the order of the columns.
    pub(crate) fn find(&self, column: &Arc<Column>, hint: &mut usize) -> Option<Target> {
        let (before, after) = self.0.split_at(self.0.len().min(*hint));
        let found = after
            .iter()
            .chain(before)
            .position(|(known, _)| Arc::ptr_eq(known, column));
        let position = match found {
            Some(distance) if distance < after.len() => *hint + distance,
            Some(distance) => distance - after.len(),
            None => return None,
        };
        *hint = position;
        self.0.get(position).map(|(_, target)| *target)
    }
}
