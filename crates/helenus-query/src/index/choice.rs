//! Choice of the indexes that serve restrictions (Cassandra's `Index.supportsExpression` and `needsFiltering`).

use std::sync::Arc;

use helenus_cql::ast::Operator;
use helenus_cql::error::CqlError;
use smallvec::SmallVec;

use super::kinds::{self, registered, supports};
use super::pattern::Pattern;
use crate::schema::{Column, Index, Table};

/// The requirements of a restriction for an index.
pub struct IndexUse<'a> {
    /// Indexes of the restricted columns in [`Table::columns`].
    pub columns: &'a [usize],
    /// Operators of the restriction. Empty if no index could answer it.
    pub operators: SmallVec<[Operator; 2]>,
    /// True if the restriction is on several columns together.
    pub is_multi: bool,
    /// True if the restriction is on several elements of one collection.
    pub has_several_elements: bool,
}

/// Returns true if the index serves the part of the restriction on that column.
fn supports_on(index: &Index, column: &Column, wanted: &IndexUse<'_>) -> bool {
    let mut operators = wanted.operators.iter();
    operators.any(|operator| supports(index, column, *operator))
}

/// Returns true if the index serves the restriction.
pub fn is_supported_by(index: &Index, table: &Table, wanted: &IndexUse<'_>) -> bool {
    let mut columns = wanted
        .columns
        .iter()
        .filter_map(|place| table.columns.get(*place));
    columns.any(|column| supports_on(index, column, wanted))
}

/// Returns true if any index of the table serves the restriction.
pub fn has_supporting_index(table: &Table, wanted: &IndexUse<'_>) -> bool {
    table
        .indexes
        .iter()
        .any(|index| is_supported_by(index, table, wanted))
}

/// Returns true if the restriction is served by an index that finds only rows.
pub fn has_index_of_rows(table: &Table, wanted: &IndexUse<'_>) -> bool {
    let mut indexes = table.indexes.iter();
    indexes.any(|index| registered(index).finds_only_rows && is_supported_by(index, table, wanted))
}

/// Returns true if one group of indexes answers all of these restrictions. All indexes whose kind intersects are one group. Every other
/// index is a group by itself.
pub fn one_group_covers(table: &Table, all: &[IndexUse<'_>]) -> bool {
    let intersecting: Vec<&Arc<Index>> = table
        .indexes
        .iter()
        .filter(|index| registered(index).intersects)
        .collect();
    let alone = table
        .indexes
        .iter()
        .filter(|index| !registered(index).intersects)
        .map(|index| vec![index]);
    let groups = alone.chain((!intersecting.is_empty()).then_some(intersecting));
    let covers = |group: &[&Arc<Index>]| all.iter().all(|wanted| group_covers(group, table, wanted));
    groups.into_iter().any(|group| covers(&group))
}

fn group_covers(group: &[&Arc<Index>], table: &Table, wanted: &IndexUse<'_>) -> bool {
    if wanted.has_several_elements {
        return group
            .iter()
            .any(|index| registered(index).intersects && is_supported_by(index, table, wanted));
    }
    if wanted.is_multi {
        return wanted
            .columns
            .iter()
            .filter_map(|place| table.columns.get(*place))
            .all(|column| group.iter().any(|index| supports_on(index, column, wanted)));
    }
    group.iter().any(|index| is_supported_by(index, table, wanted))
}

/// Checks that an index on the column supports that kind of pattern.
pub fn check_like(table: &Table, column: usize, pattern: &Pattern) -> Result<(), CqlError> {
    let name = table
        .columns
        .get(column)
        .map_or("", |column| column.name.as_str());
    let mut on_it = table.indexes.iter().filter(|index| index.target.column == name);
    match on_it.any(|index| kinds::of(index).supports_like(index, pattern.kind)) {
        true => Ok(()),
        false => Err(CqlError::invalid(format!(
            "{name} {} {} is only supported on properly indexed columns",
            pattern.kind,
            String::from_utf8_lossy(&pattern.terms.concat())
        ))),
    }
}
