//! Tables whose rows are computed when they are read.

use async_trait::async_trait;
use bytes::Bytes;
use helenus_cql::error::CqlError;

use crate::schema::Table;

/// A value for each of [`Table::columns`].
pub type VirtualRow = Vec<Option<Bytes>>;

/// The source of the rows of virtual tables.
#[async_trait]
pub trait VirtualTables: Send + Sync {
    /// Refreshes this node's copies of documents from which the rows of a table follow. Must be called before [`VirtualTables::rows`].
    ///
    /// # Errors
    /// The store cannot be read.
    async fn refresh(&self, table: &Table) -> Result<(), CqlError>;

    /// Returns every row of a table, in the order in which Cassandra reads them.
    ///
    /// # Errors
    /// The node is about to stop.
    fn rows(&self, table: &Table) -> Result<Vec<VirtualRow>, CqlError>;

    /// Adds the values that have to be read from the store to rows that the request returns.
    ///
    /// # Errors
    /// The store cannot be read.
    async fn complete(&self, table: &Table, rows: &mut [&mut VirtualRow]) -> Result<(), CqlError>;
}

/// No virtual tables.
pub(crate) struct NoVirtualTables;

#[async_trait]
impl VirtualTables for NoVirtualTables {
    async fn refresh(&self, _table: &Table) -> Result<(), CqlError> {
        Ok(())
    }

    fn rows(&self, _table: &Table) -> Result<Vec<VirtualRow>, CqlError> {
        Ok(Vec::new())
    }

    async fn complete(&self, _table: &Table, _rows: &mut [&mut VirtualRow]) -> Result<(), CqlError> {
        Ok(())
    }
}
