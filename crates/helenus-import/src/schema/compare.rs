//! Differences between a table of the source and the table of the same name on the target.

use helenus_cql::identifier::quote_identifier;
use helenus_cql::types::{CqlType, NativeType};

use super::shape::{ColumnRole, ColumnShape, TableShape};

/// Returns the differences that would lose or distort data, each as a sentence. Additional columns of the target are no difference.
pub fn differences(source: &TableShape, target: &TableShape) -> Vec<String> {
    let mut found = Vec::new();
    for (name, column) in &source.columns {
        match target.columns.get(name) {
            Some(other) => column_differences(name, column, other, source.is_compact, &mut found),
            None => found.push(format!(
                "column {} ({}) is missing on the target: add it with ALTER TABLE … ADD {0} {1}",
                quote_identifier(name),
                column.ty
            )),
        }
    }
    let dropped = source.dropped.iter();
    for (name, dropped_us) in dropped.filter(|(name, _)| !source.columns.contains_key(*name)) {
        // The target does not show cells from before its own drop. An older snapshot lacks the column that was added again since.
        let is_dropped_there = target
            .dropped
            .get(name)
            .is_some_and(|there_us| there_us >= dropped_us);
        if target.columns.contains_key(name) && !is_dropped_there {
            found.push(format!(
                "column {} is dropped in the source, and exists on the target: drop it there",
                quote_identifier(name)
            ));
        }
    }
    for (name, column) in &target.columns {
        if column.role.is_key()
            && !source.columns.contains_key(name)
            && !target.is_compact
            && !source.is_compact
        {
            found.push(format!(
                "column {} is {} on the target, and doesn't exist in the source",
                quote_identifier(name),
                column.role.words()
            ));
        }
    }
    found
}

fn column_differences(
    name: &str,
    source: &ColumnShape,
    target: &ColumnShape,
    is_compact: bool,
    found: &mut Vec<String>,
) {
    let name = quote_identifier(name);
    // The columns of a compact table without clustering columns are regular in CREATE TABLE, and static in the schema.
    let same_role = source.role == target.role
        || is_compact && source.role == ColumnRole::Regular && target.role == ColumnRole::Static;
    if !same_role {
        found.push(format!(
            "column {name} is {} in the source, and {} on the target",
            source.role.words(),
            target.role.words()
        ));
    }
    if source.is_descending != target.is_descending {
        let order = |is_descending| if is_descending { "descending" } else { "ascending" };
        found.push(format!(
            "column {name} is {} in the source, and {} on the target",
            order(source.is_descending),
            order(target.is_descending)
        ));
    }
    if !fits(&source.ty, &target.ty) {
        found.push(format!(
            "column {name} has the type {} in the source, and {} on the target",
            source.ty, target.ty
        ));
    }
}

/// Returns true if all values of type `from` are values of type `to` with the same meaning, and cells have the same form. Older SSTables have
/// a user type with fewer fields, or the type of before an ALTER TYPE.
pub fn fits(from: &CqlType, to: &CqlType) -> bool {
    if from.is_multicell() != to.is_multicell() {
        return false;
    }
    match (from, to) {
        (CqlType::Native(from), CqlType::Native(to)) => native_fits(*from, *to),
        (CqlType::List { element: from, .. }, CqlType::List { element: to, .. })
        | (CqlType::Set { element: from, .. }, CqlType::Set { element: to, .. }) => nested_fits(from, to),
        (
            CqlType::Map { key, value, .. },
            CqlType::Map {
                key: to_key,
                value: to_value,
                ..
            },
        ) => nested_fits(key, to_key) && nested_fits(value, to_value),
        (CqlType::Tuple(from), CqlType::Tuple(to)) => {
            from.len() <= to.len() && from.iter().zip(to.iter()).all(|(from, to)| nested_fits(from, to))
        }
        (CqlType::Udt { definition: from, .. }, CqlType::Udt { definition: to, .. }) => {
            from.fields.len() <= to.fields.len()
                && from
                    .fields
                    .iter()
                    .zip(&to.fields)
                    .all(|(from, to)| nested_fits(&from.ty, &to.ty))
        }
        (
            CqlType::Vector {
                element: from,
                dimension,
            },
            CqlType::Vector {
                element: to,
                dimension: to_dimension,
            },
        ) => dimension == to_dimension && from.fixed_len() == to.fixed_len() && nested_fits(from, to),
        (CqlType::Custom(from), CqlType::Custom(to)) => from == to,
        _ => false,
    }
}

fn nested_fits(from: &CqlType, to: &CqlType) -> bool {
    fits(&from.freeze(), &to.freeze())
}

fn native_fits(from: NativeType, to: NativeType) -> bool {
    from == to
        || matches!(
            (from, to),
            (NativeType::Ascii, NativeType::Text)
                | (NativeType::Timeuuid, NativeType::Uuid)
                | (NativeType::Bigint, NativeType::Timestamp)
                | (NativeType::Timestamp, NativeType::Bigint)
                | (NativeType::Int | NativeType::Bigint, NativeType::Varint)
        )
        || to == NativeType::Blob && from != NativeType::Counter
}
