//! The rows of one partition, in order or in reverse.

use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_row::header::PartitionHeader;
use helenus_row::{CellRules, ClusteringRange, KeyKind, TableId, key};

use super::{PartitionKey, RowAt, StoredRow, corrupt_key, get, scan_partition};
use crate::cluster::reads::TabletScan;
use crate::engine::Engine;
use crate::schema::Table;

/// Which rows of a partition are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowsWanted {
    /// These encoded clusterings, ascending.
    Names(Arc<[Bytes]>),
    /// Those within these ranges of encoded clusterings, ascending and apart.
    Slices(Arc<[ClusteringRange]>),
}

impl RowsWanted {
    /// Every row.
    pub fn all() -> RowsWanted {
        RowsWanted::Slices(Arc::new([ClusteringRange::all()]))
    }

    pub fn is_empty(&self) -> bool {
        match self {
            RowsWanted::Names(names) => names.is_empty(),
            RowsWanted::Slices(ranges) => ranges.iter().all(ClusteringRange::is_empty),
        }
    }

    /// True if the row of that encoded clustering is wanted.
    pub fn contains(&self, clustering: &[u8]) -> bool {
        match self {
            RowsWanted::Names(names) => names
                .binary_search_by(|name| name.as_ref().cmp(clustering))
                .is_ok(),
            RowsWanted::Slices(ranges) => ranges.iter().any(|range| range.contains(clustering)),
        }
    }

    /// What comes after `clustering` in the direction of reading.
    pub fn after(&self, clustering: &[u8], reversed: bool) -> RowsWanted {
        match self {
            RowsWanted::Names(names) => {
                let is_left = |name: &&Bytes| {
                    if reversed {
                        name.as_ref() < clustering
                    } else {
                        name.as_ref() > clustering
                    }
                };
                RowsWanted::Names(names.iter().filter(is_left).cloned().collect())
            }
            RowsWanted::Slices(ranges) => {
                let rest = rest_range(clustering, reversed);
                let left = ranges
                    .iter()
                    .map(|range| range.intersect(&rest))
                    .filter(|range| !range.is_empty());
                RowsWanted::Slices(left.collect())
            }
        }
    }
}

fn rest_range(clustering: &[u8], reversed: bool) -> ClusteringRange {
    if reversed {
        return ClusteringRange {
            start: Bytes::new(),
            end: Some(Bytes::copy_from_slice(clustering)),
        };
    }
    // What begins with an encoded clustering is a longer one (of a compact table), so the next byte string is before the next clustering.
    let mut start = clustering.to_vec();
    start.push(0);
    ClusteringRange {
        start: start.into(),
        end: None,
    }
}

/// Goes over rows of a partition, the dead ones included.
pub struct RowCursor {
    table: TableId,
    rules: CellRules,
    partition: PartitionKey,
    header: Option<PartitionHeader>,
    wanted: RowsWanted,
    reversed: bool,
    /// How many names or ranges were begun.
    begun: usize,
    scan: Option<TabletScan>,
}

impl RowCursor {
    /// `header` is the partition's, from [`super::read_header`].
    pub fn new(
        table: &Table,
        partition: PartitionKey,
        header: Option<PartitionHeader>,
        wanted: RowsWanted,
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
        }
    }

    /// The partition's header.
    pub fn header(&self) -> Option<&PartitionHeader> {
        self.header.as_ref()
    }

    /// The next row.
    pub async fn next(&mut self, engine: &Engine) -> Result<Option<RowAt>, CqlError> {
        match &self.wanted {
            RowsWanted::Names(names) => {
                let names = names.clone();
                self.next_named(engine, &names).await
            }
            RowsWanted::Slices(ranges) => {
                let ranges = ranges.clone();
                self.next_in_slices(engine, &ranges).await
            }
        }
    }

    /// The place of the next name or range, in the direction of reading.
    fn place(&mut self, count: usize) -> usize {
        let place = if self.reversed {
            count.wrapping_sub(self.begun + 1)
        } else {
            self.begun
        };
        self.begun += 1;
        place
    }

    async fn next_named(&mut self, engine: &Engine, names: &[Bytes]) -> Result<Option<RowAt>, CqlError> {
        loop {
            let place = self.place(names.len());
            let Some(clustering) = names.get(place) else {
                return Ok(None);
            };
            let partition = &self.partition;
            let key = key::row_key(self.table, partition.token, &partition.bytes, clustering);
            if let Some(packed) = get(engine, partition.token, &key).await? {
                return self.row(clustering.clone(), packed).map(Some);
            }
        }
    }

    async fn next_in_slices(
        &mut self,
        engine: &Engine,
        ranges: &[ClusteringRange],
    ) -> Result<Option<RowAt>, CqlError> {
        loop {
            if let Some(scan) = &mut self.scan {
                if let Some((key, packed)) = scan.next().await? {
                    let parts = key::decode_key(&key).map_err(corrupt_key)?;
                    if parts.kind != KeyKind::Row {
                        continue;
                    }
                    let clustering = key.slice_ref(parts.clustering);
                    return self.row(clustering, packed).map(Some);
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
            self.scan = Some(scan_partition(engine, partition.token, keys, self.reversed).await?);
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
