//! Targets of indexes.

use helenus_cql::types::{CqlType, NativeType};

/// The kind of an index in `system_schema.indexes.kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexKind {
    Keys,
    Composites,
    Custom,
}

impl IndexKind {
    /// Returns the name in `system_schema.indexes`.
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

/// The indexed part of a column (Cassandra's `IndexTarget.Type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexTargetKind {
    /// The value of a column that is not a collection.
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

    /// Returns the function around the column in an index's `target` option. Empty for a simple target.
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

    /// Returns the type of the indexed values, for a column of this type.
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

/// The indexed column and the part of it that is indexed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexTarget {
    pub column: String,
    pub kind: IndexTargetKind,
}

/// Returns true if the values are text, which analyzers accept.
pub fn is_text(ty: &CqlType) -> bool {
    matches!(ty, CqlType::Native(NativeType::Text | NativeType::Ascii))
}
