//! Kinds of indexes: the restrictions that each answers, the values that it holds, and the declarations that it accepts.
//!
//! A kind is a [`Registered`] and its [`Kind`], which [`named`] returns for the class in CREATE INDEX.

pub(crate) mod equality;
pub(crate) mod sai;
pub(crate) mod sasi;

use std::collections::BTreeMap;

use helenus_cql::ast::Operator;
use helenus_cql::error::CqlError;
use helenus_cql::types::CqlType;
use helenus_row::key::has_value_order;

use super::analyzer::Analyzer;
use super::pattern::LikeKind;
use crate::schema::{Column, ColumnKind, Index, IndexKind, IndexTarget, IndexTargetKind, Table};

/// A kind of index in the registry: its fixed properties, which are read without a virtual call, and its rules.
pub struct Registered {
    /// The kind of new indexes in `system_schema.indexes`.
    pub schema_kind: IndexKind,
    /// True if CREATE INDEX checks each of several targets before it refuses that there are several.
    pub checks_each_target: bool,
    /// The warning when an index is created. `None` if there is no warning.
    pub creation_warning: Option<&'static str>,
    /// The warning about an index on vectors. It is repeated whenever an index of the table is created. `None` if there is no warning.
    pub vector_warning: Option<&'static str>,
    /// True if such indexes answer several restrictions together, on one column or on several.
    pub intersects: bool,
    /// True if the index finds only rows, and no partitions that have only static content.
    pub finds_only_rows: bool,
    /// True if an index on vectors answers ORDER BY … ANN OF.
    pub ranks_vectors: bool,
    /// True if a value that is too long for a key is refused in a SELECT. Otherwise the value is not looked up in the index.
    pub refuses_long_values: bool,
    pub rules: &'static dyn Kind,
}

impl Registered {
    /// Returns true if an index is declared with a class, and stores its class and options.
    pub fn is_custom(&self) -> bool {
        self.schema_kind == IndexKind::Custom
    }
}

/// The rules of a kind of index.
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

    /// Refuses names of columns that the kind does not index.
    fn check_column_name(&self, _name: &str) -> Result<(), CqlError> {
        Ok(())
    }

    /// Returns the error of a CREATE INDEX that names no column or several.
    fn not_one_target(&self, columns: &[String]) -> CqlError;

    /// Refuses targets and options that the kind does not support.
    fn check(
        &self,
        _table: &Table,
        _target: &IndexTarget,
        _options: &BTreeMap<String, String>,
    ) -> Result<(), CqlError> {
        Ok(())
    }
}

/// Returns the kind that a class in CREATE INDEX names. `None` if the class is unknown. All kinds are registered here.
pub fn named(class: &str) -> Option<&'static Registered> {
    if sasi::is_sasi(class) {
        Some(&sasi::SASI)
    } else if sai::is_sai(class) {
        Some(&sai::STORAGE_ATTACHED)
    } else if equality::is_legacy(class) {
        Some(&equality::EQUALITY)
    } else {
        None
    }
}

/// Returns the kind of an index.
pub fn registered(index: &Index) -> &'static Registered {
    match index.kind {
        IndexKind::Custom => {
            let class = index.options.get("class_name");
            // Older binaries accepted more names of the class of storage-attached indexes.
            class
                .and_then(|class| named(class))
                .unwrap_or(&sai::STORAGE_ATTACHED)
        }
        IndexKind::Keys | IndexKind::Composites => &equality::EQUALITY,
    }
}

/// Returns the rules of an index's kind.
pub fn of(index: &Index) -> &'static dyn Kind {
    registered(index).rules
}

/// Returns the warnings about indexes on vectors among the table's first `count` indexes. Cassandra repeats the warnings when any index of
/// the table changes.
pub(crate) fn warnings(table: &Table, count: usize) -> Vec<String> {
    let indexes = table.indexes.iter().take(count);
    let warned = indexes.filter_map(|index| {
        let (_, column) = table.column(&index.target.column)?;
        let is_on_vector = matches!(column.ty, CqlType::Vector { .. });
        registered(index).vector_warning.filter(|_| is_on_vector)
    });
    warned.map(str::to_owned).collect()
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
        registered(index).ranks_vectors
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
