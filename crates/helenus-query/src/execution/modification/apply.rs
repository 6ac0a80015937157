//! Execution of operations: from bound values to cells (Cassandra's `Constants`, `Lists`, `Sets`, `Maps`, `UserTypes` and
//! `UpdateParameters`).

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_cql::types::CqlType;
use helenus_cql::value;
use helenus_cql::value::read_nullable_elements;
use helenus_row::packed::CellRef;
use helenus_row::read::LiveColumn;
use helenus_row::row::{Cell, ColumnData, Deletion, Expiry};
use helenus_row::{ColumnId, RowBuilder};

use super::list_ids;
use crate::analysis::modification::operation::{Action, Operation};
use crate::analysis::terms::Term;
use crate::analysis::{EvalContext, functions};
use crate::execution::writes::counters::CounterState;
use crate::request::BoundValue;
use crate::rows::OwnedRow;
use crate::schema::{Column, Table, constraint};

/// The parameters of one statement's writes.
#[derive(Clone, Copy)]
pub struct WriteParams<'a> {
    pub table: &'a Arc<Table>,
    pub eval: EvalContext<'a>,
    pub timestamp_us: i64,
    pub now_s: i64,
    pub expiry: Option<Expiry>,
}

impl WriteParams<'_> {
    fn column(&self, operation: &Operation) -> Result<&Column, CqlError> {
        let column = self.table.columns.get(operation.column);
        column
            .map(AsRef::as_ref)
            .ok_or_else(|| CqlError::Server(format!("no column {} in {}", operation.column, self.table.name)))
    }

    pub fn deletion(&self) -> Deletion {
        Deletion {
            timestamp_us: self.timestamp_us,
            local_deletion_s: self.now_s,
        }
    }

    /// Returns the deletion of everything older than an overwrite, which itself has the timestamp.
    fn overwrite_deletion(&self) -> Deletion {
        Deletion {
            timestamp_us: self.timestamp_us.saturating_sub(1),
            local_deletion_s: self.now_s,
        }
    }

    pub fn cell(&self, value: Bytes) -> Cell {
        match self.expiry {
            Some(expiry) => Cell::expiring(self.timestamp_us, expiry, value),
            None => Cell::live(self.timestamp_us, value),
        }
    }

    fn tombstone(&self) -> Cell {
        Cell::tombstone(self.timestamp_us, self.now_s)
    }

    fn cell_or_tombstone(&self, value: BoundValue) -> Option<Cell> {
        match value {
            BoundValue::Set(value) => Some(self.cell(value)),
            BoundValue::Null => Some(self.tombstone()),
            BoundValue::Unset => None,
        }
    }
}

