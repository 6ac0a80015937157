//! The live part of a packed row, as a SELECT reads it.

use std::cmp::Ordering;

use bytes::Bytes;
use helenus_cql::types::CqlType;
use helenus_cql::value::compare;
use helenus_cql::value::compare::is_byte_order;

use crate::error::RowError;
use crate::merge::reconcile_cells;
use crate::packed::{CellRef, ColumnRef, ComplexRef, Packed, RowRef};
use crate::row::{CellRules, ColumnId, Deletion, Liveness};

/// The live part of a row at a given time.
#[derive(Clone, Debug)]
pub struct LiveRow<'a> {
    /// The row's liveness. `None` if it is absent, shadowed or expired.
    pub liveness: Option<Liveness>,
    /// The live columns, in ascending order. A column without live cells is absent.
    pub columns: Vec<(ColumnId, LiveColumn<'a>)>,
    /// Number of cells that are tombstones or have expired, and that no deletion covers.
    pub dead_cells: usize,
}

/// Elements of a column of many cells: path and cell.
pub type Elements<'a> = Vec<(&'a [u8], CellRef<'a>)>;

/// A live column: one cell, or elements. The elements ascend by path bytes, not in CQL order (see [`sort_elements`]).
#[derive(Clone, Debug)]
pub enum LiveColumn<'a> {
    Simple(CellRef<'a>),
    Complex(LiveElements<'a>),
}

/// The elements of a live column of many cells.
#[derive(Clone, Debug)]
pub struct LiveElements<'a> {
    /// All elements that aren't shadowed, ascending by path bytes. Tombstones are included, since a tombstone also deletes elements whose
    /// paths compare as equal to its own.
    elements: Elements<'a>,
    now_s: i64,
}

impl<'a> LiveElements<'a> {
    /// Returns the live elements in CQL's order: lists by their timeuuids, sets and maps by their element type, user types by field. Of
    /// elements that compare as equal but differ in bytes (`1.0` and `1.00`), the newest is kept.
    pub fn in_cql_order(mut self, ty: &CqlType) -> Elements<'a> {
        sort_elements(ty, &mut self.elements);
        self.elements.retain(|(_, cell)| cell.is_live(self.now_s));
        self.elements
    }

    /// Returns the live elements, ascending by path bytes.
    pub fn iter(&self) -> impl Iterator<Item = &(&'a [u8], CellRef<'a>)> {
        self.elements.iter().filter(|(_, cell)| cell.is_live(self.now_s))
    }

    /// Returns the serialized value, as in result rows.
    pub fn value(self, ty: &CqlType) -> Bytes {
        complex_value(ty, &self.in_cql_order(ty))
    }
}

impl<'a> LiveRow<'a> {
    /// Returns a live column. `None` if the column has no live cell.
    pub fn column(&self, id: ColumnId) -> Option<&LiveColumn<'a>> {
        let at = self
            .columns
            .binary_search_by_key(&id, |(column, _)| *column)
            .ok()?;
        self.columns.get(at).map(|(_, column)| column)
    }
}

/// Returns the live part of a row at `now_s`. `None` if the row is dead: it has neither a live liveness nor a live cell. A static row has
/// no liveness, and is live by its cells alone.
///
/// `shadow` is the stronger of the partition's deletion and the range tombstone over the row
/// ([`crate::header::PartitionHeader::deletion_at`]).
///
/// # Errors
/// [`RowError`] if the row is corrupt.
pub fn live_row<'a>(
    row: &'a RowRef,
    shadow: Option<Deletion>,
    rules: &CellRules,
    now_s: i64,
) -> Result<Option<LiveRow<'a>>, RowError> {
    let shadow = Deletion::max(shadow, row.deletion());
    let deletes =
        |shadow: Option<Deletion>, timestamp_us| shadow.is_some_and(|shadow| shadow.deletes(timestamp_us));
    let liveness = row
        .liveness()
        .filter(|liveness| !deletes(shadow, liveness.timestamp_us) && liveness.is_live(now_s));
    let mut columns = Vec::new();
    let mut dead_cells = 0;
    for column in row.columns() {
        let (id, column) = column?;
        let shadow = rules.over(id, shadow);
        match column {
            ColumnRef::Simple(cell) if deletes(shadow, cell.timestamp_us) => {}
            ColumnRef::Simple(cell) if cell.is_live(now_s) => columns.push((id, LiveColumn::Simple(cell))),
            ColumnRef::Simple(_) => dead_cells += 1,
            ColumnRef::Complex(complex) => {
                let (elements, dead) = live_elements(&complex, shadow, rules.alike(id), now_s)?;
                dead_cells += dead;
                columns.extend(elements.map(|elements| (id, LiveColumn::Complex(elements))));
            }
        }
    }
    if liveness.is_none() && columns.is_empty() {
        return Ok(None);
    }
    Ok(Some(LiveRow {
        liveness,
        columns,
        dead_cells,
    }))
}

