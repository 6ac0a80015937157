//! Operations of a statement on its columns, resolved and typed (Cassandra's `Operation`).

use helenus_cql::ast;
use helenus_cql::error::CqlError;
use helenus_cql::types::CqlType;
use helenus_row::ColumnId;

use crate::analysis::assignable::part_spec;
use crate::analysis::terms::Term;
use crate::analysis::{PlanContext, column_spec, functions};
use crate::response::ColumnSpec;
use crate::schema::{Column, Table};

/// One operation on one column. It includes those properties of the column that are needed most often.
#[derive(Clone, Debug)]
pub struct Operation {
    /// Index in [`Table::columns`].
    pub column: usize,
    pub id: ColumnId,
    pub is_static: bool,
    /// True if the column's value consists of cells of its own ([`CqlType::is_multicell`]).
    pub is_multicell: bool,
    pub action: Action,
}

impl Operation {
    /// Returns an operation on the column at the index `place`.
    pub fn new(place: usize, column: &Column, action: Action) -> Operation {
        Operation {
            column: place,
            id: column.id,
            is_static: column.is_static(),
            is_multicell: column.ty.is_multicell(),
            action,
        }
    }
}

/// The change that an operation makes. In all variants but `Set` and `Delete`, collections and user types are not frozen.
#[derive(Clone, Debug)]
pub enum Action {
    /// The whole value; null deletes it.
    Set(Term),
    Delete,
    /// Adds to a counter, or subtracts from it.
    Increment {
        delta: Term,
        is_negated: bool,
    },
    /// Adds to a stored number or text, in a statement with conditions or in a transaction.
    AddValue(Term),
    /// Subtracts from a stored number, in a transaction.
    SubtractValue(Term),
    /// Adds elements to a set, entries to a map, or elements to the end of a list.
    Add(Term),
    Prepend(Term),
    /// Removes elements from a list, by value.
    DiscardValues(Term),
    /// Removes elements of a set, or keys of a map; the term is a set.
    DiscardKeys {
        keys: Term,
        ty: CqlType,
    },
    SetIndex {
        index: Term,
        value: Term,
    },
    SetKey {
        key: Term,
        value: Term,
    },
    SetField {
        position: u16,
        value: Term,
    },
    DeleteIndex(Term),
    /// An element of a set, or a key of a map.
    DeleteKey(Term),
    DeleteField(u16),
    /// An operation that can be prepared, but fails with this message when it is executed.
    Refused(String),
}

impl Action {
    /// Returns true if the operation needs to read the row first.
    pub fn requires_read(&self) -> bool {
        matches!(
            self,
            Action::DiscardValues(_)
                | Action::AddValue(_)
                | Action::SubtractValue(_)
                | Action::SetIndex { .. }
                | Action::DeleteIndex(_)
                | Action::Increment { .. }
        )
    }
}

fn invalid<T>(message: String) -> Result<T, CqlError> {
    Err(CqlError::invalid(message))
}

/// Returns the receiver of a list's index, with Cassandra's name for it.
pub fn index_spec(receiver: &ColumnSpec) -> ColumnSpec {
    part_spec(receiver, format!("idx({})", receiver.name), CqlType::INT)
}

pub fn key_spec(receiver: &ColumnSpec, key: &CqlType) -> ColumnSpec {
    part_spec(receiver, format!("key({})", receiver.name), key.clone())
}

pub fn value_spec(receiver: &ColumnSpec, value: &CqlType) -> ColumnSpec {
    part_spec(receiver, format!("value({})", receiver.name), value.clone())
}

pub fn field_spec(receiver: &ColumnSpec, field: &str, ty: &CqlType) -> ColumnSpec {
    part_spec(receiver, format!("{}.{field}", receiver.name), ty.clone())
}

/// Plans `column = value`, for INSERT and UPDATE.
pub fn plan_set(
    ctx: &mut PlanContext<'_>,
    table: &Table,
    place: usize,
    column: &Column,
    term: &ast::Term,
) -> Result<Operation, CqlError> {
    let value = Term::prepare(ctx, term, &column_spec(table, column))?;
    if matches!((term, &column.ty), (ast::Term::Tuple(_), CqlType::Udt { .. })) {
        // Cassandra fails when it writes the value, and so not if a condition prevents the write.
        let message = format!(
            "Invalid tuple type literal for {} of type {}",
            column.name, column.ty
        );
        return Ok(Operation::new(place, column, Action::Refused(message)));
    }
    if column.ty.is_counter() {
        return invalid(format!(
            "Cannot set the value of counter column {} (counters can only be incremented/decremented, not set)",
            column.name
        ));
    }
    Ok(Operation::new(place, column, Action::Set(value)))
}

