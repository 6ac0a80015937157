//! References to the rows that a transaction has read.

use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::ast::{self, ReferencePart};
use helenus_cql::error::CqlError;
use helenus_cql::types::CqlType;
use helenus_cql::value::{self, hex, test_assignment};

use super::check::invalid;
use crate::analysis::modification::conditions::part::{Part, plan_part};
use crate::analysis::modification::operation::value_spec;
use crate::analysis::terms::Term;
use crate::analysis::{EvalContext, PlanContext, column_spec};
use crate::request::BoundValue;
use crate::response::ColumnSpec;
use crate::schema::{Column, Table};

/// A row of LET that references may name.
#[derive(Debug)]
pub(super) struct KnownRow {
    pub name: String,
    pub table: Arc<Table>,
    /// The columns that its SELECT reads, by their indexes in [`Table::columns`].
    pub selected: Vec<usize>,
}

/// A reference to a column of a read row, or to a part of it.
#[derive(Clone, Debug)]
pub(crate) struct Reference {
    /// Index in [`super::TransactionPlan::reads`].
    pub read: usize,
    /// Index in [`Table::columns`].
    pub column: usize,
    pub column_type: CqlType,
    part: ColumnPart,
}

/// The referenced part of a column.
#[derive(Clone, Debug)]
enum ColumnPart {
    Part(Part),
    /// An element of a set, which is its own value.
    Member(Term),
}

/// A reference with the properties of its value that planning needs.
pub(super) struct Resolved {
    pub reference: Reference,
    /// The value's type, and the name by which messages call it.
    pub spec: ColumnSpec,
    /// Name of the column in an answer.
    pub result_name: String,
}

/// Returns the index of the row of that name.
pub(super) fn row(rows: &[KnownRow], name: &ast::Ident) -> Result<usize, CqlError> {
    let found = rows.iter().position(|row| row.name == name.as_str());
    found.ok_or_else(|| CqlError::invalid(format!("Cannot resolve reference to tuple '{name}'.")))
}

/// Returns the index of the row, its table, and the column. `None` for a reference to a whole row.
pub(super) fn column<'r>(
    rows: &'r [KnownRow],
    reference: &ast::RowReference,
) -> Result<Option<(usize, &'r Arc<Table>, usize)>, CqlError> {
    let at = row(rows, &reference.row)?;
    let (Some(name), Some(known)) = (&reference.column, rows.get(at)) else {
        return Ok(None);
    };
    match known.table.visible_column(name.as_str()) {
        Some((place, _)) if known.selected.contains(&place) => Ok(Some((at, &known.table, place))),
        _ => invalid(format!(
            "Column '{name}' does not exist in tuple '{}'.",
            reference.row
        )),
    }
}

/// Resolves a reference to a column. `None` for a reference to a whole row.
pub(super) fn resolve(
    ctx: &mut PlanContext<'_>,
    rows: &[KnownRow],
    reference: &ast::RowReference,
) -> Result<Option<Resolved>, CqlError> {
    let Some((read, table, place)) = column(rows, reference)? else {
        return Ok(None);
    };
    let Some(of) = table.columns.get(place) else {
        return Ok(None);
    };
    let receiver = column_spec(table, of);
    let (part, spec, suffix) = resolve_part(ctx, of, &receiver, &reference.part)?;
    Ok(Some(Resolved {
        reference: Reference {
            read,
            column: place,
            column_type: of.ty.clone(),
            part,
        },
        spec,
        result_name: format!("{}.{}{suffix}", reference.row, of.name),
    }))
}

/// Returns the part of a column with the receiver of its value, and the end of its name in an answer.
fn resolve_part(
    ctx: &mut PlanContext<'_>,
    column: &Column,
    receiver: &ColumnSpec,
    part: &ReferencePart,
) -> Result<(ColumnPart, ColumnSpec, String), CqlError> {
    let target = match part {
        ReferencePart::Whole => ast::ConditionTarget::Column,
        ReferencePart::Element(element) => {
            if let CqlType::Set { element: ty, .. } = &column.ty {
                let spec = value_spec(receiver, ty);
                let term = Term::prepare(ctx, element, &spec)?;
                let suffix = element_suffix(&term);
                return Ok((ColumnPart::Member(term), spec, suffix));
            }
            ast::ConditionTarget::Element(element.as_ref().clone())
        }
        ReferencePart::Field(field) => ast::ConditionTarget::Field(field.clone()),
    };
    let (part, spec) = plan_part(ctx, column, receiver, &target)?;
    let suffix = match &part {
        Part::Whole => String::new(),
        Part::Element(term) => element_suffix(term),
        Part::Field(position) => format!(".0x{position:04x}"),
    };
    Ok((ColumnPart::Part(part), spec, suffix))
}

/// Returns the end of the name of a column for an element, which shows the bytes of a constant.
fn element_suffix(term: &Term) -> String {
    match term {
        Term::Constant(Some(bytes)) => format!("[0x{}]", hex(bytes)),
        _ => "[?]".to_owned(),
    }
}

/// Resolves a reference in a written value.
///
/// # Errors
/// The reference has no column, or its type does not fit the receiver.
pub(super) fn written(
    ctx: &mut PlanContext<'_>,
    rows: &[KnownRow],
    reference: &ast::RowReference,
    receiver: &ColumnSpec,
) -> Result<Reference, CqlError> {
    let Some(resolved) = resolve(ctx, rows, reference)? else {
        return invalid(format!(
            "Row reference ({reference}) cannot be written to {}: name one of its columns",
            receiver.name
        ));
    };
    let ty = &resolved.spec.ty;
    match test_assignment(ty, &receiver.ty).is_assignable() {
        true => Ok(resolved.reference),
        false => invalid(format!(
            "Invalid reference type {ty} ({}) for \"{}\" of type {}",
            reference.column.as_ref().map_or("", ast::Ident::as_str),
            receiver.name,
            receiver.ty
        )),
    }
}

impl Reference {
    /// Returns the value of the reference, from the value of the whole column. `None` if it is null.
    ///
    /// # Errors
    /// The index or key of an element is invalid.
    pub(crate) fn value(
        &self,
        column: Option<Bytes>,
        eval: &EvalContext<'_>,
    ) -> Result<Option<Bytes>, CqlError> {
        match (&self.part, &self.column_type) {
            (ColumnPart::Part(part), ty) => Ok(part.of(ty, column, eval)?.1),
            (ColumnPart::Member(member), CqlType::Set { element, .. }) => {
                Ok(match (member.bind(eval)?, column) {
                    (BoundValue::Set(member), Some(column)) => {
                        let elements =
                            value::read_elements(&self.column_type, &column).map_err(CqlError::Invalid)?;
                        let is_it = |found: &&&[u8]| value::compare(element, found, &member).is_eq();
                        elements.iter().find(is_it).map(|found| column.slice_ref(found))
                    }
                    _ => None,
                })
            }
            (ColumnPart::Member(_), _) => Ok(None),
        }
    }

    /// Returns true if the reference is to a whole column.
    pub(crate) fn is_whole(&self) -> bool {
        matches!(self.part, ColumnPart::Part(Part::Whole))
    }

    /// Returns true if the reference is to an element of a set.
    pub(super) fn is_member(&self) -> bool {
        matches!(self.part, ColumnPart::Member(_))
    }
}
