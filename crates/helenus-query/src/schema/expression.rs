//! Tests of single columns of a row. They come from the WHERE clause of a view, or from restrictions that neither a slice nor an index
//! answers.

use std::cmp::Ordering;
use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::ast::Operator;
use helenus_cql::types::CqlType;
use helenus_cql::value;

use super::Column;
use crate::index::analyzer::Analyzer;
use crate::index::pattern::Pattern;
use crate::rows::RowView;

/// The right side of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operand {
    Value(Bytes),
    /// The values of IN.
    List(Vec<Bytes>),
    Entry {
        key: Bytes,
        value: Bytes,
    },
    /// The pattern of LIKE.
    Like(Pattern),
}

/// A test of the form `column operator operand`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expression {
    /// Index of the column in [`Table::columns`].
    pub column: usize,
    pub operator: Operator,
    pub operand: Operand,
    /// The analyzer of the index that answers the test. The operand is already analyzed. `None` if the text is compared as it is.
    pub analysis: Option<Analyzer>,
    /// True if empty values do not pass, because the index that answers the test does not contain them.
    pub skips_empty: bool,
}

impl Expression {
    fn is_equal(&self, ty: &CqlType, found: Option<&[u8]>, wanted: &[u8]) -> bool {
        match self.analysis {
            Some(analysis) => found.is_some_and(|found| analysis.apply(found) == wanted),
            None => is_equal(ty, found, wanted),
        }
    }

    /// Returns true if the row's column passes the test. A null column never passes.
    pub fn accepts(&self, columns: &[Arc<Column>], view: &dyn RowView) -> bool {
        let Some(column) = columns.get(self.column) else {
            return false;
        };
        match &self.operand {
            Operand::Value(operand) if column.ty.is_multicell() && column.ty.is_collection() => {
                let cells = view.cells(self.column);
                let (operator, is_negated) = positive(self.operator);
                let is_found = cells.iter().any(|cell| match (&column.ty, operator) {
                    (CqlType::Set { element, .. }, Operator::Contains) => {
                        self.is_equal(element, cell.path.as_deref(), operand)
                    }
                    (CqlType::Map { key, .. }, Operator::ContainsKey) => {
                        self.is_equal(key, cell.path.as_deref(), operand)
                    }
                    (
                        CqlType::List { element, .. } | CqlType::Map { value: element, .. },
                        Operator::Contains,
                    ) => self.is_equal(element, Some(&cell.value), operand),
                    _ => false,
                });
                // A collection without elements is null.
                is_found != is_negated && !cells.is_empty()
            }
            Operand::Entry { key, value } if column.ty.is_multicell() => {
                let CqlType::Map {
                    key: key_ty,
                    value: value_ty,
                    ..
                } = &column.ty
                else {
                    return false;
                };
                let mut cells = view.cells(self.column).into_iter();
                cells.any(|cell| {
                    is_equal(key_ty, cell.path.as_deref(), key)
                        && is_equal(value_ty, Some(&cell.value), value)
                })
            }
            Operand::Like(pattern) => view.value(self.column).is_some_and(|found| match self.analysis {
                Some(analysis) => pattern.accepts(&analysis.terms(&found)),
                None => pattern.accepts(std::slice::from_ref(&found)),
            }),
            Operand::Value(operand) if self.analysis.is_some() => {
                self.is_equal(&column.ty, view.value(self.column).as_deref(), operand)
            }
            operand => view.value(self.column).is_some_and(|found| {
                !(self.skips_empty && found.is_empty())
                    && accepts_value(&column.ty, self.operator, operand, &found)
            }),
        }
    }
}

/// Returns the operator without its NOT, and true if it has one.
fn positive(operator: Operator) -> (Operator, bool) {
    match operator {
        Operator::NotContains => (Operator::Contains, true),
        Operator::NotContainsKey => (Operator::ContainsKey, true),
        Operator::NotIn => (Operator::In, true),
        operator => (operator, false),
    }
}

pub(crate) fn is_equal(ty: &CqlType, found: Option<&[u8]>, wanted: &[u8]) -> bool {
    found.is_some_and(|found| value::compare(ty, found, wanted) == Ordering::Equal)
}

/// Returns the type by which values are compared. Counters are compared as numbers.
pub(crate) fn comparable(ty: &CqlType) -> &CqlType {
    const NUMBER: CqlType = CqlType::BIGINT;
    if ty.is_counter() { &NUMBER } else { ty }
}

pub(crate) fn accepts_value(ty: &CqlType, operator: Operator, operand: &Operand, found: &[u8]) -> bool {
    let ty = comparable(ty);
    if let (operator, true) = positive(operator) {
        return !accepts_value(ty, operator, operand, found);
    }
    match (operator, operand) {
        (Operator::In, Operand::List(values)) => {
            values.iter().any(|wanted| is_equal(ty, Some(found), wanted))
        }
        (Operator::Contains | Operator::ContainsKey, Operand::Value(wanted)) => {
            contains(ty, operator, found, wanted)
        }
        (Operator::Eq, Operand::Entry { key, value: wanted }) => has_entry(ty, found, key, wanted),
        (operator, Operand::Value(wanted)) => operator.accepts(value::compare(ty, found, wanted)),
        _ => false,
    }
}

/// Returns true if a frozen collection contains the value or key (CONTAINS, CONTAINS KEY).
pub(crate) fn contains(ty: &CqlType, operator: Operator, found: &[u8], wanted: &[u8]) -> bool {
    match ty {
        CqlType::List { element, .. } | CqlType::Set { element, .. } => {
            let elements = value::read_elements(ty, found).unwrap_or_default();
            elements
                .into_iter()
                .any(|one| is_equal(element, Some(one), wanted))
        }
        CqlType::Map {
            key, value: value_ty, ..
        } => {
            let entries = value::read_map(ty, found).unwrap_or_default();
            entries.into_iter().any(|(k, v)| match operator {
                Operator::ContainsKey => is_equal(key, Some(k), wanted),
                _ => is_equal(value_ty, Some(v), wanted),
            })
        }
        _ => false,
    }
}

pub(crate) fn has_entry(ty: &CqlType, found: &[u8], key: &[u8], wanted: &[u8]) -> bool {
    let CqlType::Map {
        key: key_ty,
        value: value_ty,
        ..
    } = ty
    else {
        return false;
    };
    let entries = value::read_map(ty, found).unwrap_or_default();
    entries
        .into_iter()
        .any(|(k, v)| is_equal(key_ty, Some(k), key) && is_equal(value_ty, Some(v), wanted))
}