/// Plans one assignment of an UPDATE, which may have conditions.
pub fn plan_assignment(
    ctx: &mut PlanContext<'_>,
    table: &Table,
    place: usize,
    column: &Column,
    operation: &ast::AssignmentOperation,
    is_conditional: bool,
) -> Result<Operation, CqlError> {
    use ast::AssignmentOperation as Raw;
    let receiver = column_spec(table, column);
    let action = match operation {
        Raw::Set(term) => return plan_set(ctx, table, place, column, term),
        Raw::Add(term) => plan_add(ctx, column, &receiver, term, is_conditional)?,
        Raw::Subtract(term) => plan_subtract(ctx, column, &receiver, term)?,
        Raw::Prepend(term) => plan_prepend(ctx, column, &receiver, term)?,
        Raw::SetElement { key, value } => plan_set_element(ctx, column, &receiver, key, value)?,
        Raw::SetField { field, value } => plan_set_field(ctx, column, &receiver, field, value)?,
    };
    Ok(Operation::new(place, column, action))
}

/// Refuses a column that isn't a multi-cell collection; `what` is the operation as text.
fn check_collection(column: &Column, what: &str) -> Result<(), CqlError> {
    if !column.ty.is_multicell() {
        return invalid(format!(
            "Invalid operation ({what}) for frozen collection column {}",
            column.name
        ));
    }
    Ok(())
}

fn plan_add(
    ctx: &mut PlanContext<'_>,
    column: &Column,
    receiver: &ColumnSpec,
    term: &ast::Term,
    is_conditional: bool,
) -> Result<Action, CqlError> {
    let name = &column.name;
    let what = format!("{name} = {name} + {term}");
    match &column.ty {
        CqlType::Tuple(_) | CqlType::Udt { .. } => {
            invalid(format!("Invalid operation ({what}) for tuple column {name}"))
        }
        ty if ty.is_counter() => Ok(Action::Increment {
            delta: Term::prepare(ctx, term, receiver)?,
            is_negated: false,
        }),
        ty if !ty.is_collection() && is_conditional => match functions::sum_of(ty) {
            Some(_) => Ok(Action::AddValue(Term::prepare(ctx, term, receiver)?)),
            None => invalid(format!(
                "Invalid operation ({what}) for non-numeric and non-text type {name}"
            )),
        },
        ty if !ty.is_collection() => invalid(format!(
            "Invalid operation ({what}) for non counter column {name}"
        )),
        CqlType::Map { .. } => {
            check_collection(column, &what)?;
            let entries = Term::prepare(ctx, term, receiver).map_err(|error| match error {
                CqlError::Invalid(_) => CqlError::invalid(format!(
                    "Value for a map addition has to be a map, but was: '{term}'"
                )),
                other => other,
            })?;
            Ok(Action::Add(entries))
        }
        _ => {
            check_collection(column, &what)?;
            Ok(Action::Add(Term::prepare(ctx, term, receiver)?))
        }
    }
}

fn plan_subtract(
    ctx: &mut PlanContext<'_>,
    column: &Column,
    receiver: &ColumnSpec,
    term: &ast::Term,
) -> Result<Action, CqlError> {
    let name = &column.name;
    let what = format!("{name} = {name} - {term}");
    match &column.ty {
        ty if ty.is_counter() => Ok(Action::Increment {
            delta: Term::prepare(ctx, term, receiver)?,
            is_negated: true,
        }),
        CqlType::List { .. } => {
            check_collection(column, &what)?;
            let mut values = Term::prepare(ctx, term, receiver)?;
            // A null in a bound list equals no element. The list is typed as frozen, because a frozen list may contain nulls.
            if let Term::Marker { ty, .. } = &mut values {
                *ty = ty.freeze();
            }
            Ok(Action::DiscardValues(values))
        }
        CqlType::Set { .. } => {
            check_collection(column, &what)?;
            Ok(Action::DiscardKeys {
                keys: Term::prepare(ctx, term, receiver)?,
                ty: column.ty.clone(),
            })
        }
        CqlType::Map { key, .. } => {
            check_collection(column, &what)?;
            let ty = CqlType::set(key.as_ref().clone(), true);
            let keys = part_spec(receiver, receiver.name.clone(), ty.clone());
            let keys = Term::prepare(ctx, term, &keys).map_err(|error| match error {
                CqlError::Invalid(_) => CqlError::invalid(format!(
                    "Value for a map substraction has to be a set, but was: '{term}'"
                )),
                other => other,
            })?;
            Ok(Action::DiscardKeys { keys, ty })
        }
        CqlType::Native(_) if ctx.is_in_transaction() => match functions::difference_of(&column.ty) {
            Some(_) => Ok(Action::SubtractValue(Term::prepare(ctx, term, receiver)?)),
            None => invalid(format!("Invalid operation ({what}) for non-numeric type {name}")),
        },
        _ => invalid(format!(
            "Invalid operation ({what}) for non counter column {name}"
        )),
    }
}

