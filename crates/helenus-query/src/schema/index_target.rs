//! What an index is on.

use helenus_cql::types::{CqlType, NativeType};

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

    /// Returns the modifier around the column in an index's `target` option; empty for a simple one.
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

    /// Returns the type of what stands in an index on a column of this type.
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

/// Whether values are text, which analyzers take.
pub fn is_text(ty: &CqlType) -> bool {
    matches!(ty, CqlType::Native(NativeType::Text | NativeType::Ascii))
}
