//! Rows of one partition, in order or in reverse.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_row::header::PartitionHeader;
use helenus_row::{CellRules, ClusteringRange, KeyKind, TableId, key};

use super::{ReadView, get, scan_partition};
use crate::failure::ExecutionError;
use crate::rows::{PartitionKey, RowAt, RowSelection, StoredRow, corrupt_key};
use crate::schema::Table;
use crate::storage::partition_scan::PartitionScan;

/// A cursor over rows of a partition, including the dead ones.
pub struct RowCursor {
    table: TableId,
    rules: CellRules,
    partition: PartitionKey,
    header: Option<PartitionHeader>,
    wanted: RowSelection,
    reversed: bool,
    /// Number of names or ranges that were begun.
    begun: usize,
    scan: Option<PartitionScan>,
    /// Rows that were read earlier, by key.
    known: Option<Arc<KnownRows>>,
}

/// Merged rows by key, from [`crate::storage::key_reads::get_many`]. `None` if the row does not exist.
pub type KnownRows = HashMap<Bytes, Option<Bytes>>;

impl RowCursor {
    /// Returns a cursor. `header` is that of the partition, from [`super::read_header`].
    pub fn new(
        table: &Table,
        partition: PartitionKey,
        header: Option<PartitionHeader>,
        wanted: RowSelection,
        reversed: bool,
    ) -> RowCursor {
        RowCursor {
            table: table.number,
            rules: table.cell_rules.clone(),
            partition,
            header,
            wanted,
            reversed,
            begun: 0,
            scan: None,
            known: None,
        }
    }

    /// Returns the cursor with rows that it need not read again.
    pub fn with_known(mut self, known: Option<Arc<KnownRows>>) -> RowCursor {
        self.known = known;
        self
    }

    /// Returns the partition's header. `None` if it has none.
    pub fn header(&self) -> Option<&PartitionHeader> {
        self.header.as_ref()
    }

    /// Returns the next row. `None` if there is none.
    ///
    /// # Errors
    /// [`ExecutionError::NotOwned`] if the partition has moved to another node during a scan. The request has to begin again.
    pub async fn next(&mut self, view: impl Into<ReadView<'_>>) -> Result<Option<RowAt>, ExecutionError> {
        let view = view.into();
        match &self.wanted {
            RowSelection::Names(names) => {
                let names = names.clone();
                self.next_named(view, &names).await
            }
            RowSelection::Slices(ranges) => {
                let ranges = ranges.clone();
                self.next_in_slices(view, &ranges).await
            }
        }
    }

    /// Returns true as long as [`RowCursor::mark_dead`] has an effect.
    pub fn is_at_dead_front(&self) -> bool {
        self.scan.as_ref().is_some_and(PartitionScan::is_at_dead_front)
    }

    /// Marks the last row as dead, whatever the time. Later reads of the same slice may skip it.
    pub fn mark_dead(&mut self) {
        if let Some(scan) = &mut self.scan {
            scan.mark_dead();
        }
    }

    /// Returns the index of the next name or range, in the direction of reading.
    fn place(&mut self, count: usize) -> usize {
        let place = if self.reversed {
            count.wrapping_sub(self.begun + 1)
        } else {
            self.begun
        };
        self.begun += 1;
        place
    }

    async fn next_named(
        &mut self,
        view: ReadView<'_>,
        names: &[Bytes],
    ) -> Result<Option<RowAt>, ExecutionError> {
        loop {
            let place = self.place(names.len());
            let Some(clustering) = names.get(place) else {
                return Ok(None);
            };
            let partition = &self.partition;
            let key = key::row_key(self.table, partition.token, &partition.bytes, clustering);
            let found = match self.known.as_ref().and_then(|known| known.get(&key)) {
                Some(known) => known.clone(),
                None => get(view, partition.token, &key).await?,
            };
            if let Some(packed) = found {
                return Ok(Some(self.row(clustering.clone(), packed)?));
            }
        }
    }

    async fn next_in_slices(
        &mut self,
        view: ReadView<'_>,
        ranges: &[ClusteringRange],
    ) -> Result<Option<RowAt>, ExecutionError> {
        loop {
            if let Some(scan) = &mut self.scan {
                if let Some((key, packed)) = scan.next().await? {
                    let parts = key::decode_key(&key).map_err(corrupt_key)?;
                    if parts.kind != KeyKind::Row {
                        continue;
                    }
                    let clustering = key.slice_ref(parts.clustering);
                    return Ok(Some(self.row(clustering, packed)?));
                }
                self.scan = None;
            }
            let place = self.place(ranges.len());
            let Some(range) = ranges.get(place) else {
                return Ok(None);
            };
            if range.is_empty() {
                continue;
            }
            let partition = &self.partition;
            let prefix = key::partition_prefix(self.table, partition.token, &partition.bytes);
            let keys = range.in_partition(&prefix);
            self.scan = Some(scan_partition(view, partition.token, keys, self.reversed).await?);
        }
    }

    fn row(&self, clustering: Bytes, packed: Bytes) -> Result<RowAt, CqlError> {
        let shadow = self
            .header
            .as_ref()
            .and_then(|header| header.deletion_at(&clustering));
        Ok(RowAt {
            row: StoredRow::parse(packed, shadow, &self.rules)?,
            clustering,
        })
    }
}
