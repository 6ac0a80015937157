//! Groups of which only some rows have been seen: they are merged with the rest here, or sent to the node that merges them.

use bytes::Bytes;

use super::Selection;
use crate::rows::{CellView, RowView};
use crate::schema::Table;

/// What selectors will need of a row after it is gone.
pub(super) struct FirstRow {
    pub values: Vec<(usize, Option<Bytes>)>,
    pub cells: Vec<(usize, Vec<CellView>)>,
}

impl RowView for FirstRow {
    fn value(&self, column: usize) -> Option<Bytes> {
        self.values
            .iter()
            .find(|(place, _)| *place == column)
            .and_then(|(_, value)| value.clone())
    }

    fn cells(&self, column: usize) -> Vec<CellView> {
        let found = self.cells.iter().find(|(place, _)| *place == column);
        found.map(|(_, cells)| cells.clone()).unwrap_or_default()
    }
}

/// What a part of a group's rows comes to.
pub struct PartialGroup {
    pub(super) states: Vec<Bytes>,
    pub(super) first: Option<FirstRow>,
}

/// The same as it is sent to another node. Columns have their names: in a schema that is newer, other columns may be at their places.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedGroup {
    /// What each aggregate of the selection has come to, in its own encoding.
    pub states: Vec<Bytes>,
    /// The first row, if there was one.
    pub first: Option<NamedRow>,
}

/// What selectors need of a group's first row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedRow {
    /// Columns and their serialized values.
    pub values: Vec<(String, Option<Bytes>)>,
    /// Columns and their cells, of those whose cells' attributes are looked at.
    pub cells: Vec<(String, Vec<CellView>)>,
}

impl PartialGroup {
    /// Returns the group for another node; none if a column is not the table's.
    pub fn named(self, table: &Table) -> Option<NamedGroup> {
        let first = match self.first {
            Some(row) => Some(NamedRow {
                values: named(table, row.values)?,
                cells: named(table, row.cells)?,
            }),
            None => None,
        };
        Some(NamedGroup {
            states: self.states,
            first,
        })
    }
}

impl NamedGroup {
    /// Returns the group of that selection; none if it is of another one.
    pub fn placed(self, selection: &Selection, table: &Table) -> Option<PartialGroup> {
        if self.states.len() != selection.parts.aggregates.len() {
            return None;
        }
        let first = match self.first {
            Some(row) => Some(FirstRow {
                values: placed(table, row.values)?,
                cells: placed(table, row.cells)?,
            }),
            None => None,
        };
        Some(PartialGroup {
            states: self.states,
            first,
        })
    }
}

fn named<T>(table: &Table, columns: Vec<(usize, T)>) -> Option<Vec<(String, T)>> {
    let named = |(place, content): (usize, T)| Some((table.columns.get(place)?.name.clone(), content));
    columns.into_iter().map(named).collect()
}

fn placed<T>(table: &Table, columns: Vec<(String, T)>) -> Option<Vec<(usize, T)>> {
    let placed = |(name, content): (String, T)| Some((table.column(&name)?.0, content));
    columns.into_iter().map(placed).collect()
}
