//! Headers and rows as they were before the writes of a request.

use std::collections::HashMap;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_row::header::PartitionHeader;

use crate::rows::{PartitionKey, StoredRow};
use crate::schema::Table;
use crate::storage::row_reads::{ReadView, read_header, read_stored_row_under, read_stored_static};

/// Reads of headers and rows of locked partitions. Images and derived tables of the same table share what was read.
pub(super) struct RowsBefore<'v> {
    view: ReadView<'v>,
    headers: HashMap<(u32, Bytes), PartitionHeader>,
    /// Rows by table, partition and clustering. The clustering of a static row is `None`.
    rows: HashMap<(u32, Bytes, Option<Bytes>), Option<StoredRow>>,
}

/// Returns true if what is read of the table is needed twice.
fn is_shared(table: &Table) -> bool {
    table.has_images && table.has_derived_tables()
}

impl<'v> RowsBefore<'v> {
    pub fn new(view: ReadView<'v>) -> RowsBefore<'v> {
        RowsBefore {
            view,
            headers: HashMap::new(),
            rows: HashMap::new(),
        }
    }

    /// Returns the partition's header, which is empty if there is none.
    pub async fn header(
        &mut self,
        table: &Table,
        partition: &PartitionKey,
    ) -> Result<PartitionHeader, CqlError> {
        if !is_shared(table) {
            let header = read_header(self.view, table, partition).await?;
            return Ok(header.unwrap_or_default());
        }
        let key = (table.number.0, partition.bytes.clone());
        if let Some(known) = self.headers.get(&key) {
            return Ok(known.clone());
        }
        let header = read_header(self.view, table, partition)
            .await?
            .unwrap_or_default();
        self.headers.insert(key, header.clone());
        Ok(header)
    }

    /// Returns the stored row of an encoded clustering, or the static row. `header` is that of the partition.
    pub async fn row(
        &mut self,
        table: &Table,
        partition: &PartitionKey,
        clustering: Option<&Bytes>,
        header: &PartitionHeader,
    ) -> Result<Option<StoredRow>, CqlError> {
        if !is_shared(table) {
            return self.read(table, partition, clustering, header).await;
        }
        let key = (table.number.0, partition.bytes.clone(), clustering.cloned());
        if let Some(known) = self.rows.get(&key) {
            return Ok(known.clone());
        }
        let row = self.read(table, partition, clustering, header).await?;
        self.rows.insert(key, row.clone());
        Ok(row)
    }

    async fn read(
        &self,
        table: &Table,
        partition: &PartitionKey,
        clustering: Option<&Bytes>,
        header: &PartitionHeader,
    ) -> Result<Option<StoredRow>, CqlError> {
        match clustering {
            Some(clustering) => {
                read_stored_row_under(self.view, table, partition, clustering, Some(header)).await
            }
            None => read_stored_static(self.view, table, partition, Some(header)).await,
        }
    }
}

#[cfg(test)]
#[path = "rows_before_tests.rs"]
mod tests;
