//! Packed rows in transfer, checked and with the table's column ids.

use bytes::Bytes;
use helenus_cql::types::CqlType;
use helenus_cql::value::{as_bound, in_order, is_empty_meaningless, validate, validate_bound};
use helenus_row::packed::ComplexRef;
use helenus_row::{Cell, CellKind, CellRef, ColumnId, ColumnRef, KeyKind, RowBuilder, RowRef};

use super::refusal::Refusal;
use super::times::{check_deletion, check_deletion_s, check_expiry, check_timestamp_us};
use crate::schema::{Column, ColumnKind, Table};

/// Bytes of a path of a list, which is a version 1 UUID.
const LIST_PATH_LEN: usize = 16;
/// Bytes of a counter's total.
const TOTAL_LEN: usize = 8;

/// Decodes the packed rows of a blob.
pub(super) struct RowDecoder<'p> {
    pub table: &'p Table,
    /// Indexes in [`Table::columns`] of the statement's columns.
    pub columns: &'p [usize],
}

/// A row with the table's column ids.
pub(super) struct DecodedRow {
    pub builder: RowBuilder,
    /// The oldest timestamp in the row. `None` if the row is empty.
    pub oldest_us: Option<i64>,
}

impl DecodedRow {
    fn see(&mut self, timestamp_us: i64) -> Result<(), Refusal> {
        check_timestamp_us(timestamp_us)?;
        self.oldest_us = Some(
            self.oldest_us
                .map_or(timestamp_us, |oldest_us| oldest_us.min(timestamp_us)),
        );
        Ok(())
    }
}

impl RowDecoder<'_> {
    /// Returns the row of packed bytes. `kind` is `Static` or `Row`.
    pub fn decode(&self, packed: Bytes, kind: KeyKind) -> Result<DecodedRow, Refusal> {
        let packed = RowRef::parse(packed)?;
        let mut row = DecodedRow {
            builder: RowBuilder::new(),
            oldest_us: None,
        };
        if packed.exact_clustering()?.is_some() {
            return Err(Refusal::new(
                "the packed row has clustering values; leave them to the item",
            ));
        }
        self.add_head(&packed, kind, &mut row)?;
        for column in packed.columns() {
            let (id, data) = column?;
            let column = self.column(id, kind)?;
            add_column(&packed, column, data, &mut row).map_err(|refusal| refusal.of_column(column))?;
        }
        Ok(row)
    }

    /// Adds the liveness and the deletion of a row.
    fn add_head(&self, packed: &RowRef, kind: KeyKind, row: &mut DecodedRow) -> Result<(), Refusal> {
        if let Some(liveness) = packed.liveness() {
            let without = match kind {
                KeyKind::Row if self.table.is_counter => Some("rows of counter tables have"),
                KeyKind::Row if self.table.compact.is_some() => Some("rows of compact tables have"),
                KeyKind::Row => None,
                KeyKind::Static | KeyKind::Header => Some("a static row has"),
            };
            if let Some(without) = without {
                return Err(Refusal::new(format!("{without} no liveness; leave it out")));
            }
            row.see(liveness.timestamp_us)?;
            if let Some(expiry) = liveness.expiry {
                check_expiry(expiry)?;
            }
            row.builder.liveness(liveness);
        }
        if let Some(deletion) = packed.deletion() {
            if kind == KeyKind::Static {
                return Err(Refusal::new(
                    "a static row has no deletion; delete its cells or the partition",
                ));
            }
            check_deletion(deletion)?;
            row.see(deletion.timestamp_us)?;
            row.builder.delete_row(deletion);
        }
        Ok(())
    }

    /// Returns the column of a position in the statement's list.
    fn column(&self, id: ColumnId, kind: KeyKind) -> Result<&Column, Refusal> {
        let place = usize::try_from(id.0).ok().and_then(|at| self.columns.get(at));
        let Some(column) = place.and_then(|place| self.table.columns.get(*place)) else {
            return Err(Refusal::new(format!(
                "the packed row has a column at position {}, and the statement names {} columns",
                id.0,
                self.columns.len()
            )));
        };
        let is_static = column.kind == ColumnKind::Static;
        match (is_static, kind) {
            (true, KeyKind::Row) => Err(Refusal::new(
                "a static column belongs to the static row of the partition",
            )
            .of_column(column)),
            (false, KeyKind::Static) => Err(Refusal::new(
                "the column is not static, so it does not belong to the static row",
            )
            .of_column(column)),
            _ => Ok(column),
        }
    }
}

