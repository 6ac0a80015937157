//! The indexes that answer a filter, and the entries to look up in them.

use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::ast::Operator;
use helenus_cql::error::CqlError;

use super::entries::{entry_key, entry_value, held_key, held_value, placed_value};
use super::pattern::LikeKind;
use super::value_range::ValueRange;
use crate::schema::{Column, Expression, Index, IndexTargetKind, Operand, Table};

/// Maximum bytes of an indexed value.
pub(crate) const VALUE_LEN_MAX: usize = 65_535;

/// An index and the entries to look up in it.
pub(crate) struct IndexLookup {
    pub index: Arc<Index>,
    pub(crate) entries: EntrySelection,
}

/// Entries by their key or a range of keys ([`placed_value`]).
pub(crate) enum EntrySelection {
    Value(Bytes),
    Range(ValueRange),
}

impl IndexLookup {
    /// Returns the token of the first entry.
    pub fn token(&self) -> i64 {
        match &self.entries {
            EntrySelection::Value(value) => entry_key(&self.index, value.clone()).token,
            EntrySelection::Range(range) => range.first_token(&self.index),
        }
    }

    /// Returns true if a range of values is looked up.
    pub fn is_range(&self) -> bool {
        matches!(self.entries, EntrySelection::Range(_))
    }
}

/// Returns the lookups by which complete indexes answer parts of the filter. Those of single values come first. Otherwise they have the
/// order of the expressions.
///
/// # Errors
/// `Index expression values may not be larger than 64K`
pub(crate) fn lookups<'f>(
    table: &Table,
    expressions: impl Iterator<Item = &'f Expression>,
) -> Result<Vec<IndexLookup>, CqlError> {
    let mut lookups: Vec<IndexLookup> = Vec::new();
    for expression in expressions {
        let Some((index, entries)) = answered(table, expression)? else {
            continue;
        };
        let same = |known: &&mut IndexLookup| known.index.table.number == index.table.number;
        match (entries, lookups.iter_mut().find(same)) {
            (
                EntrySelection::Range(range),
                Some(IndexLookup {
                    entries: EntrySelection::Range(known),
                    ..
                }),
            ) => known.narrow(range),
            (entries, _) => lookups.push(IndexLookup {
                index: index.clone(),
                entries,
            }),
        }
    }
    lookups.sort_by_key(IndexLookup::is_range);
    let first = lookups.first();
    let is_too_long = |lookup: &IndexLookup| match &lookup.entries {
        EntrySelection::Value(value) => {
            value.len() > VALUE_LEN_MAX && super::kinds::registered(&lookup.index).refuses_long_values
        }
        EntrySelection::Range(_) => false,
    };
    if first.is_some_and(is_too_long) {
        return Err(CqlError::invalid(
            "Index expression values may not be larger than 64K",
        ));
    }
    lookups.retain(|lookup| !is_too_long(lookup));
    Ok(lookups)
}

/// Returns the range of values that pass the filter, as far as the index answers it. The index is ordered by value.
///
/// # Errors
/// A bound does not belong to the column's type.
pub(crate) fn ordered_range<'f>(
    table: &Table,
    index: &Index,
    expressions: impl Iterator<Item = &'f Expression>,
) -> Result<ValueRange, CqlError> {
    let mut range = ValueRange::all();
    for expression in expressions {
        let Some(column) = table.columns.get(expression.column) else {
            continue;
        };
        if !super::kinds::supports(index, column, expression.operator) || !fits(index, expression) {
            continue;
        }
        match looked_up(index, column, expression)? {
            Some(EntrySelection::Range(wanted)) => range.narrow(wanted),
            Some(EntrySelection::Value(value)) => range.narrow(ValueRange::exactly(value)),
            None => {}
        }
    }
    Ok(range)
}

/// Returns the first index that answers the expression, with the entries to look up.
fn answered<'t>(
    table: &'t Table,
    expression: &Expression,
) -> Result<Option<(&'t Arc<Index>, EntrySelection)>, CqlError> {
    let Some(column) = table.columns.get(expression.column) else {
        return Ok(None);
    };
    for index in &table.indexes {
        let is_usable = index.is_complete
            && !index.has_posting_lists
            && super::kinds::supports(index, column, expression.operator)
            && fits(index, expression);
        if is_usable && let Some(entries) = looked_up(index, column, expression)? {
            return Ok(Some((index, entries)));
        }
    }
    Ok(None)
}

/// Returns true if the operand has the form that the index holds: a map entry or a single value, with text analyzed in the same way.
pub(crate) fn fits(index: &Index, expression: &Expression) -> bool {
    let is_entry = matches!(expression.operand, Operand::Entry { .. });
    is_entry == (index.target.kind == IndexTargetKind::KeysAndValues)
        && index.analysis() == expression.analysis
}

fn looked_up(
    index: &Index,
    column: &Column,
    expression: &Expression,
) -> Result<Option<EntrySelection>, CqlError> {
    let held = match (&expression.operand, expression.operator) {
        (Operand::Value(value), Operator::Eq | Operator::Contains) => held_value(index, column, value),
        (Operand::Value(key), Operator::ContainsKey) => held_key(index, column, key),
        // No index holds a value that is too long for a key.
        (Operand::Entry { key, value }, Operator::Eq) => match entry_value(column, key, value) {
            Ok(value) => value,
            Err(_) => return Ok(None),
        },
        _ => return range(index, column, expression),
    };
    Ok(Some(EntrySelection::Value(placed_value(index, held)?)))
}

/// Returns the range of values to look up, if the index is ordered by value. `None` if the index does not answer the expression.
fn range(
    index: &Index,
    column: &Column,
    expression: &Expression,
) -> Result<Option<EntrySelection>, CqlError> {
    if index.order.is_none() {
        return Ok(None);
    }
    match &expression.operand {
        // Analyzed text is compared for equality, whatever the operator.
        Operand::Value(value) if expression.operator.is_slice() && expression.analysis.is_none() => {
            let bound = placed_value(index, held_value(index, column, value))?;
            Ok(ValueRange::beyond(expression.operator, bound).map(EntrySelection::Range))
        }
        Operand::Like(pattern) => Ok(match (pattern.kind, pattern.terms.as_slice()) {
            (LikeKind::Matches, [term]) => Some(EntrySelection::Value(placed_value(index, term.clone())?)),
            (LikeKind::Prefix, [term]) => Some(EntrySelection::Range(ValueRange::beginning_with(term))),
            _ => None,
        }),
        _ => Ok(None),
    }
}