/// The liveness of a row, and the number of its tombstones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowState {
    pub is_live: bool,
    /// [`LiveRow::dead_cells`] for a live row, [`tombstones_of_dead`] for a dead one.
    pub tombstones: usize,
}

/// Returns the results of [`live_row`] and [`tombstones_of_dead`] without the row's columns, for reads that only count rows.
///
/// # Errors
/// [`RowError`] if the row is corrupt.
pub fn row_state(
    bytes: &[u8],
    shadow: Option<Deletion>,
    rules: &CellRules,
    now_s: i64,
) -> Result<RowState, RowError> {
    row_state_with(bytes, shadow, rules, now_s, |_, _| {})
}

/// Returns the result of [`row_state`]. Passes the value of each live column of one cell to `see`, ascending by column.
///
/// # Errors
/// [`RowError`] if the row is corrupt.
#[inline]
pub fn row_state_with<'a>(
    bytes: &'a [u8],
    shadow: Option<Deletion>,
    rules: &CellRules,
    now_s: i64,
    mut see: impl FnMut(ColumnId, &'a [u8]),
) -> Result<RowState, RowError> {
    let row = Packed::parse(bytes)?;
    let over = Deletion::max(shadow, row.deletion());
    let deletes =
        |shadow: Option<Deletion>, timestamp_us| shadow.is_some_and(|shadow| shadow.deletes(timestamp_us));
    let liveness = row.liveness();
    let mut is_live =
        liveness.is_some_and(|liveness| !deletes(over, liveness.timestamp_us) && liveness.is_live(now_s));
    let mut tombstones = 0;
    for column in row.columns() {
        let (id, column) = column?;
        let over = rules.over(id, over);
        match column {
            ColumnRef::Simple(cell) if deletes(over, cell.timestamp_us) => {}
            ColumnRef::Simple(cell) if cell.is_live(now_s) => {
                is_live = true;
                see(id, cell.value);
            }
            ColumnRef::Simple(_) => tombstones += 1,
            ColumnRef::Complex(complex) => {
                let (elements, dead) = live_elements(&complex, over, rules.alike(id), now_s)?;
                tombstones += dead;
                is_live |= elements.is_some();
            }
        }
    }
    if !is_live {
        tombstones = tombstones_of_dead_packed(&row, shadow, rules, now_s)?;
    }
    Ok(RowState { is_live, tombstones })
}

/// Returns the number of tombstones of a row that is dead by [`live_row`], counted as in Cassandra. The result is the number of its dead
/// cells, or 1 for a deleted or expired row without cells. Data that the partition's deletions cover is not counted.
///
/// # Errors
/// [`RowError`] if the row is corrupt.
pub fn tombstones_of_dead(
    row: &RowRef,
    shadow: Option<Deletion>,
    rules: &CellRules,
    now_s: i64,
) -> Result<usize, RowError> {
    tombstones_of_dead_packed(&row.packed(), shadow, rules, now_s)
}

fn tombstones_of_dead_packed(
    row: &Packed<'_>,
    shadow: Option<Deletion>,
    rules: &CellRules,
    now_s: i64,
) -> Result<usize, RowError> {
    let covered = |timestamp_us: i64| shadow.is_some_and(|shadow| shadow.deletes(timestamp_us));
    let deletion = row.deletion().filter(|deletion| !covered(deletion.timestamp_us));
    let shadow = Deletion::max(shadow, row.deletion());
    let shadows = |timestamp_us: i64| shadow.is_some_and(|shadow| shadow.deletes(timestamp_us));
    let mut dead = 0;
    for column in row.columns() {
        let (id, column) = column?;
        let shadow = rules.over(id, shadow);
        match column {
            ColumnRef::Simple(cell) => {
                dead += usize::from(!shadow.is_some_and(|shadow| shadow.deletes(cell.timestamp_us)));
            }
            ColumnRef::Complex(complex) => dead += live_elements(&complex, shadow, rules.alike(id), now_s)?.1,
        }
    }
    let expired = row
        .liveness()
        .is_some_and(|liveness| !shadows(liveness.timestamp_us));
    Ok(match dead {
        0 => usize::from(deletion.is_some() || expired),
        dead => dead,
    })
}

