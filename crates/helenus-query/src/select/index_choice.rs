//! Which indexes serve which restrictions (Cassandra's `Index.supportsExpression` and `needsFiltering`).

use std::sync::Arc;

use helenus_cql::ast::Operator;
use helenus_cql::error::CqlError;
use helenus_cql::types::{CqlType, NativeType};

use super::restriction::{Contains, Restriction, Slice, Test, column_name};
use super::restriction_set::RestrictionSet;
use crate::schema::{Column, Index, IndexKind, IndexTargetKind, Pattern, Table};

/// True if the index was declared as a storage-attached one.
pub fn is_storage_attached(index: &Index) -> bool {
    index.kind == IndexKind::Custom
        && index.options.get("class_name").is_some_and(|class| {
            let short = class.rsplit('.').next().unwrap_or(class);
            short.eq_ignore_ascii_case("StorageAttachedIndex") || short.eq_ignore_ascii_case("sai")
        })
}

/// Types whose storage-attached indexes know equality only.
fn is_literal(ty: &CqlType) -> bool {
    match ty {
        CqlType::Native(native) => {
            matches!(
                native,
                NativeType::Ascii
                    | NativeType::Text
                    | NativeType::Boolean
                    | NativeType::Blob
                    | NativeType::Uuid
            )
        }
        CqlType::Tuple(_) | CqlType::Udt { .. } => true,
        other => other.is_collection() && !other.is_multicell(),
    }
}

/// True if the index answers `column operator value` (`CassandraIndex.supportsExpression`,
/// `StorageAttachedIndex.supportsExpression`).
pub fn supports(index: &Index, column: &Column, operator: Operator) -> bool {
    if index.target.column != column.name {
        return false;
    }
    if index.is_sasi() {
        return index.sasi_supports(column, operator);
    }
    let is_set = matches!(column.ty, CqlType::Set { .. });
    match index.target.kind {
        IndexTargetKind::Simple if is_storage_attached(index) => {
            operator == Operator::Eq || (operator.is_slice() && !is_literal(&column.ty))
        }
        IndexTargetKind::Simple | IndexTargetKind::Full => operator == Operator::Eq,
        IndexTargetKind::KeysAndValues => operator == Operator::Eq,
        IndexTargetKind::Keys => {
            operator == Operator::ContainsKey || (is_set && operator == Operator::Contains)
        }
        IndexTargetKind::Values => operator == Operator::Contains,
    }
}

fn slice_operators(slice: &Slice) -> impl Iterator<Item = Operator> {
    let start = slice.start.as_ref().map(|bound| {
        if bound.is_inclusive {
            Operator::Gte
        } else {
            Operator::Gt
        }
    });
    let end = slice.end.as_ref().map(|bound| {
        if bound.is_inclusive {
            Operator::Lte
        } else {
            Operator::Lt
        }
    });
    start.into_iter().chain(end)
}

fn contains_operators(contains: &Contains) -> impl Iterator<Item = Operator> {
    let values = (!contains.values.is_empty()).then_some(Operator::Contains);
    let keys = (!contains.keys.is_empty()).then_some(Operator::ContainsKey);
    let entries = (!contains.entries.is_empty()).then_some(Operator::Eq);
    [values, keys, entries].into_iter().flatten()
}

/// True if the index serves part of the restriction on that column.
fn supports_on(index: &Index, column: &Column, test: &Test) -> bool {
    match test {
        Test::Eq(_) => supports(index, column, Operator::Eq),
        Test::In(_) => supports(index, column, Operator::In),
        Test::Slice(slice) => slice_operators(slice).any(|operator| supports(index, column, operator)),
        Test::Contains(contains) => {
            contains_operators(contains).any(|operator| supports(index, column, operator))
        }
        Test::Like(_) => supports(index, column, Operator::Like),
        Test::IsNotNull => false,
    }
}

fn is_supported_by(index: &Index, table: &Table, restriction: &Restriction) -> bool {
    let columns = restriction
        .columns
        .iter()
        .filter_map(|place| table.columns.get(*place));
    columns
        .into_iter()
        .any(|column| supports_on(index, column, &restriction.test))
}

/// True if any index of the table serves the restriction.
pub fn has_supporting_index(table: &Table, restriction: &Restriction) -> bool {
    table
        .indexes
        .iter()
        .any(|index| is_supported_by(index, table, restriction))
}

/// True if an SASI index of the table serves the restriction.
pub fn has_sasi_index(table: &Table, restriction: &Restriction) -> bool {
    let mut indexes = table.indexes.iter();
    indexes.any(|index| index.is_sasi() && is_supported_by(index, table, restriction))
}

/// True if one group of indexes (an ordinary or SASI index by itself, all storage-attached ones together) answers every
/// restriction of these sets.
pub fn one_group_covers(table: &Table, sets: &[&RestrictionSet]) -> bool {
    let attached: Vec<&Arc<Index>> = table
        .indexes
        .iter()
        .filter(|index| is_storage_attached(index))
        .collect();
    let alone = table
        .indexes
        .iter()
        .filter(|index| !is_storage_attached(index))
        .map(|index| vec![index]);
    let groups = alone.chain((!attached.is_empty()).then_some(attached));
    let covers = |group: &[&Arc<Index>]| {
        sets.iter()
            .all(|set| set.iter().all(|one| group_covers(group, table, one)))
    };
    groups.into_iter().any(|group| covers(&group))
}

fn group_covers(group: &[&Arc<Index>], table: &Table, restriction: &Restriction) -> bool {
    if let Test::Contains(contains) = &restriction.test
        && contains.count() > 1
    {
        return group
            .iter()
            .any(|index| is_storage_attached(index) && is_supported_by(index, table, restriction));
    }
    if restriction.is_multi {
        return restriction
            .columns
            .iter()
            .filter_map(|place| table.columns.get(*place))
            .all(|column| {
                group
                    .iter()
                    .any(|index| supports_on(index, column, &restriction.test))
            });
    }
    group
        .iter()
        .any(|index| is_supported_by(index, table, restriction))
}

/// There must be an index for that kind of pattern.
pub fn check_like(table: &Table, column: usize, pattern: &Pattern) -> Result<(), CqlError> {
    let name = column_name(table, column);
    let mut on_it = table.indexes.iter().filter(|index| index.target.column == name);
    match on_it.any(|index| index.is_sasi() && index.sasi_supports_like(pattern.kind)) {
        true => Ok(()),
        false => Err(CqlError::invalid(format!(
            "{name} {} {} is only supported on properly indexed columns",
            pattern.kind,
            String::from_utf8_lossy(&pattern.terms.concat())
        ))),
    }
}
