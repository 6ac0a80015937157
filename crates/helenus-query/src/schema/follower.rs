//! Indexes and views: what follows a table's writes.

use std::collections::BTreeMap;
use std::sync::Arc;

use helenus_cql::types::{CqlType, NativeType};
use helenus_row::TableId;
use uuid::Uuid;

use super::sasi::is_text;
use super::{Analysis, Column, Table};
use crate::select::Expression;

/// `system_schema.indexes.kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexKind {
    Keys,
    Composites,
    Custom,
}

impl IndexKind {
    /// As `system_schema.indexes` shows it.
    pub fn name(self) -> &'static str {
        match self {
            IndexKind::Keys => "KEYS",
            IndexKind::Composites => "COMPOSITES",
            IndexKind::Custom => "CUSTOM",
        }
    }

    pub fn from_name(name: &str) -> Option<IndexKind> {
        [IndexKind::Keys, IndexKind::Composites, IndexKind::Custom]
            .into_iter()
            .find(|kind| kind.name() == name)
    }
}

/// What of a column an index holds (Cassandra's `IndexTarget.Type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexTargetKind {
    /// The value of a column that is no collection.
    Simple,
    Values,
    Keys,
    KeysAndValues,
    Full,
}

impl IndexTargetKind {
    const ALL: [IndexTargetKind; 5] = [
        IndexTargetKind::Simple,
        IndexTargetKind::Values,
        IndexTargetKind::Keys,
        IndexTargetKind::KeysAndValues,
        IndexTargetKind::Full,
    ];

    /// The modifier around the column in an index's `target` option; empty for a simple one.
    pub fn name(self) -> &'static str {
        match self {
            IndexTargetKind::Simple => "",
            IndexTargetKind::Values => "values",
            IndexTargetKind::Keys => "keys",
            IndexTargetKind::KeysAndValues => "entries",
            IndexTargetKind::Full => "full",
        }
    }

    pub fn from_name(name: &str) -> Option<IndexTargetKind> {
        IndexTargetKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The type of what stands in an index on a column of this type.
    pub fn indexed_type(self, column: &CqlType) -> &CqlType {
        match (column, self) {
            (CqlType::Map { key, .. }, IndexTargetKind::Keys) => key,
            (CqlType::Map { value, .. }, IndexTargetKind::Values) => value,
            (CqlType::List { element, .. } | CqlType::Set { element, .. }, IndexTargetKind::Values) => {
                element
            }
            _ => column,
        }
    }
}

/// The column that an index is on, and what of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexTarget {
    pub column: String,
    pub kind: IndexTargetKind,
}

/// A secondary index. Its entries lie in a hidden table keyed by the indexed value; see `docs/data-layout.md`.
#[derive(Clone, Debug)]
pub struct Index {
    pub name: String,
    pub kind: IndexKind,
    /// As declared, `target` and (for custom ones) `class_name` included.
    pub options: BTreeMap<String, String>,
    pub target: IndexTarget,
    /// The hidden table: partition key is the indexed value, clustering is the base row's token-less primary key.
    pub table: Arc<Table>,
    /// Whether the column holds text.
    pub is_on_text: bool,
    /// False while it is being built on rows that were there before it; reads don't use it until then.
    pub is_complete: bool,
}

impl Index {
    /// How it compares text, if not as it is.
    pub fn analysis(&self) -> Option<Analysis> {
        match self.kind {
            IndexKind::Custom if self.is_sasi() => {
                // Without a class only text is analyzed.
                let is_analyzed = self.is_on_text || self.options.contains_key("analyzer_class");
                is_analyzed.then(|| Analysis::of_sasi(&self.options)).flatten()
            }
            IndexKind::Custom => Analysis::of(&self.options),
            IndexKind::Keys | IndexKind::Composites => None,
        }
    }

    /// Whether it leaves out what is empty, even of types to which that is a value: an SASI index does, and a storage-attached one unless it
    /// holds text, booleans or what is frozen (Cassandra's `IndexTermType.skipsEmptyValue`), and even then if the column is in descending order.
    pub fn skips_empty(&self, column: &Column) -> bool {
        let holds_empty = match self.target.kind.indexed_type(&column.ty) {
            CqlType::Native(NativeType::Boolean) => true,
            ty => is_text(ty) || !matches!(ty, CqlType::Native(_)),
        };
        self.kind == IndexKind::Custom && (self.is_sasi() || column.is_reversed() || !holds_empty)
    }
}

/// What makes a table a materialized view.
#[derive(Clone, Debug)]
pub struct View {
    pub base_table: String,
    pub base_table_id: Uuid,
    pub include_all_columns: bool,
    /// The WHERE clause as CQL that can be parsed.
    pub where_clause: String,
    /// What it asks of the view's key columns, by their places in the view.
    pub filter: Vec<Expression>,
    /// False while the rows that were there before it are brought in; reads don't find all of them until then.
    pub is_built: bool,
}

/// What is kept up to date by a table's writes.
#[derive(Clone, Debug)]
pub enum Follower {
    Index(Arc<Index>),
    View(Arc<Table>),
}

impl Follower {
    /// The number of the table that holds it.
    pub fn number(&self) -> TableId {
        match self {
            Follower::Index(index) => index.table.number,
            Follower::View(view) => view.number,
        }
    }

    /// The follower with its base table.
    pub fn of(self, base: &Arc<Table>) -> Followed {
        Followed {
            base: base.clone(),
            follower: self,
        }
    }
}

/// A follower and the table that it follows.
#[derive(Clone, Debug)]
pub struct Followed {
    pub base: Arc<Table>,
    pub follower: Follower,
}
