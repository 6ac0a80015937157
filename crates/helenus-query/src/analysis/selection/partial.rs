//! Groups of which only some rows have been read. They are merged with the other rows here, or sent to the node that merges them.

use std::sync::Arc;

use bytes::Bytes;

use super::Selection;
use crate::rows::{CellView, RowView};
use crate::schema::Table;

/// The values and cells of a row that selectors need later.
pub(super) struct FirstRow {
    pub values: Vec<(usize, Option<Bytes>)>,
    pub cells: Vec<(usize, Vec<CellView>)>,
    /// Packed rows, by their columns.
    pub packed: Vec<(Arc<[usize]>, Option<Bytes>)>,
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

    fn packed(&self, columns: &[usize]) -> Option<Bytes> {
        let found = self.packed.iter().find(|(of, _)| **of == *columns);
        found.and_then(|(_, packed)| packed.clone())
    }
}

/// The state of a group after a part of its rows.
pub struct PartialGroup {
    pub(super) states: Vec<Bytes>,
    pub(super) first: Option<FirstRow>,
}

/// A partial group in the form in which it is sent to another node. Columns are given by name, because they may have other indexes in a
/// newer schema.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedGroup {
    /// The state of each aggregate of the selection, in its own encoding.
    pub states: Vec<Bytes>,
    /// The first row. `None` if there was no row.
    pub first: Option<NamedRow>,
}

/// The parts of a group's first row that selectors need.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedRow {
    /// Columns and their serialized values.
    pub values: Vec<(String, Option<Bytes>)>,
    /// Columns and their cells. Only those columns are included whose write times or times to live are selected.
    pub cells: Vec<(String, Vec<CellView>)>,
}

impl PartialGroup {
    /// Returns the group for another node. `None` if the table lacks a column.
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
    /// Returns the group for a selection. `None` if the group is of another selection.
    pub fn placed(self, selection: &Selection, table: &Table) -> Option<PartialGroup> {
        if self.states.len() != selection.parts.aggregates.len() {
            return None;
        }
        let first = match self.first {
            Some(row) => Some(FirstRow {
                values: placed(table, row.values)?,
                cells: placed(table, row.cells)?,
                packed: Vec::new(),
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