fn plan_prepend(
    ctx: &mut PlanContext<'_>,
    column: &Column,
    receiver: &ColumnSpec,
    term: &ast::Term,
) -> Result<Action, CqlError> {
    let name = &column.name;
    let value = Term::prepare(ctx, term, receiver)?;
    let what = format!("{name} = {term} - {name}");
    match &column.ty {
        CqlType::List { frozen: false, .. } => Ok(Action::Prepend(value)),
        CqlType::List { .. } => invalid(format!(
            "Invalid operation ({what}) for frozen list column {name}"
        )),
        _ => invalid(format!("Invalid operation ({what}) for non list column {name}")),
    }
}

fn plan_set_element(
    ctx: &mut PlanContext<'_>,
    column: &Column,
    receiver: &ColumnSpec,
    key: &ast::Term,
    value: &ast::Term,
) -> Result<Action, CqlError> {
    let name = &column.name;
    let what = format!("{name}[{key}] = {value}");
    if !column.ty.is_collection() {
        return invalid(format!(
            "Invalid operation ({what}) for non collection column {name}"
        ));
    }
    check_collection(column, &what)?;
    match &column.ty {
        CqlType::List { element, .. } => Ok(Action::SetIndex {
            index: Term::prepare(ctx, key, &index_spec(receiver))?,
            value: Term::prepare(ctx, value, &value_spec(receiver, element))?,
        }),
        CqlType::Map {
            key: key_type,
            value: value_type,
            ..
        } => Ok(Action::SetKey {
            key: Term::prepare(ctx, key, &key_spec(receiver, key_type))?,
            value: Term::prepare(ctx, value, &value_spec(receiver, value_type))?,
        }),
        _ => invalid(format!("Invalid operation ({what}) for set column {name}")),
    }
}

fn plan_set_field(
    ctx: &mut PlanContext<'_>,
    column: &Column,
    receiver: &ColumnSpec,
    field: &ast::Ident,
    value: &ast::Term,
) -> Result<Action, CqlError> {
    let name = &column.name;
    let CqlType::Udt { definition, frozen } = &column.ty else {
        return invalid(format!(
            "Invalid operation ({name}.{field} = {value}) for non-UDT column {name}"
        ));
    };
    if *frozen {
        return invalid(format!(
            "Invalid operation ({name}.{field} = {value}) for frozen UDT column {name}"
        ));
    }
    let (position, ty) = field_of(column, definition, field)?;
    let value = Term::prepare(ctx, value, &field_spec(receiver, field.as_str(), ty))?;
    Ok(Action::SetField { position, value })
}

fn field_of<'t>(
    column: &Column,
    definition: &'t helenus_cql::types::UserType,
    field: &ast::Ident,
) -> Result<(u16, &'t CqlType), CqlError> {
    let position = definition.field_index(field.as_str());
    position
        .and_then(|at| Some((u16::try_from(at).ok()?, &definition.fields.get(at)?.ty)))
        .ok_or_else(|| {
            CqlError::invalid(format!(
                "UDT column {} does not have a field named {field}",
                column.name
            ))
        })
}

/// Plans one deletion of a DELETE.
pub fn plan_deletion(
    ctx: &mut PlanContext<'_>,
    table: &Table,
    place: usize,
    column: &Column,
    deletion: &ast::Deletion,
) -> Result<Operation, CqlError> {
    let receiver = column_spec(table, column);
    let name = &column.name;
    let action = match deletion {
        ast::Deletion::Column(_) => Action::Delete,
        ast::Deletion::Element { element, .. } => {
            if !column.ty.is_collection() {
                return invalid(format!(
                    "Invalid deletion operation for non collection column {name}"
                ));
            }
            if !column.ty.is_multicell() {
                return invalid(format!(
                    "Invalid deletion operation for frozen collection column {name}"
                ));
            }
            match &column.ty {
                CqlType::Map { key, .. } => {
                    Action::DeleteKey(Term::prepare(ctx, element, &key_spec(&receiver, key))?)
                }
                CqlType::Set { element: ty, .. } => {
                    Action::DeleteKey(Term::prepare(ctx, element, &value_spec(&receiver, ty))?)
                }
                _ => Action::DeleteIndex(Term::prepare(ctx, element, &index_spec(&receiver))?),
            }
        }
        ast::Deletion::Field { field, .. } => match &column.ty {
            CqlType::Udt {
                definition,
                frozen: false,
            } => Action::DeleteField(field_of(column, definition, field)?.0),
            CqlType::Udt { .. } => {
                return invalid(format!(
                    "Frozen UDT column {name} does not support field deletions"
                ));
            }
            _ => {
                return invalid(format!(
                    "Invalid field deletion operation for non-UDT column {name}"
                ));
            }
        },
    };
    Ok(Operation::new(place, column, action))
}
