//! Execution of `INSERT … ROWS`.
//!
//! The whole blob is decoded and checked before anything is written. The writes are like those of an unlogged batch. They have their
//! timestamps, so the statement may be repeated. It runs on the node that receives it, and the writes go to the owners of the rows.

mod cells;
mod keys;
mod refusal;
mod times;

#[cfg(test)]
mod insert_rows_tests;

use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_row::transfer::{TransferItem, TransferReader};
use helenus_row::{KeyKind, PartitionHeader, RowError};

use self::cells::RowDecoder;
use self::refusal::{Refusal, refused, refused_blob};
use super::eval_context;
use crate::analysis::consistency;
use crate::analysis::modification::InsertRowsPlan;
use crate::analysis::restrictions::RangeBounds;
use crate::execution::rate_limits::count_written;
use crate::execution::writes::WriteSet;
use crate::execution::writes::commit::WriteAtomicity;
use crate::failure::ExecutionError;
use crate::limits::scope::{self, LONG_ROW_BYTES};
use crate::request::{BoundValue, QueryParameters};
use crate::response::{Outcome, Response};
use crate::rows::PartitionKey;
use crate::storage::ExecutionContext;

/// Maximum number of partitions, rows and deletions of a statement. It limits the memory that small rows take, compared with their blob.
const ITEMS_MAX: usize = 65_535;

/// Runs the statement.
pub(crate) async fn execute(
    context: &Arc<ExecutionContext>,
    plan: &InsertRowsPlan,
    values: &[BoundValue],
    parameters: &QueryParameters,
) -> Result<Outcome, ExecutionError> {
    let table = plan.table();
    consistency::check_write(table, parameters.consistency)?;
    let blob = plan.rows(&eval_context(context, values, parameters))?;
    let most = context.limits().batch_size_fail_bytes;
    if blob.len() > most {
        let problem = format!(
            "the blob has {} bytes, and at most {most} are allowed",
            blob.len()
        );
        return Err(refused_blob(table, &problem).into());
    }
    let mut writes = decode(plan, blob).await?;
    let rows = writes.rows.iter().map(|write| &write.partition);
    let headers = writes.headers.iter().map(|write| &write.partition);
    count_written(context, table, rows.chain(headers))?;
    consistency::require_replicas(&context.schema.load(), table, parameters.consistency)?;
    // In a cluster, each owner locks the partitions of its part.
    if context.cluster().is_none() {
        writes.lock_indexed(context).await?;
    }
    let together = WriteAtomicity {
        is_spread: true,
        ..WriteAtomicity::default()
    };
    writes.commit(context, together).await?;
    Ok(Response::Void.into())
}

/// Returns the writes of a blob.
///
/// # Errors
/// The blob is torn, or something in it does not fit the table.
async fn decode(plan: &InsertRowsPlan, blob: Bytes) -> Result<WriteSet, CqlError> {
    let torn = |error: RowError| refused_blob(&plan.table, &error.to_string());
    let mut reader = TransferReader::new(blob).map_err(torn)?;
    let mut decoder = BlobDecoder::new(plan);
    let mut items = 0;
    while let Some(item) = reader.next().map_err(torn)? {
        scope::checkpoint().await?;
        items += 1;
        if items > ITEMS_MAX {
            return Err(refused_blob(
                &plan.table,
                &format!(
                    "it has more than {ITEMS_MAX} partitions, rows and deletions; send them in several statements"
                ),
            ));
        }
        if let TransferItem::StaticRow(row) | TransferItem::Row { row, .. } = &item
            && row.len() > LONG_ROW_BYTES
        {
            scope::step_aside().await;
        }
        decoder.add(item)?;
    }
    Ok(decoder.finish())
}

/// Turns the items of a blob into writes.
struct BlobDecoder<'p> {
    plan: &'p InsertRowsPlan,
    rows: RowDecoder<'p>,
    /// The partition that began last. `None` before the first one.
    partition: Option<PartitionKey>,
    /// Deletions of that partition and of its ranges.
    headers: Vec<PartitionHeader>,
    writes: WriteSet,
}

