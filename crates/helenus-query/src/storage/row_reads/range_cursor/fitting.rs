//! Reads of the rows of a range that may pass a filter. The other rows are tested where they are stored: they are counted, but neither
//! copied nor decoded.
//!
//! The counts are those of a reader that decodes each row and then filters it. Rows of partitions that the filter rejects are not counted.

use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_row::header::PartitionHeader;
use helenus_row::key::{self, decode_partition_prefix, split_key, split_key_within, token_of};
use helenus_row::read::row_state;
use helenus_row::{Deletion, KeyKind};

use super::{Entry, FoundPartition, STEPS_MAX};
use crate::analysis::restrictions::packed_filter::PackedFilter;
use crate::limits::scope;
use crate::rows::{PartitionKey, RowAt, RowCounts, RowSelection, StoredRow, corrupt, corrupt_key};
use crate::schema::Table;
use crate::storage::ExecutionContext;
use crate::storage::row_reads::passed_rows::PassedRows;

/// A filter on the rows of a range, and the state of reading them.
pub struct FittingRows {
    pub(super) table: Arc<Table>,
    filter: PackedFilter,
    wanted: RowSelection,
    /// True if static content alone can make a partition part of the result.
    finds_static: bool,
    /// Number of entries after which the request's time limit starts again. `None` if there is one limit for all.
    renewed_after: Option<usize>,
    /// Entries since the time limit started.
    timed: usize,
    pub(super) partition: CurrentPartition,
    /// True while only rows of the current partition are wanted.
    pub(super) stays: bool,
    /// An entry of the scan that is to be tested or returned next.
    pub(super) held: Option<(Bytes, Bytes)>,
    /// Number of rows that fit, while rows are only counted. `None` while they are returned.
    pub(super) counted: Option<u64>,
    /// Counts of the skipped rows that were not taken yet.
    pub(super) skipped: RowCounts,
    passed: PassedRows,
}

/// The partition of the last tested entry.
#[derive(Default)]
pub(super) struct CurrentPartition {
    /// The key prefix. Empty before the first partition.
    prefix: Vec<u8>,
    header: Option<PartitionHeader>,
    /// The packed static row. Empty if there is none.
    static_row: Vec<u8>,
    /// True if the partition's key and static row pass. `None` if this is not known yet.
    is_accepted: Option<bool>,
    /// True once the rest of the partition is not wanted.
    pub(super) is_left: bool,
    /// Number of rows that were passed over without a test.
    passed_over: usize,
    /// True if a row was counted.
    has_rows: bool,
}

/// The result of testing an entry.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    Skipped,
    /// The entry is a row that may be part of the result.
    Row,
    /// The entry is the static row of a partition that may be part of the result.
    Static,
    /// The entry belongs to the next partition, and only rows of the current one are wanted.
    OtherPartition,
    /// Many rows of a partition were passed over that is not wanted.
    LongRest,
    /// There are no more entries.
    End,
}

impl FittingRows {
    /// Creates the state of a read of the table's wanted rows.
    pub fn new(table: Arc<Table>, filter: PackedFilter, wanted: RowSelection) -> FittingRows {
        FittingRows {
            passed: PassedRows::new(table.clone()),
            table,
            filter,
            wanted,
            finds_static: false,
            renewed_after: None,
            timed: 0,
            partition: CurrentPartition::default(),
            stays: false,
            held: None,
            counted: None,
            skipped: RowCounts::default(),
        }
    }

    /// Returns partitions with accepted static content even if they have no row that fits.
    pub fn with_static_content(self, finds_static: bool) -> FittingRows {
        FittingRows { finds_static, ..self }
    }

    /// Restarts the request's time limit each time that many entries were read.
    pub fn renewing_time(self, renewed_after: Option<usize>) -> FittingRows {
        FittingRows {
            renewed_after,
            ..self
        }
    }

    /// Returns the counts of the rows that were skipped since the last call.
    pub fn take_skipped(&mut self) -> RowCounts {
        std::mem::take(&mut self.skipped)
    }

    pub(super) fn see(&mut self, key: &[u8], packed: &[u8]) -> Result<Seen, CqlError> {
        let parts = match split_key_within(key, &self.partition.prefix).map_err(corrupt_key)? {
            Some(parts) => parts,
            None if self.stays => return Ok(Seen::OtherPartition),
            None => {
                let parts = split_key(key).map_err(corrupt_key)?;
                self.end_partition()?;
                self.partition.begin(parts.partition_prefix);
                self.skipped.last_token = token_of(key).or(self.skipped.last_token);
                parts
            }
        };
        match parts.kind {
            KeyKind::Header => {
                self.partition.header = Some(PartitionHeader::decode(packed).map_err(corrupt)?);
                Ok(Seen::Skipped)
            }
            KeyKind::Static => {
                self.partition.static_row.clear();
                self.partition.static_row.extend_from_slice(packed);
                let is_found = self.finds_static && !self.stays && self.counted.is_none();
                Ok(match is_found && self.accepts_partition()? {
                    true => Seen::Static,
                    false => Seen::Skipped,
                })
            }
            KeyKind::Row => self.see_row(parts.clustering, packed),
        }
    }

