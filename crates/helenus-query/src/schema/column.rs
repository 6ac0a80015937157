//! Columns.

use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::identifier::quote_identifier;
use helenus_cql::types::CqlType;
use helenus_row::{ColumnId, Order};

/// What role a column plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ColumnKind {
    PartitionKey,
    Clustering,
    Static,
    Regular,
}

/// The direction of a clustering column.
pub type ClusteringOrder = Order;

/// A column of a table. What every request looks at comes first.
#[derive(Clone, Debug, PartialEq)]
#[repr(C)]
pub struct Column {
    pub ty: CqlType,
    /// Names the column's cells in stored rows; never used twice in a table. Key columns have one, unused.
    pub id: ColumnId,
    pub kind: ColumnKind,
    /// `Order::Asc` for all but clustering columns declared DESC, and these in the key of a view.
    pub order: ClusteringOrder,
    /// Position in the partition key or among the clustering columns; 0 for the others.
    pub position: usize,
    pub name: String,
    /// What hides its values from those who may not see them.
    pub mask: Option<Arc<ColumnMask>>,
}

/// A function that takes a column's value, and what it takes besides (Cassandra's `ColumnMask`).
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnMask {
    /// `system`, or the keyspace of the table for a function of a user.
    pub keyspace: String,
    pub name: String,
    /// The types of its arguments, without the column's, and their values.
    pub arguments: Vec<(CqlType, Option<Bytes>)>,
}

impl ColumnMask {
    /// Returns the mask that shows null, whatever the type of the column.
    pub fn null() -> ColumnMask {
        ColumnMask {
            keyspace: "system".to_owned(),
            name: "mask_null".to_owned(),
            arguments: Vec::new(),
        }
    }

    /// Returns the mask of a column that is dropped. It may outlive functions and types of users; a mask that needs some becomes one that
    /// shows null.
    pub fn without_users_parts(&self) -> ColumnMask {
        let is_native = |(ty, _): &(CqlType, _)| matches!(ty, CqlType::Native(_));
        match self.keyspace == "system" && self.arguments.iter().all(is_native) {
            true => self.clone(),
            false => ColumnMask::null(),
        }
    }

    /// Returns the qualified name.
    pub fn function_name(&self) -> String {
        format!("{}.{}", self.keyspace, self.name)
    }
}

impl Column {
    pub fn is_primary_key(&self) -> bool {
        matches!(self.kind, ColumnKind::PartitionKey | ColumnKind::Clustering)
    }

    /// Returns true for clustering columns declared DESC. Cassandra wraps their types, and what looks for a collection or for the very
    /// same type does not see through it.
    pub fn is_reversed(&self) -> bool {
        self.order == Order::Desc
    }

    pub fn is_static(&self) -> bool {
        self.kind == ColumnKind::Static
    }

    /// Returns the name as CQL writes it, quoted where it must be.
    pub fn cql_name(&self) -> String {
        quote_identifier(&self.name)
    }
}

/// A column that was dropped: it may be added again only with a compatible type
/// (`system_schema.dropped_columns`).
#[derive(Clone, Debug, PartialEq)]
pub struct DroppedColumn {
    pub name: String,
    pub ty: CqlType,
    pub kind: ColumnKind,
    /// What its cells carry. Not known of columns that were dropped by older versions, which never took them up again.
    pub id: Option<ColumnId>,
    /// What was written up to then is gone.
    pub dropped_time_us: i64,
    /// The mask that the column had when it was dropped: it holds for the values of earlier times.
    pub mask: Option<Arc<ColumnMask>>,
}
