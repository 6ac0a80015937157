//! Kinds of indexes: the restrictions that each answers, and the values that it holds.

pub(crate) mod equality;
pub(crate) mod sai;
pub(crate) mod sasi;

use helenus_cql::ast::Operator;
use helenus_cql::types::CqlType;
use helenus_row::key::has_value_order;

use super::analyzer::Analyzer;
use super::pattern::LikeKind;
use crate::schema::{Column, ColumnKind, Index, IndexKind, IndexTargetKind, Table};

/// A kind of index.
pub trait Kind: Sync {
    /// Returns true if an index on the column answers `column operator value`.
    fn supports(&self, index: &Index, column: &Column, operator: Operator) -> bool;

    /// Returns true if the index answers LIKE with such a pattern.
    fn supports_like(&self, _index: &Index, _pattern: LikeKind) -> bool {
        false
    }

    /// Returns true if the entries are in the order of the values, so that the index answers bounds or prefixes.
    fn is_in_value_order(&self, _index: &Index, _column: &Column) -> bool {
        false
    }

    /// Returns the analyzer of the index. `None` if text is compared as it is.
    fn analysis(&self, _index: &Index) -> Option<Analyzer> {
        None
    }

    /// Returns true if the text of clustering columns is analyzed too.
    fn analyzes_clustering(&self) -> bool {
        false
    }

    /// Returns true if the index omits empty values, even of types that allow them.
    fn skips_empty(&self, _index: &Index, _column: &Column) -> bool {
        false
    }

    /// Returns true if the index holds such a value. It does not find rows by values that it does not hold.
    fn holds(&self, _index: &Index, _column: &Column, _value: &[u8]) -> bool {
        true
    }

    /// Returns true if the index holds a map's entry, as a composite of key and value.
    fn holds_entry(&self, _key: &[u8], _value: &[u8]) -> bool {
        true
    }
}

/// Returns the kind of an index.
pub fn of(index: &Index) -> &'static dyn Kind {
    match index.kind {
        IndexKind::Custom if index.is_sasi() => &sasi::Sasi,
        IndexKind::Custom => &sai::StorageAttached,
        IndexKind::Keys | IndexKind::Composites => &equality::Equality,
    }
}

impl Index {
    /// Returns the analyzer of the index. `None` if text is compared as it is.
    pub fn analysis(&self) -> Option<Analyzer> {
        of(self).analysis(self)
    }

    /// Returns true if the index omits empty values, even of types that allow them.
    pub fn skips_empty(&self, column: &Column) -> bool {
        of(self).skips_empty(self, column)
    }
}

/// Returns the type by whose order a new index on the table places its entries. `None` if they are placed by hash.
pub(crate) fn value_order(index: &Index, table: &Table) -> Option<CqlType> {
    let (_, column) = table.column(&index.target.column)?;
    let is_ordered = index.target.kind == IndexTargetKind::Simple
        && has_value_order(&column.ty)
        && of(index).is_in_value_order(index, column);
    is_ordered.then(|| column.ty.clone())
}

/// Returns true if a new index on the table has posting lists. Only indexes on vectors of rows have them.
pub(crate) fn has_posting_lists(index: &Index, table: &Table) -> bool {
    let column = table.column(&index.target.column).map(|(_, column)| column);
    column.is_some_and(|column| {
        sai::is_storage_attached(index)
            && column.kind == ColumnKind::Regular
            && matches!(column.ty, CqlType::Vector { .. })
    })
}

/// Returns true if the index answers `column operator value`.
pub fn supports(index: &Index, column: &Column, operator: Operator) -> bool {
    index.target.column == column.name && of(index).supports(index, column, operator)
}

/// Returns true if the operator means equality with the part of the column that the index holds.
fn is_equality(index: &Index, column: &Column, operator: Operator) -> bool {
    let is_set = matches!(column.ty, CqlType::Set { .. });
    match index.target.kind {
        IndexTargetKind::Simple | IndexTargetKind::Full | IndexTargetKind::KeysAndValues => {
            operator == Operator::Eq
        }
        IndexTargetKind::Keys => {
            operator == Operator::ContainsKey || (is_set && operator == Operator::Contains)
        }
        IndexTargetKind::Values => operator == Operator::Contains,
    }
}