/// Adds the cells of an operation to the row. `existing` is the stored row, for operations that read it.
///
/// # Errors
/// Cassandra's, for invalid values.
pub fn apply(
    operation: &Operation,
    params: &WriteParams<'_>,
    existing: Option<&OwnedRow>,
    row: &mut RowBuilder,
) -> Result<(), CqlError> {
    let id = operation.id;
    let column = || params.column(operation);
    match &operation.action {
        Action::Set(term) if !operation.is_multicell => {
            let value = term.bind(&params.eval)?;
            if params.table.has_constraints {
                check_constraints(column()?, &value)?;
            }
            if let Some(cell) = params.cell_or_tombstone(value) {
                row.cell(id, cell);
            }
            Ok(())
        }
        Action::Set(term) => set_elements(column()?, params, term.bind(&params.eval)?, row),
        Action::Delete if operation.is_multicell => {
            row.delete_complex(id, params.deletion());
            Ok(())
        }
        Action::Delete => {
            row.cell(id, params.tombstone());
            Ok(())
        }
        // Counters are computed where the partition is locked.
        Action::Increment { .. } => Ok(()),
        Action::Add(term) => match term.bind(&params.eval)? {
            BoundValue::Set(value) => add_elements(column()?, params, &value, row),
            BoundValue::Null | BoundValue::Unset => Ok(()),
        },
        Action::AddValue(term) => change_value(column()?, params, functions::sum_of, term, existing, row),
        Action::SubtractValue(term) => {
            change_value(column()?, params, functions::difference_of, term, existing, row)
        }
        Action::Prepend(term) => prepend(column()?, params, term, row),
        Action::DiscardValues(term) => discard_values(column()?, params, term, existing, row),
        Action::DiscardKeys { keys, ty } => {
            if let BoundValue::Set(keys) = keys.bind(&params.eval)? {
                let discarded = elements(ty, &keys)?;
                let tombstone = |key| (keys.slice_ref(key), params.tombstone());
                row.complex_cells(id, discarded.into_iter().map(tombstone));
            }
            Ok(())
        }
        Action::SetIndex { index, value } => set_index(column()?, params, index, value, existing, row),
        Action::SetKey { key, value } => {
            // Errors in either term are reported before a null key.
            let (key, value) = (key.bind(&params.eval)?, value.bind(&params.eval)?);
            let key = map_key(key)?;
            if let Some(cell) = params.cell_or_tombstone(value) {
                row.complex_cell(id, key, cell);
            }
            Ok(())
        }
        Action::SetField { position, value } => {
            if let Some(cell) = params.cell_or_tombstone(value.bind(&params.eval)?) {
                row.complex_cell(id, field_path(*position), cell);
            }
            Ok(())
        }
        Action::DeleteIndex(index) => delete_index(column()?, params, index, existing, row),
        Action::DeleteKey(key) => {
            let key = if matches!(column()?.ty, CqlType::Map { .. }) {
                map_key(key.bind(&params.eval)?)?
            } else {
                match key.bind(&params.eval)? {
                    BoundValue::Set(key) => key,
                    BoundValue::Null => return Err(CqlError::invalid("Invalid null set element")),
                    BoundValue::Unset => return Ok(()),
                }
            };
            row.complex_cell(id, key, params.tombstone());
            Ok(())
        }
        Action::Refused(message) => Err(CqlError::invalid(message)),
        Action::DeleteField(position) => {
            row.complex_cell(id, field_path(*position), params.tombstone());
            Ok(())
        }
    }
}

/// Checks a written value. An unset value is no value, and leaves the column as it is.
fn check_constraints(column: &Column, value: &BoundValue) -> Result<(), CqlError> {
    match value {
        BoundValue::Set(value) => column.check_constraints(Some(value)),
        BoundValue::Null => column.check_constraints(None),
        BoundValue::Unset if column.refuses_null() => Err(constraint::missing(&column.name)),
        BoundValue::Unset => Ok(()),
    }
}

fn field_path(position: u16) -> Bytes {
    Bytes::copy_from_slice(&position.to_be_bytes())
}

fn elements<'v>(ty: &CqlType, value: &'v [u8]) -> Result<Vec<&'v [u8]>, CqlError> {
    value::read_elements(ty, value).map_err(CqlError::Invalid)
}

/// Replaces a whole collection or user type.
fn set_elements(
    column: &Column,
    params: &WriteParams<'_>,
    value: BoundValue,
    row: &mut RowBuilder,
) -> Result<(), CqlError> {
    if matches!(value, BoundValue::Unset) {
        return Ok(());
    }
    row.delete_complex(column.id, params.overwrite_deletion());
    match value {
        BoundValue::Set(value) => add_elements(column, params, &value, row),
        BoundValue::Null | BoundValue::Unset => Ok(()),
    }
}

/// Adds to the number or text that the column has, or that an earlier operation of the statement has set, or subtracts from it. Does
/// nothing if there is no value. `function_of` returns the function for the column's type.
fn change_value(
    column: &Column,
    params: &WriteParams<'_>,
    function_of: fn(&CqlType) -> Option<Arc<dyn functions::ScalarFunction>>,
    term: &Term,
    existing: Option<&OwnedRow>,
    row: &mut RowBuilder,
) -> Result<(), CqlError> {
    let BoundValue::Set(operand) = term.bind(&params.eval)? else {
        return Ok(());
    };
    let given = row.row().columns.iter().find_map(|(id, data)| match data {
        ColumnData::Simple(cell) if *id == column.id => Some(cell.value.clone()),
        _ => None,
    });
    let current = match (given, existing) {
        (Some(given), _) => Some(given),
        (None, Some(existing)) => match existing.live()?.column(column.id) {
            Some(LiveColumn::Simple(cell)) => Some(existing.packed().slice(cell.value)),
            _ => None,
        },
        (None, None) => None,
    };
    let (Some(current), Some(function)) = (current, function_of(&column.ty)) else {
        return Ok(());
    };
    let value = function.call(&[Some(current), Some(operand)], &params.eval)?;
    column.check_constraints(value.as_deref())?;
    if let Some(cell) = params.cell_or_tombstone(value.map_or(BoundValue::Null, BoundValue::Set)) {
        row.cell(column.id, cell);
    }
    Ok(())
}