/// Returns the live elements, and the number of elements that are dead and not shadowed.
fn live_elements<'a>(
    complex: &ComplexRef<'a>,
    shadow: Option<Deletion>,
    alike: Option<&CqlType>,
    now_s: i64,
) -> Result<(Option<LiveElements<'a>>, usize), RowError> {
    let shadow = Deletion::max(shadow, complex.deletion);
    let mut elements = Vec::new();
    let mut dead = 0;
    for element in complex.cells() {
        let (path, cell) = element?;
        if !shadow.is_some_and(|shadow| shadow.deletes(cell.timestamp_us)) {
            dead += usize::from(!cell.is_live(now_s));
            elements.push((path, cell));
        }
    }
    if let Some(path_type) = alike {
        merge_alike(path_type, &mut elements);
        dead = elements.iter().filter(|(_, cell)| !cell.is_live(now_s)).count();
    }
    let alive = elements.len() > dead;
    Ok((alive.then_some(LiveElements { elements, now_s }), dead))
}

/// Sorts elements in CQL's order. Of elements that compare as equal, the one that reconciles as newest is kept.
pub fn sort_elements(ty: &CqlType, elements: &mut Elements<'_>) {
    let path_type = match ty {
        CqlType::List { .. } => &CqlType::TIMEUUID,
        CqlType::Set { element, .. } => element.as_ref(),
        CqlType::Map { key, .. } => key.as_ref(),
        // A user type's elements are already in field order, and the other types have no paths.
        CqlType::Udt { .. }
        | CqlType::Native(_)
        | CqlType::Tuple(_)
        | CqlType::Vector { .. }
        | CqlType::Custom(_) => return,
    };
    if is_byte_order(path_type) {
        return;
    }
    sort_merging(path_type, elements);
}

/// Merges elements whose paths are equal but differ in bytes: the one that reconciles as newest is kept. The result ascends by path bytes,
/// as before.
pub(crate) fn merge_alike(path_type: &CqlType, elements: &mut Elements<'_>) {
    if elements.len() > 1 {
        sort_merging(path_type, elements);
        elements.sort_unstable_by_key(|(path, _)| *path);
    }
}

fn sort_merging(path_type: &CqlType, elements: &mut Elements<'_>) {
    elements.sort_by(|(a, _), (b, _)| compare(path_type, a, b));
    elements.dedup_by(|later, kept| {
        if compare(path_type, later.0, kept.0) != Ordering::Equal {
            return false;
        }
        if reconcile_cells(&later.1, &kept.1).is_gt() {
            *kept = *later;
        }
        true
    });
}

/// Returns the serialized value, as in result rows, of a column that isn't frozen. `elements` are the live elements in CQL order.
pub fn complex_value(ty: &CqlType, elements: &[(&[u8], CellRef<'_>)]) -> Bytes {
    let mut out = Vec::new();
    match ty {
        CqlType::Udt { definition, .. } => {
            let mut elements = elements.iter().peekable();
            for position in 0..definition.fields.len() {
                let path = (position as u16).to_be_bytes();
                while elements.next_if(|(other, _)| **other < path[..]).is_some() {}
                match elements.next_if(|(other, _)| **other == path) {
                    Some((_, cell)) => put_value(&mut out, cell.value),
                    None => out.extend_from_slice(&(-1i32).to_be_bytes()),
                }
            }
        }
        CqlType::Set { .. } => {
            out.extend_from_slice(&(elements.len() as i32).to_be_bytes());
            elements.iter().for_each(|(path, _)| put_value(&mut out, path));
        }
        CqlType::Map { .. } => {
            out.extend_from_slice(&(elements.len() as i32).to_be_bytes());
            for (path, cell) in elements {
                put_value(&mut out, path);
                put_value(&mut out, cell.value);
            }
        }
        CqlType::List { .. }
        | CqlType::Native(_)
        | CqlType::Tuple(_)
        | CqlType::Vector { .. }
        | CqlType::Custom(_) => {
            out.extend_from_slice(&(elements.len() as i32).to_be_bytes());
            elements
                .iter()
                .for_each(|(_, cell)| put_value(&mut out, cell.value));
        }
    }
    out.into()
}

fn put_value(out: &mut Vec<u8>, value: &[u8]) {
    out.extend_from_slice(&(value.len() as i32).to_be_bytes());
    out.extend_from_slice(value);
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod read_tests;
