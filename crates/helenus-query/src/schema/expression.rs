//! Tests on single columns of a row: of the WHERE clause of a view, and of what no slice and no index has answered.

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
    /// Of IN.
    List(Vec<Bytes>),
    Entry {
        key: Bytes,
        value: Bytes,
    },
    /// Of LIKE.
    Like(Pattern),
}

/// `column operator operand`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expression {
    /// Place in [`Table::columns`].
    pub column: usize,
    pub operator: Operator,
    pub operand: Operand,
    /// How the index that answers it compares text; the operand is what it amounts to.
    pub analysis: Option<Analyzer>,
    /// Whether nothing empty is found, since the index that answers it leaves that out.
    pub skips_empty: bool,
}

impl Expression {
    fn is_equal(&self, ty: &CqlType, found: Option<&[u8]>, wanted: &[u8]) -> bool {
        match self.analysis {
            Some(analysis) => found.is_some_and(|found| analysis.apply(found) == wanted),
            None => is_equal(ty, found, wanted),
        }
    }

    /// Returns true if the row's column passes; a null column never does.
    pub fn accepts(&self, columns: &[Arc<Column>], view: &dyn RowView) -> bool {
        let Some(column) = columns.get(self.column) else {
            return false;
        };
        match &self.operand {
            Operand::Value(operand) if column.ty.is_multicell() && column.ty.is_collection() => view
                .cells(self.column)
                .iter()
                .any(|cell| match (&column.ty, self.operator) {
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
                }),
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

pub(crate) fn is_equal(ty: &CqlType, found: Option<&[u8]>, wanted: &[u8]) -> bool {
    found.is_some_and(|found| value::compare(ty, found, wanted) == Ordering::Equal)
}

/// Counters compare as the numbers they are.
pub(crate) fn comparable(ty: &CqlType) -> &CqlType {
    const NUMBER: CqlType = CqlType::BIGINT;
    if ty.is_counter() { &NUMBER } else { ty }
}

pub(crate) fn accepts_value(ty: &CqlType, operator: Operator, operand: &Operand, found: &[u8]) -> bool {
    let ty = comparable(ty);
    match (operator, operand) {
        (Operator::In, Operand::List(values)) => {
            values.iter().any(|wanted| is_equal(ty, Some(found), wanted))
        }
        (Operator::Contains | Operator::ContainsKey, Operand::Value(wanted)) => {
            contains(ty, operator, found, wanted)
        }
        (Operator::Eq, Operand::Entry { key, value: wanted }) => has_entry(ty, found, key, wanted),
        (operator, Operand::Value(wanted)) => {
            let order = value::compare(ty, found, wanted);
            match operator {
                Operator::Eq => order.is_eq(),
                Operator::Lt => order.is_lt(),
                Operator::Lte => order.is_le(),
                Operator::Gt => order.is_gt(),
                Operator::Gte => order.is_ge(),
                Operator::Neq => order.is_ne(),
                Operator::In
                | Operator::Contains
                | Operator::ContainsKey
                | Operator::Like
                | Operator::IsNot => false,
            }
        }
        _ => false,
    }
}

/// CONTAINS on a frozen collection.
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
