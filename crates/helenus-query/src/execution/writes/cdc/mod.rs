//! Capture of changes: the rows of a table's log that follow from its writes (ScyllaDB's `cdc::augment_mutation_call`).
//!
//! The rows are in the same log record of the node as the writes, so both are there or neither. The key of a log row follows from the write
//! alone. So a write that is repeated after an error is recorded once. With images, the earlier record is kept as it is.

mod bounds;
mod changes;
mod images;
mod log_rows;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use helenus_row::murmur3_token;
use helenus_tablet::Op;

use super::rows_before::RowsBefore;
use super::{HeaderWrite, RowWrite, WriteSet};
use crate::failure::ExecutionError;
use crate::rows::PartitionKey;
use crate::schema::Table;
use crate::storage::ExecutionContext;
use crate::storage::change_streams::ChangeTime;
use crate::storage::row_reads::{ReadView, read_stored_row};
use changes::PartitionChanges;
use images::Images;
use log_rows::{LogRows, change_time, clustering};

/// The writes to one partition of a table that captures changes.
struct PartitionWrites<'w> {
    table: &'w Arc<Table>,
    partition: &'w PartitionKey,
    rows: Vec<&'w RowWrite>,
    headers: Vec<&'w HeaderWrite>,
}

impl PartitionWrites<'_> {
    /// Returns a number that depends on the content of the writes. Writes that are repeated have the same one.
    fn digest(&self) -> u64 {
        let mix = |digest: u64, bytes: &[u8]| digest.rotate_left(7) ^ murmur3_token(bytes).cast_unsigned();
        let digest = mix(u64::from(self.table.number.0), &self.partition.bytes);
        let digest = self.rows.iter().fold(digest, |digest, row| {
            mix(mix(digest, &row.clustering), &row.operand)
        });
        self.headers
            .iter()
            .fold(digest, |digest, write| mix(digest, &write.header.encode()))
    }
}

impl WriteSet {
    /// Returns true if any of the writes are captured.
    pub(crate) fn is_captured(&self) -> bool {
        !self.is_uncaptured
            && (self.rows.iter().any(|write| write.table.captures_changes)
                || self.headers.iter().any(|write| write.table.captures_changes))
    }

    /// Returns the rows of logs for these writes. If they have images, the caller has locked the partitions.
    pub(super) async fn captured_ops(
        &self,
        context: &ExecutionContext,
        before: &mut RowsBefore<'_>,
    ) -> Result<Vec<Op>, ExecutionError> {
        let mut ops = Vec::new();
        for writes in self.captured().into_values() {
            self.capture(context, before, &writes, &mut ops).await?;
        }
        Ok(ops)
    }

    fn captured(&self) -> BTreeMap<(u32, &Bytes), PartitionWrites<'_>> {
        fn group<'g, 'w>(
            groups: &'g mut BTreeMap<(u32, &'w Bytes), PartitionWrites<'w>>,
            table: &'w Arc<Table>,
            partition: &'w PartitionKey,
        ) -> &'g mut PartitionWrites<'w> {
            groups
                .entry((table.number.0, &partition.bytes))
                .or_insert_with(|| PartitionWrites {
                    table,
                    partition,
                    rows: Vec::new(),
                    headers: Vec::new(),
                })
        }
        let mut groups = BTreeMap::new();
        for row in self.rows.iter().filter(|row| row.table.captures_changes) {
            group(&mut groups, &row.table, &row.partition).rows.push(row);
        }
        for write in self.headers.iter().filter(|write| write.table.captures_changes) {
            group(&mut groups, &write.table, &write.partition)
                .headers
                .push(write);
        }
        groups
    }

    async fn capture(
        &self,
        context: &ExecutionContext,
        before: &mut RowsBefore<'_>,
        writes: &PartitionWrites<'_>,
        ops: &mut Vec<Op>,
    ) -> Result<(), ExecutionError> {
        let table = writes.table;
        let schema = context.schema();
        // The table or its log may have been dropped since the write was planned.
        let Some(log) = schema.cdc_log(table) else {
            return Ok(());
        };
        let changes = PartitionChanges::of(writes)?;
        let streams = &context.change_streams;
        let stream = context.change_stream(writes.partition.token).await?;
        let now_us = context.clock.now_us();
        let mut images = match table.has_images {
            true => Some(Images::read(self, before, writes, &changes, now_us).await?),
            false => None,
        };
        let since_us = stream.since_us.max(table.options.cdc.since_us);
        let digest = writes.digest();
        for (at, (write_us, group)) in changes.by_time.iter().enumerate() {
            let digest = digest.wrapping_add((at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            if let Some(images) = &images
                && images.may_have(*write_us)
            {
                let time = change_time(ChangeTime::of_write(*write_us, since_us), digest);
                // The images of a repeated write would show its own effect.
                if self.is_recorded(context, log, &stream.key, &time).await? {
                    continue;
                }
            }
            let time = change_time(streams.time(*write_us, now_us, since_us), digest);
            let mut rows = LogRows::new(writes, log, &stream.key, now_us, (*write_us, time))?;
            if let Some(images) = &mut images {
                images.add_before(group, &mut rows)?;
            }
            rows.add_changes(&changes, group);
            if let Some(images) = &mut images {
                images.add_after(group, &mut rows)?;
            }
            rows.finish(ops)?;
        }
        Ok(())
    }

    /// Returns true if a stream has a change with that value of `cdc$time`.
    async fn is_recorded(
        &self,
        context: &ExecutionContext,
        log: &Table,
        stream: &PartitionKey,
        time: &[u8],
    ) -> Result<bool, ExecutionError> {
        if let Some(guard) = &self.guard {
            // The earlier attempt may be queued in the log of this node.
            guard.await_pending().await;
        }
        let clustering = clustering(log, time, 0)?;
        let found = read_stored_row(ReadView::from(context), log, stream, &clustering).await?;
        Ok(found.is_some())
    }
}