/// Adds the elements of a serialized collection or the fields of a user type.
fn add_elements(
    column: &Column,
    params: &WriteParams<'_>,
    value: &Bytes,
    row: &mut RowBuilder,
) -> Result<(), CqlError> {
    let id = column.id;
    match &column.ty {
        CqlType::Map { .. } => {
            let pairs = value::read_map(&column.ty, value).map_err(CqlError::Invalid)?;
            let cell = |(key, mapped)| (value.slice_ref(key), params.cell(value.slice_ref(mapped)));
            row.complex_cells(id, pairs.into_iter().map(cell));
        }
        CqlType::Set { .. } => {
            let elements = elements(&column.ty, value)?;
            let cell = |element| (value.slice_ref(element), params.cell(Bytes::new()));
            row.complex_cells(id, elements.into_iter().map(cell));
        }
        CqlType::Udt { .. } => {
            let fields = value::read_tuple(&column.ty, value).map_err(CqlError::Invalid)?;
            for (position, field) in (0u16..).zip(fields) {
                if let Some(field) = field {
                    row.complex_cell(id, field_path(position), params.cell(value.slice_ref(field)));
                }
            }
        }
        _ => {
            let elements = elements(&column.ty, value)?;
            let paths = list_ids::appended(params.eval.clock, elements.len());
            let cell = |(element, path)| (path, params.cell(value.slice_ref(element)));
            row.complex_cells(id, elements.into_iter().zip(paths).map(cell));
        }
    }
    Ok(())
}

fn prepend(
    column: &Column,
    params: &WriteParams<'_>,
    term: &Term,
    row: &mut RowBuilder,
) -> Result<(), CqlError> {
    let BoundValue::Set(value) = term.bind(&params.eval)? else {
        return Ok(());
    };
    let elements = elements(&column.ty, &value)?;
    let paths = list_ids::prepended(params.eval.clock, elements.len());
    let cell = |(element, path)| (path, params.cell(value.slice_ref(element)));
    row.complex_cells(column.id, elements.into_iter().zip(paths).map(cell));
    Ok(())
}

fn map_key(key: BoundValue) -> Result<Bytes, CqlError> {
    match key {
        BoundValue::Set(key) => Ok(key),
        BoundValue::Null => Err(CqlError::invalid("Invalid null map key")),
        BoundValue::Unset => Err(CqlError::invalid("Invalid unset map key")),
    }
}

/// Returns the paths and values of a list's elements after the statement's operations so far.
fn list_elements(
    column: &Column,
    params: &WriteParams<'_>,
    existing: Option<&OwnedRow>,
    row: &RowBuilder,
) -> Result<Vec<(Bytes, Bytes)>, CqlError> {
    let is_touched = row.row().columns.iter().any(|(id, _)| *id == column.id);
    let changed;
    let current = match is_touched {
        true => {
            changed = OwnedRow::with(existing, row.build(), params.now_s)?;
            changed.as_ref()
        }
        false => existing,
    };
    let Some(current) = current else {
        return Ok(Vec::new());
    };
    let live = current.live()?;
    let Some(LiveColumn::Complex(elements)) = live.column(column.id) else {
        return Ok(Vec::new());
    };
    let own = |(path, cell): (&[u8], CellRef<'_>)| {
        (current.packed().slice(path), current.packed().slice(cell.value))
    };
    Ok(elements
        .clone()
        .in_cql_order(&column.ty)
        .into_iter()
        .map(own)
        .collect())
}

fn discard_values(
    column: &Column,
    params: &WriteParams<'_>,
    term: &Term,
    existing: Option<&OwnedRow>,
    row: &mut RowBuilder,
) -> Result<(), CqlError> {
    let BoundValue::Set(discarded) = term.bind(&params.eval)? else {
        return Ok(());
    };
    let discarded = read_nullable_elements(&discarded).map_err(CqlError::Invalid)?;
    let discarded: HashSet<&[u8]> = discarded.into_iter().flatten().collect();
    let mut found = list_elements(column, params, existing, row)?;
    found.retain(|(_, element)| discarded.contains(element.as_ref()));
    let tombstone = |(path, _)| (path, params.tombstone());
    row.complex_cells(column.id, found.into_iter().map(tombstone));
    Ok(())
}