impl<'p> BlobDecoder<'p> {
    fn new(plan: &'p InsertRowsPlan) -> BlobDecoder<'p> {
        BlobDecoder {
            plan,
            rows: RowDecoder {
                table: &plan.table,
                columns: &plan.columns,
            },
            partition: None,
            headers: Vec::new(),
            writes: WriteSet::default(),
        }
    }

    /// Adds the writes of an item.
    ///
    /// # Errors
    /// Something in the item does not fit the table. The error names the row.
    fn add(&mut self, item: TransferItem) -> Result<(), CqlError> {
        let table = &self.plan.table;
        let Some(partition) = &self.partition else {
            return self.begin(item);
        };
        let refuse = |refusal: Refusal, item: &str, clustering: &[Bytes]| {
            refused(table, item, &partition.bytes, clustering, refusal)
        };
        match item {
            TransferItem::Partition(_) => {
                self.end_partition();
                return self.begin(item);
            }
            TransferItem::PartitionDeletion(deletion) => {
                times::check_deletion(deletion)
                    .map_err(|refusal| refuse(refusal, "deletion of partition", &[]))?;
                self.headers.push(PartitionHeader::deleting_partition(deletion));
            }
            TransferItem::RangeDeletion { start, end, deletion } => {
                let range = times::check_deletion(deletion).and_then(|()| keys::range(table, start, end));
                let range =
                    range.map_err(|refusal| refuse(refusal, "deletion of a range in partition", &[]))?;
                self.headers
                    .push(PartitionHeader::deleting_ranges([range], deletion));
            }
            TransferItem::StaticRow(row) => {
                let row = self.rows.decode(row, KeyKind::Static);
                let row = row.map_err(|refusal| refuse(refusal, "static row of partition", &[]))?;
                self.writes
                    .push(table, partition, KeyKind::Static, Bytes::new(), &row.builder);
            }
            TransferItem::Row { clustering, row } => {
                let name = keys::row_name(table, &clustering);
                let name = name.map_err(|refusal| refuse(refusal, "row", &clustering))?;
                let row = self.rows.decode(row, KeyKind::Row);
                let mut row = row.map_err(|refusal| refuse(refusal, "row", &clustering))?;
                if let (Some(exact), Some(oldest_us)) = (name.exact, row.oldest_us) {
                    row.builder.exact_clustering(oldest_us, exact);
                }
                self.writes
                    .push(table, partition, KeyKind::Row, name.clustering, &row.builder);
            }
        }
        Ok(())
    }

    /// Begins a partition. The reader returns no other item before the first one.
    fn begin(&mut self, item: TransferItem) -> Result<(), CqlError> {
        let table = &self.plan.table;
        let TransferItem::Partition(key) = item else {
            return Err(refused_blob(table, "it has no partition before its first row"));
        };
        let partition = keys::partition_key(table, &key);
        self.partition = Some(partition.map_err(|refusal| refused(table, "partition", &key, &[], refusal))?);
        Ok(())
    }

    fn end_partition(&mut self) {
        if let (Some(partition), Some(header)) = (&self.partition, merged(&mut self.headers)) {
            self.writes
                .push_header(&self.plan.table, partition, header, RangeBounds::default());
        }
    }

    fn finish(mut self) -> WriteSet {
        self.end_partition();
        self.writes.is_uncaptured = self.plan.without_cdc;
        self.writes
    }
}

/// Takes the headers and merges them, in pairs, so that many range deletions are not merged one by one into a growing header. `None` if
/// there are no headers.
fn merged(headers: &mut Vec<PartitionHeader>) -> Option<PartitionHeader> {
    let mut round = std::mem::take(headers);
    while round.len() > 1 {
        round = round
            .chunks(2)
            .filter_map(|pair| match pair {
                [one, other] => Some(one.merge(other)),
                rest => rest.first().cloned(),
            })
            .collect();
    }
    round.pop()
}