/// Adds the cells of a column.
fn add_column(
    packed: &RowRef,
    column: &Column,
    data: ColumnRef<'_>,
    row: &mut DecodedRow,
) -> Result<(), Refusal> {
    match data {
        ColumnRef::Simple(cell) if !column.ty.is_multicell() => {
            row.see(cell.timestamp_us)?;
            let mut cell = checked_cell(packed, &cell, column.ty.is_counter())?;
            if matches!(cell.kind, CellKind::Live | CellKind::Expiring(_)) {
                validate_bound(&column.ty, &cell.value)?;
                cell.value = as_bound(&column.ty, &cell.value);
            }
            row.builder.cell(column.id, cell);
            Ok(())
        }
        ColumnRef::Complex(complex) if column.ty.is_multicell() => {
            add_elements(packed, column, &complex, row)
        }
        ColumnRef::Simple(_) => Err(Refusal::new(format!(
            "the column has one cell, but the type {} has a cell for each element",
            column.ty
        ))),
        ColumnRef::Complex(_) => Err(Refusal::new(format!(
            "the column has a cell for each element, but the type {} has one cell",
            column.ty
        ))),
    }
}

/// Adds the elements of a collection, or the fields of a user type.
fn add_elements(
    packed: &RowRef,
    column: &Column,
    complex: &ComplexRef<'_>,
    row: &mut DecodedRow,
) -> Result<(), Refusal> {
    if let Some(deletion) = complex.deletion {
        check_deletion(deletion)?;
        row.see(deletion.timestamp_us)?;
        row.builder.delete_complex(column.id, deletion);
    }
    let mut elements = Vec::new();
    for element in complex.cells() {
        let (path, cell) = element?;
        row.see(cell.timestamp_us)?;
        let (path, value_type) = checked_path(&column.ty, packed.slice(path))?;
        let mut cell = checked_cell(packed, &cell, false)?;
        if !matches!(cell.kind, CellKind::Tombstone { .. }) {
            cell.value = element_value(&column.ty, value_type, cell.value)?;
        }
        elements.push((path, cell));
    }
    if !elements.is_empty() {
        row.builder.complex_cells(column.id, elements);
    }
    Ok(())
}

/// Checks the kind and the times of a cell, and the value of a counter.
fn checked_cell(packed: &RowRef, cell: &CellRef<'_>, is_counter: bool) -> Result<Cell, Refusal> {
    match cell.kind {
        CellKind::Tombstone { local_deletion_s } => check_deletion_s(local_deletion_s)?,
        CellKind::Counter if !is_counter => {
            return Err(Refusal::new(
                "the cell is a counter's, but the column is no counter",
            ));
        }
        CellKind::Counter if cell.value.len() != TOTAL_LEN => {
            return Err(Refusal::new(format!(
                "a counter's total has {TOTAL_LEN} bytes, not {}",
                cell.value.len()
            )));
        }
        CellKind::Counter => {}
        CellKind::Live | CellKind::Expiring(_) if is_counter => {
            return Err(Refusal::new(
                "the column is a counter, but the cell is not a counter's",
            ));
        }
        CellKind::Live => {}
        CellKind::Expiring(expiry) => check_expiry(expiry)?,
    }
    Ok(packed.own(cell))
}

/// Returns the path of an element as it is stored, and the type of the element's value. `None` for sets, whose cells have no values.
fn checked_path(ty: &CqlType, path: Bytes) -> Result<(Bytes, Option<&CqlType>), Refusal> {
    match ty {
        CqlType::Set { element, .. } => Ok((stored(element, &path)?, None)),
        CqlType::Map { key, value, .. } => Ok((stored(key, &path)?, Some(value))),
        CqlType::Udt { definition, .. } => {
            let position = path.as_ref().try_into().map(u16::from_be_bytes);
            let field = position
                .ok()
                .and_then(|position| definition.fields.get(usize::from(position)));
            let field = field.ok_or_else(|| {
                Refusal::new(format!(
                    "an element has a path that is no field of the type {ty}, which has {} fields",
                    definition.fields.len()
                ))
            })?;
            Ok((path, Some(&field.ty)))
        }
        CqlType::List { element, .. } => {
            if path.len() != LIST_PATH_LEN {
                return Err(Refusal::new(format!(
                    "an element of a list has a path of {} bytes, not a timeuuid",
                    path.len()
                )));
            }
            validate(&CqlType::TIMEUUID, &path)?;
            Ok((path, Some(element)))
        }
        _ => Err(Refusal::new(format!("the type {ty} has no elements"))),
    }
}

/// Returns the value of an element as it is stored.
fn element_value(column: &CqlType, ty: Option<&CqlType>, value: Bytes) -> Result<Bytes, Refusal> {
    let Some(ty) = ty else {
        return match value.is_empty() {
            true => Ok(value),
            false => Err(Refusal::new("an element of a set has a value beside its path")),
        };
    };
    if value.is_empty() && matches!(column, CqlType::List { .. }) && is_empty_meaningless(ty) {
        return Err(Refusal::new("Null value read when not allowed"));
    }
    stored(ty, &value)
}

/// Checks a part of a collection, and returns it as it is stored.
fn stored(ty: &CqlType, value: &Bytes) -> Result<Bytes, Refusal> {
    validate(ty, value)?;
    Ok(in_order(ty, value))
}
