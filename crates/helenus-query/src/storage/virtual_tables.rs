//! Tables whose rows are computed when they are read.

use async_trait::async_trait;
use bytes::Bytes;
use helenus_cql::error::CqlError;

use crate::schema::Table;

/// A value for each of [`Table::columns`].
pub type VirtualRow = Vec<Option<Bytes>>;

/// What gives the rows of virtual tables.
#[async_trait]
pub trait VirtualTables: Send + Sync {
    /// Returns every row of a table, in the order in which Cassandra reads them.
    ///
    /// # Errors
    /// When the node is about to end.
    fn rows(&self, table: &Table) -> Result<Vec<VirtualRow>, CqlError>;

    /// Completes rows that are read with what the store has to be asked for.
    ///
    /// # Errors
    /// When the store can't be read.
    async fn complete(&self, table: &Table, rows: &mut [&mut VirtualRow]) -> Result<(), CqlError>;
}

/// Where there are none.
pub(crate) struct NoVirtualTables;

#[async_trait]
impl VirtualTables for NoVirtualTables {
    fn rows(&self, _table: &Table) -> Result<Vec<VirtualRow>, CqlError> {
        Ok(Vec::new())
    }

    async fn complete(&self, _table: &Table, _rows: &mut [&mut VirtualRow]) -> Result<(), CqlError> {
        Ok(())
    }
}
