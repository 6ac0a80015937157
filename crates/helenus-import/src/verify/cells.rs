//! The cells of a row on both sides, by their places.

use std::collections::BTreeMap;

use bytes::Bytes;
use helenus_cql::types::CqlType;
use helenus_cql::value::{compare, read_elements, read_map, read_nullable_elements, read_tuple};
use helenus_row::{Cell, CellKind, ColumnData, ColumnId, Deletion, Row};

use crate::table::TableLayout;

/// The place of a cell within its row.
///
/// Elements of sets and maps have their serialized key as path, fields of user types their position. CQL doesn't return the paths of
/// lists. An element of a list has its write time, its number among equal elements, and its value instead.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Position in the layout's columns.
    pub column: ColumnId,
    /// `None` for a column of one cell.
    pub path: Option<Bytes>,
}

/// A cell of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceCell {
    /// Empty for tombstones.
    pub value: Bytes,
    pub written_us: i64,
    /// `None` if the cell doesn't expire.
    pub expires_at_s: Option<i64>,
    pub is_tombstone: bool,
}

/// A live cell of the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetCell {
    pub value: Bytes,
    /// `None` for counters, which have no write time in CQL.
    pub written_us: Option<i64>,
    /// `None` if the cell doesn't expire.
    pub expires_at_s: Option<i64>,
}

/// The cells of a row that a target returned.
#[derive(Clone, Debug, Default)]
pub struct TargetCells {
    pub cells: BTreeMap<Place, TargetCell>,
    /// Places of the elements of lists, in the order of the lists.
    pub list_order: BTreeMap<ColumnId, Vec<Place>>,
}

/// The cells of a merged row, with the deletions over them.
#[derive(Clone, Debug, Default)]
pub struct SourceCells {
    pub cells: BTreeMap<Place, SourceCell>,
    pub list_order: BTreeMap<ColumnId, Vec<Place>>,
    /// The strongest deletion of the partition, of ranges and of the row.
    deletion: Option<Deletion>,
    /// Deletions of whole collections.
    of_columns: BTreeMap<ColumnId, Deletion>,
    /// Time in s up to which the row exists without its compared cells: `None` without a liveness and hidden cells, `i64::MAX` without a TTL.
    pub alive_until_s: Option<i64>,
}

impl SourceCells {
    /// Returns the cells that no deletion covers.
    pub fn new(layout: &TableLayout, row: Option<&Row>, covering: Option<Deletion>) -> SourceCells {
        let Some(row) = row else {
            return SourceCells {
                deletion: covering,
                ..SourceCells::default()
            };
        };
        let mut source = SourceCells {
            deletion: Deletion::max(covering, row.deletion),
            ..SourceCells::default()
        };
        source.alive_until_s = row
            .liveness
            .filter(|liveness| !source.is_deleted(None, liveness.timestamp_us))
            .map(|liveness| liveness.expiry.map_or(i64::MAX, |expiry| expiry.expires_at_s));
        for (column, data) in &row.columns {
            match data {
                ColumnData::Simple(cell) if is_hidden(layout, *column) => source.add_hidden(*column, cell),
                ColumnData::Simple(cell) => source.add(*column, None, cell),
                ColumnData::Complex(complex) => {
                    if let Some(deletion) = complex.deletion {
                        source.of_columns.insert(*column, deletion);
                    }
                    if is_list(layout, *column) {
                        source.add_list(*column, &complex.cells);
                        continue;
                    }
                    for (path, cell) in &complex.cells {
                        source.add(*column, Some(path.clone()), cell);
                    }
                }
            }
        }
        source
    }

    /// Returns the time in µs up to which the source has deleted the cells at the place. `None` if nothing there is deleted.
    pub fn deleted_us(&self, place: &Place) -> Option<i64> {
        let of_column = self.of_columns.get(&place.column).copied();
        let deletion = Deletion::max(self.deletion, of_column).map(|deletion| deletion.timestamp_us);
        // A tombstone, or a cell that has expired.
        deletion.max(self.cells.get(place).map(|cell| cell.written_us))
    }