    fn see_row(&mut self, clustering: &[u8], packed: &[u8]) -> Result<Seen, CqlError> {
        if self.partition.is_left || !self.accepts_partition()? {
            self.partition.passed_over += 1;
            return Ok(match self.partition.passed_over > STEPS_MAX {
                true => Seen::LongRest,
                false => Seen::Skipped,
            });
        }
        if !self.wanted.contains(clustering) {
            return Ok(Seen::Skipped);
        }
        let header = self.partition.header.as_ref();
        let shadow = header.and_then(|header| header.deletion_at(clustering));
        let (state, fits) = self.filter.test_row(packed, shadow)?;
        if fits && state.is_live && self.filter.accepts_clustering(clustering)? {
            let Some(counted) = &mut self.counted else {
                return Ok(Seen::Row);
            };
            *counted += 1;
            self.partition.has_rows = true;
        }
        self.skipped.add(state);
        Ok(Seen::Skipped)
    }

    /// Counts the current partition if it is part of the result for its static content alone.
    pub(super) fn end_partition(&mut self) -> Result<(), CqlError> {
        let partition = &self.partition;
        if !self.finds_static || partition.has_rows || partition.static_row.is_empty() {
            return Ok(());
        }
        let (Some(counted), true) = (self.counted, self.accepts_partition()?) else {
            return Ok(());
        };
        let (row, shadow) = (&self.partition.static_row, self.partition.deletion());
        let state = row_state(row, shadow, &self.table.cell_rules, self.filter.now_s());
        self.counted = Some(counted + u64::from(state.map_err(corrupt)?.is_live));
        Ok(())
    }

    /// Returns true if the current partition's key and static row pass.
    fn accepts_partition(&mut self) -> Result<bool, CqlError> {
        if let Some(is_accepted) = self.partition.is_accepted {
            return Ok(is_accepted);
        }
        let partition = &self.partition;
        let static_row = (!partition.static_row.is_empty()).then_some(partition.static_row.as_slice());
        let is_accepted = self.filter.accepts_static(static_row, partition.deletion())?
            && self.filter.accepts_key(&self.partition.prefix)?;
        self.partition.is_accepted = Some(is_accepted);
        Ok(is_accepted)
    }

    /// Begins within a partition that an earlier page has begun.
    pub(super) fn resume(&mut self, found: &FoundPartition, header: Option<PartitionHeader>) {
        let key = &found.key;
        let prefix = key::partition_prefix(self.table.number, key.token, &key.bytes);
        self.partition.begin(&prefix);
        self.partition.header = header;
        if let Some(row) = &found.static_row {
            self.partition.static_row.extend_from_slice(row.packed.bytes());
        }
        self.skipped.last_token = Some(key.token);
    }

    pub(super) fn static_row(&self) -> Result<Option<StoredRow>, CqlError> {
        let partition = &self.partition;
        if partition.static_row.is_empty() {
            return Ok(None);
        }
        let packed = Bytes::copy_from_slice(&partition.static_row);
        StoredRow::parse(packed, partition.deletion(), &self.table.cell_rules).map(Some)
    }

    /// Returns the row of an entry of the current partition.
    pub(super) fn row(&self, entry: Entry) -> Result<RowAt, CqlError> {
        let header = self.partition.header.as_ref();
        let shadow = header.and_then(|header| header.deletion_at(&entry.clustering));
        Ok(RowAt {
            row: StoredRow::parse(entry.packed, shadow, &self.table.cell_rules)?,
            clustering: entry.clustering,
        })
    }

    /// Reports a step of the read to the request's time limit and to the tablet. `before` are the counts before the step.
    pub(super) fn end_step(&mut self, context: &ExecutionContext, entries: usize, before: RowCounts) {
        self.timed += entries;
        if self.renewed_after.is_some_and(|after| self.timed >= after) {
            self.timed = 0;
            scope::renew_time(context.limits().timeouts.range_request_timeout);
        }
        let live = (self.skipped.live - before.live) as u64;
        let dead = (self.skipped.dead - before.dead) as u64;
        if let Some(token) = token_of(&self.partition.prefix) {
            self.passed.add(context, token, live, dead);
        }
    }
}

impl CurrentPartition {
    fn begin(&mut self, prefix: &[u8]) {
        self.prefix.clear();
        self.prefix.extend_from_slice(prefix);
        self.header = None;
        self.static_row.clear();
        self.is_accepted = None;
        self.is_left = false;
        self.passed_over = 0;
        self.has_rows = false;
    }

    /// Returns the deletion of the whole partition.
    fn deletion(&self) -> Option<Deletion> {
        self.header.as_ref().and_then(|header| header.deletion)
    }

    pub(super) fn key(&self) -> Result<PartitionKey, CqlError> {
        let (token, bytes) = decode_partition_prefix(&self.prefix).map_err(corrupt_key)?;
        Ok(PartitionKey {
            token,
            bytes: Bytes::copy_from_slice(&bytes),
        })
    }
}