/// Returns the path of the element at an index. `verb` is used in messages.
fn path_at(
    elements: impl FnOnce() -> Result<Vec<(Bytes, Bytes)>, CqlError>,
    index: BoundValue,
    verb: &str,
) -> Result<Bytes, CqlError> {
    let index = match index {
        BoundValue::Set(index) => index,
        BoundValue::Null => return Err(CqlError::invalid("Invalid null value for list index")),
        BoundValue::Unset => return Err(CqlError::invalid("Invalid unset value for list index")),
    };
    let index = index
        .as_ref()
        .try_into()
        .map(i32::from_be_bytes)
        .map_err(|_| CqlError::invalid("Invalid empty value for list index"))?;
    let elements = elements()?;
    if elements.is_empty() {
        return Err(CqlError::invalid(format!(
            "Attempted to {verb} a list which is null"
        )));
    }
    let found = usize::try_from(index).ok().and_then(|at| elements.get(at));
    found.map(|(path, _)| path.clone()).ok_or_else(|| {
        CqlError::invalid(format!(
            "List index {index} out of bound, list has size {}",
            elements.len()
        ))
    })
}

fn set_index(
    column: &Column,
    params: &WriteParams<'_>,
    index: &Term,
    value: &Term,
    existing: Option<&OwnedRow>,
    row: &mut RowBuilder,
) -> Result<(), CqlError> {
    // Errors in either term are reported before a missing element.
    let index = index.bind(&params.eval)?;
    let value = value.bind(&params.eval)?;
    let path = path_at(
        || list_elements(column, params, existing, row),
        index,
        "set an element on",
    )?;
    if let Some(cell) = params.cell_or_tombstone(value) {
        row.complex_cell(column.id, path, cell);
    }
    Ok(())
}

fn delete_index(
    column: &Column,
    params: &WriteParams<'_>,
    index: &Term,
    existing: Option<&OwnedRow>,
    row: &mut RowBuilder,
) -> Result<(), CqlError> {
    let index = index.bind(&params.eval)?;
    if matches!(index, BoundValue::Unset) {
        return Ok(());
    }
    let path = path_at(
        || list_elements(column, params, existing, row),
        index,
        "delete an element from",
    )?;
    row.complex_cell(column.id, path, params.tombstone());
    Ok(())
}

/// Returns the amount of an increment. `None` if it is unset.
pub fn counter_delta(
    delta: &Term,
    is_negated: bool,
    eval: &EvalContext<'_>,
) -> Result<Option<i64>, CqlError> {
    let bytes = match delta.bind(eval)? {
        BoundValue::Set(bytes) => bytes,
        BoundValue::Null => return Err(CqlError::invalid("Invalid null value for counter increment")),
        BoundValue::Unset => return Ok(None),
    };
    let delta = bytes
        .as_ref()
        .try_into()
        .map(i64::from_be_bytes)
        .map_err(|_| CqlError::invalid("Invalid null value for counter increment"))?;
    if !is_negated {
        return Ok(Some(delta));
    }
    delta.checked_neg().map(Some).ok_or_else(|| {
        CqlError::invalid(format!(
            "The negation of {delta} overflows supported counter precision (signed 8 bytes integer)"
        ))
    })
}

/// Returns the state of a counter column in a stored row.
pub fn counter_state(
    stored: Option<&crate::rows::StoredRow>,
    id: ColumnId,
) -> Result<CounterState, CqlError> {
    let Some(stored) = stored else {
        return Ok(CounterState::Absent);
    };
    let shadow = Deletion::max(stored.shadow, stored.packed.deletion());
    let column = stored.packed.column(id).map_err(crate::rows::corrupt)?;
    let Some(helenus_row::ColumnRef::Simple(cell)) = column else {
        return Ok(CounterState::Absent);
    };
    if shadow.is_some_and(|shadow| shadow.deletes(cell.timestamp_us)) {
        return Ok(CounterState::Absent);
    }
    Ok(match cell.counter_total() {
        Some(total) => CounterState::Total {
            total,
            timestamp_us: cell.timestamp_us,
        },
        None => CounterState::Deleted,
    })
}
