//! The form of an entry of [`super::registry`].

use std::sync::Arc;

use futures::future::BoxFuture;
use helenus_cql::error::CqlError;

use super::Row;
use crate::engine::Engine;
use crate::schema::Table;

/// Function that computes every row of a table, in any order.
type ComputeRows = fn(&Arc<Engine>, &Table) -> Vec<Row>;

/// Function that sets the columns that are read from the store, in the rows that a request returns.
type CompleteRows = for<'a> fn(&'a Engine, &'a Table, Vec<&'a mut Row>) -> Completion<'a>;

/// The future of a [`CompleteRows`]. It fails if the store cannot be read.
pub(super) type Completion<'a> = BoxFuture<'a, Result<(), CqlError>>;

/// Function that refreshes the documents from which the rows follow, if other nodes change these without a notification.
type RefreshDocuments = fn(Arc<Engine>) -> BoxFuture<'static, Result<(), CqlError>>;

/// A virtual table with rows.
pub(super) struct VirtualTable {
    pub keyspace: &'static str,
    pub name: &'static str,
    pub rows: ComputeRows,
    /// `None` if the rows follow from what this node knows.
    pub refresh: Option<RefreshDocuments>,
    /// `None` if no column is read from the store.
    pub complete: Option<CompleteRows>,
    /// The CREATE TABLE statement of a table that Cassandra does not have. `None` for a table of Cassandra, which the folder `definitions`
    /// defines.
    pub definition: Option<&'static str>,
    /// True if the table exists only on nodes of a shared store.
    pub is_of_shared_store: bool,
    /// True if the table is for readers of captured changes. It is listed once a table captures changes.
    pub is_of_cdc: bool,
    /// True if Cassandra 5 does not have the table. Such a table can be read, and is not listed.
    pub is_of_cassandra_6: bool,
    /// True if every authenticated role may read the table. See also
    /// [`SystemKeyspace::is_public`](super::definition::SystemKeyspace::is_public).
    pub is_public: bool,
}

/// Returns the entry of a table of Cassandra that needs a permission, and whose rows are computed from what memory holds.
pub(super) const fn table(keyspace: &'static str, name: &'static str, rows: ComputeRows) -> VirtualTable {
    VirtualTable {
        keyspace,
        name,
        rows,
        refresh: None,
        complete: None,
        definition: None,
        is_of_shared_store: false,
        is_of_cdc: false,
        is_of_cassandra_6: false,
        is_public: false,
    }
}

impl VirtualTable {
    /// Returns the entry of a table whose rows follow from documents of the store.
    pub const fn refreshed_by(self, refresh: RefreshDocuments) -> VirtualTable {
        VirtualTable {
            refresh: Some(refresh),
            ..self
        }
    }

    /// Returns the entry of a table with columns that are read from the store.
    pub const fn completed_by(self, complete: CompleteRows) -> VirtualTable {
        VirtualTable {
            complete: Some(complete),
            ..self
        }
    }

    /// Returns the entry of a table that Cassandra does not have.
    pub const fn defined_by(self, definition: &'static str) -> VirtualTable {
        VirtualTable {
            definition: Some(definition),
            ..self
        }
    }

    /// Returns the entry of a table about the nodes of a shared store.
    pub const fn of_shared_store(self) -> VirtualTable {
        VirtualTable {
            is_of_shared_store: true,
            ..self
        }
    }

    /// Returns the entry of a table for readers of captured changes.
    pub const fn of_cdc(self) -> VirtualTable {
        VirtualTable {
            is_of_cdc: true,
            ..self
        }
    }

    /// Returns the entry of a table of Cassandra 6.
    pub const fn of_cassandra_6(self) -> VirtualTable {
        VirtualTable {
            is_of_cassandra_6: true,
            ..self
        }
    }

    /// Returns the entry of a table that every authenticated role may read, because drivers and tools read it.
    pub const fn public(self) -> VirtualTable {
        VirtualTable {
            is_public: true,
            ..self
        }
    }
}