    fn is_deleted(&self, column: Option<ColumnId>, written_us: i64) -> bool {
        let of_column = column.and_then(|column| self.of_columns.get(&column).copied());
        Deletion::max(self.deletion, of_column).is_some_and(|deletion| deletion.deletes(written_us))
    }

    /// Notes that a row exists because of a cell that CQL doesn't return, as in compact tables.
    fn add_hidden(&mut self, column: ColumnId, cell: &Cell) {
        let is_deleted = self.is_deleted(Some(column), cell.timestamp_us);
        let cell = of_packed(cell);
        if !is_deleted && !cell.is_tombstone {
            self.alive_until_s = self
                .alive_until_s
                .max(Some(cell.expires_at_s.unwrap_or(i64::MAX)));
        }
    }

    fn add(&mut self, column: ColumnId, path: Option<Bytes>, cell: &Cell) {
        if !self.is_deleted(Some(column), cell.timestamp_us) {
            self.cells.insert(Place { column, path }, of_packed(cell));
        }
    }

    /// Adds the elements of a list in the order in which CQL returns them.
    fn add_list(&mut self, column: ColumnId, cells: &[(Bytes, Cell)]) {
        let mut cells: Vec<&(Bytes, Cell)> = cells.iter().collect();
        // Packed rows have paths in the order of bytes.
        cells.sort_by(|(left, _), (right, _)| compare(&CqlType::TIMEUUID, left, right));
        for (_, cell) in cells {
            // A tombstone of an element has no value, and deletes an element that CQL can't name.
            if cell.borrow().is_tombstone() || self.is_deleted(Some(column), cell.timestamp_us) {
                continue;
            }
            let place = list_place(column, cell.timestamp_us, &cell.value, |place| {
                self.cells.contains_key(place)
            });
            self.list_order.entry(column).or_default().push(place.clone());
            self.cells.insert(place, of_packed(cell));
        }
    }
}

impl SourceCell {
    /// Returns true if the cell has a value at `now_s`.
    pub fn is_live(&self, now_s: i64) -> bool {
        !self.is_tombstone && self.expires_at_s.is_none_or(|expires_at_s| now_s < expires_at_s)
    }
}

impl TargetCells {
    /// Adds the value of a column, as CQL returns it. `written` and `ttl` are the values of `writetime` and `ttl`: of one cell, or a list
    /// of those of all elements. `None` for counters.
    ///
    /// # Errors
    /// In words, if a value isn't one of its type.
    pub fn add(
        &mut self,
        column: ColumnId,
        ty: &CqlType,
        value: &Bytes,
        written: Option<&Bytes>,
        ttl: Option<&Bytes>,
        read_at_s: i64,
    ) -> Result<(), String> {
        if !ty.is_multicell() {
            let cell = TargetCell {
                value: value.clone(),
                written_us: written.map(|written| long(written)).transpose()?,
                expires_at_s: ttl
                    .map(|ttl| int(ttl))
                    .transpose()?
                    .map(|ttl_s| read_at_s + ttl_s),
            };
            self.cells.insert(Place { column, path: None }, cell);
            return Ok(());
        }
        let of_elements = |times: Option<&Bytes>| {
            times.map_or(Ok(Vec::new()), |times| read_nullable_elements(times).map(owned))
        };
        let (written, ttls) = (of_elements(written)?, of_elements(ttl)?);
        for (position, (path, value)) in elements(ty, value)?.into_iter().enumerate() {
            let Some(value) = value else {
                continue;
            };
            let time = |times: &[Option<Vec<u8>>]| times.get(position).cloned().flatten();
            let written_us = time(&written).map(|written| long(&written)).transpose()?;
            let cell = TargetCell {
                value,
                written_us,
                expires_at_s: time(&ttls)
                    .map(|ttl| int(&ttl))
                    .transpose()?
                    .map(|ttl_s| read_at_s + ttl_s),
            };
            let place = match path {
                Some(path) => Place {
                    column,
                    path: Some(path),
                },
                None => {
                    let written_us = written_us.unwrap_or_default();
                    let is_known = |place: &Place| self.cells.contains_key(place);
                    let place = list_place(column, written_us, &cell.value, is_known);
                    self.list_order.entry(column).or_default().push(place.clone());
                    place
                }
            };
            self.cells.insert(place, cell);
        }
        Ok(())
    }
}

