//! Columns of tables.

use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_cql::identifier::quote_identifier;
use helenus_cql::types::CqlType;
use helenus_row::{ColumnId, Order};

use super::constraint::{Constraint, ConstraintKind};

/// The role of a column in its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ColumnKind {
    PartitionKey,
    Clustering,
    Static,
    Regular,
}

/// The direction of a clustering column.
pub type ClusteringOrder = Order;

/// A column of a table. The fields that every request needs come first, so that they share a cache line.
#[derive(Clone, Debug, PartialEq)]
#[repr(C)]
pub struct Column {
    pub ty: CqlType,
    /// The id of the column's cells in stored rows. A table never reuses it for another column. Key columns have an id without a use.
    pub id: ColumnId,
    pub kind: ColumnKind,
    /// `Order::Desc` for clustering columns declared DESC, and for such columns in the key of a view. `Order::Asc` for all others.
    pub order: ClusteringOrder,
    /// Position in the partition key or among the clustering columns. 0 for other columns.
    pub position: usize,
    pub name: String,
    /// The mask for roles without the permission to see the column's values. `None` if the column has no mask.
    pub mask: Option<Arc<ColumnMask>>,
    /// The conditions that written values must meet. Empty if there are none.
    pub constraints: Arc<[Constraint]>,
}

/// A function of a column's value and of further arguments (Cassandra's `ColumnMask`).
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnMask {
    /// `system`, or the table's keyspace if the function is user-defined.
    pub keyspace: String,
    pub name: String,
    /// Types and values of the further arguments.
    pub arguments: Vec<(CqlType, Option<Bytes>)>,
}

impl ColumnMask {
    /// Returns a mask that shows null, for any type of column.
    pub fn null() -> ColumnMask {
        ColumnMask {
            keyspace: "system".to_owned(),
            name: "mask_null".to_owned(),
            arguments: Vec::new(),
        }
    }

    /// Returns the mask for a dropped column, which may outlive user-defined functions and types. If the mask needs such a function or
    /// type, it is replaced by one that shows null.
    pub fn without_users_parts(&self) -> ColumnMask {
        let is_native = |(ty, _): &(CqlType, _)| matches!(ty, CqlType::Native(_));
        match self.keyspace == "system" && self.arguments.iter().all(is_native) {
            true => self.clone(),
            false => ColumnMask::null(),
        }
    }

    /// Returns the function's qualified name.
    pub fn function_name(&self) -> String {
        format!("{}.{}", self.keyspace, self.name)
    }
}

impl Column {
    pub fn is_primary_key(&self) -> bool {
        matches!(self.kind, ColumnKind::PartitionKey | ColumnKind::Clustering)
    }

    /// Returns true if the column was declared DESC. Cassandra wraps the types of such columns, so its checks for collections and for equal
    /// types do not recognize them.
    pub fn is_reversed(&self) -> bool {
        self.order == Order::Desc
    }

    /// Returns true if the column has the constraint NOT NULL.
    pub fn refuses_null(&self) -> bool {
        let mut constraints = self.constraints.iter();
        constraints.any(|constraint| constraint.kind == ConstraintKind::NotNull)
    }

    /// Checks a written value. `None` is null.
    ///
    /// # Errors
    /// The value does not meet a constraint.
    pub fn check_constraints(&self, value: Option<&[u8]>) -> Result<(), CqlError> {
        let mut constraints = self.constraints.iter();
        constraints.try_for_each(|constraint| constraint.check(&self.name, &self.ty, value))
    }

    pub fn is_static(&self) -> bool {
        self.kind == ColumnKind::Static
    }

    /// Returns the name in CQL, quoted if necessary.
    pub fn cql_name(&self) -> String {
        quote_identifier(&self.name)
    }
}

/// A dropped column. It may be added again only with a compatible type (`system_schema.dropped_columns`).
#[derive(Clone, Debug, PartialEq)]
pub struct DroppedColumn {
    pub name: String,
    pub ty: CqlType,
    pub kind: ColumnKind,
    /// The id of its cells. `None` if an older version dropped the column; older versions did not reuse the id when a column was added
    /// again.
    pub id: Option<ColumnId>,
    /// Time of the drop. Cells up to this time are deleted.
    pub dropped_time_us: i64,
    /// The mask that the column had when it was dropped. It also applies to reads as of earlier times.
    pub mask: Option<Arc<ColumnMask>>,
}
