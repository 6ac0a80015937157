//! What each kind of index answers and holds in its own way.

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
    /// Whether an index on the column answers `column operator value`.
    fn supports(&self, index: &Index, column: &Column, operator: Operator) -> bool;

    /// Whether it answers LIKE with such a pattern.
    fn supports_like(&self, _index: &Index, _pattern: LikeKind) -> bool {
        false
    }

    /// Whether its entries lie in the order of the values, since it answers bounds or beginnings of them.
    fn is_in_value_order(&self, _index: &Index, _column: &Column) -> bool {
        false
    }

    /// How it compares text, if not as it is.
    fn analysis(&self, _index: &Index) -> Option<Analyzer> {
        None
    }

    /// Whether it compares the text of clustering columns like that too.
    fn analyzes_clustering(&self) -> bool {
        false
    }

    /// Whether it leaves out what is empty, even of types to which that is a value.
    fn skips_empty(&self, _index: &Index, _column: &Column) -> bool {
        false
    }

    /// Whether it holds such a value. Rows are not found by what it does not hold.
    fn holds(&self, _index: &Index, _column: &Column, _value: &[u8]) -> bool {
        true
    }

    /// Whether it holds a map's entry, of which key and value are held together.
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
    /// How it compares text, if not as it is.
    pub fn analysis(&self) -> Option<Analyzer> {
        of(self).analysis(self)
    }

    /// Whether it leaves out what is empty, even of types to which that is a value.
    pub fn skips_empty(&self, column: &Column) -> bool {
        of(self).skips_empty(self, column)
    }
}

/// Returns the type in whose order the entries of a new index on the table lie, if they do.
pub(crate) fn value_order(index: &Index, table: &Table) -> Option<CqlType> {
    let (_, column) = table.column(&index.target.column)?;
    let is_ordered = index.target.kind == IndexTargetKind::Simple
        && has_value_order(&column.ty)
        && of(index).is_in_value_order(index, column);
    is_ordered.then(|| column.ty.clone())
}

/// Whether a new index on the table holds its entries in posting lists: one on the vectors of rows.
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

/// Whether what an index holds of a column is found by such an operator, if it is found by equality alone.
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