/// A path and a value. The path is `None` in lists, the value is `None` in fields that are null.
type Element = (Option<Bytes>, Option<Bytes>);

fn elements(ty: &CqlType, value: &Bytes) -> Result<Vec<Element>, String> {
    let own = |part: &[u8]| value.slice_ref(part);
    Ok(match ty {
        CqlType::Set { .. } => {
            let elements = read_elements(ty, value)?.into_iter();
            elements
                .map(|path| (Some(own(path)), Some(Bytes::new())))
                .collect()
        }
        CqlType::Map { .. } => {
            let pairs = read_map(ty, value)?.into_iter();
            pairs
                .map(|(path, value)| (Some(own(path)), Some(own(value))))
                .collect()
        }
        CqlType::Udt { .. } => {
            let fields = read_tuple(ty, value)?.into_iter().enumerate();
            let path = |position: usize| Bytes::copy_from_slice(&(position as u16).to_be_bytes());
            fields
                .map(|(position, field)| (Some(path(position)), field.map(own)))
                .collect()
        }
        CqlType::List { .. }
        | CqlType::Native(_)
        | CqlType::Tuple(_)
        | CqlType::Vector { .. }
        | CqlType::Custom(_) => {
            let elements = read_elements(ty, value)?.into_iter();
            elements.map(|element| (None, Some(own(element)))).collect()
        }
    })
}

fn owned(times: Vec<Option<&[u8]>>) -> Vec<Option<Vec<u8>>> {
    times.into_iter().map(|time| time.map(<[u8]>::to_vec)).collect()
}

fn list_place(column: ColumnId, written_us: i64, value: &[u8], is_known: impl Fn(&Place) -> bool) -> Place {
    let mut number = 0_u32;
    loop {
        let path = [&written_us.to_be_bytes()[..], &number.to_be_bytes(), value].concat();
        let place = Place {
            column,
            path: Some(path.into()),
        };
        if !is_known(&place) {
            return place;
        }
        number += 1;
    }
}

fn is_hidden(layout: &TableLayout, column: ColumnId) -> bool {
    let column = layout.columns.get(column.0 as usize);
    column.is_some_and(|column| column.is_hidden)
}

fn is_list(layout: &TableLayout, column: ColumnId) -> bool {
    let column = layout.columns.get(column.0 as usize);
    column.is_some_and(|column| matches!(column.ty, CqlType::List { .. }))
}

fn of_packed(cell: &Cell) -> SourceCell {
    SourceCell {
        value: cell.value.clone(),
        written_us: cell.timestamp_us,
        expires_at_s: match cell.kind {
            CellKind::Expiring(expiry) => Some(expiry.expires_at_s),
            CellKind::Live | CellKind::Counter | CellKind::Tombstone { .. } => None,
        },
        is_tombstone: matches!(cell.kind, CellKind::Tombstone { .. }),
    }
}

fn long(bytes: &[u8]) -> Result<i64, String> {
    let found = bytes.len();
    let bytes = bytes
        .try_into()
        .map_err(|_| format!("a write time has {found} bytes; 8 are expected"))?;
    Ok(i64::from_be_bytes(bytes))
}

fn int(bytes: &[u8]) -> Result<i64, String> {
    let found = bytes.len();
    let bytes = bytes
        .try_into()
        .map_err(|_| format!("a TTL has {found} bytes; 4 are expected"))?;
    Ok(i64::from(i32::from_be_bytes(bytes)))
}
