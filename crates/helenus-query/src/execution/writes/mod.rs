//! The collected writes of statements: rows and partition headers. They become one batch of the store, with everything that follows from
//! them, so that all of it takes effect or nothing.

pub(crate) mod batch_log;
pub(crate) mod batch_recovery;
mod cdc;
pub(crate) mod commit;
pub(crate) mod counters;
pub(crate) mod derived_tables;
mod rows_before;
mod sampling;

pub use derived_tables::IndexedOps;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_row::header::PartitionHeader;
use helenus_row::{KeyKind, RowBuilder, key};
use helenus_tablet::{Op, WriteBatch};

use crate::analysis::restrictions::RangeBounds;
use crate::failure::ExecutionError;
use crate::rows::{PartitionKey, corrupt, corrupt_key};
use crate::schema::{Schema, Table};
use crate::storage::agreement::add_header_table;
use crate::storage::row_reads::ReadView;
use crate::storage::turn::PendingTurn;
use crate::storage::{ExecutionContext, PartitionGuard};
use commit::WriteAtomicity;
use counters::Counters;

/// Publishes the rows of a write that was computed under these locks. `None` if no partition is locked alone.
async fn publish(
    context: &ExecutionContext,
    guard: Option<&Arc<PartitionGuard>>,
    rows: &mut [Op],
) -> Result<Option<Arc<PendingTurn>>, ExecutionError> {
    let Some(guard) = guard.filter(|guard| guard.is_alone()) else {
        return Ok(None);
    };
    // A late write is published in the form in which it will be stored.
    let _late = context.store.apply_archived_tombstones(rows).await?;
    Ok(guard.publish(rows)?)
}

/// Waits until everything that was read under the locks is durable, for a request that writes nothing.
///
/// # Errors
/// A part is not durable, or may not be.
pub(crate) async fn confirm(
    context: &ExecutionContext,
    guard: Option<&Arc<PartitionGuard>>,
) -> Result<(), ExecutionError> {
    let Some(guard) = guard else {
        return Ok(());
    };
    guard.unlock();
    guard.confirm(&context.store).await
}

/// A write to one row.
#[derive(Clone)]
pub struct RowWrite {
    pub table: Arc<Table>,
    pub partition: PartitionKey,
    /// `Static` or `Row`.
    pub kind: KeyKind,
    pub clustering: Bytes,
    pub operand: Bytes,
}

impl RowWrite {
    /// Returns the merge operand with its key.
    pub(crate) fn op(&self) -> Op {
        let (table, partition) = (self.table.number, &self.partition);
        let key = match self.kind {
            KeyKind::Static => key::static_key(table, partition.token, &partition.bytes),
            _ => key::row_key(table, partition.token, &partition.bytes, &self.clustering),
        };
        Op {
            token: partition.token,
            key,
            operand: self.operand.clone(),
        }
    }
}

/// A partition deletion, or range tombstones.
#[derive(Clone)]
pub struct HeaderWrite {
    pub table: Arc<Table>,
    pub partition: PartitionKey,
    pub header: PartitionHeader,
    /// Bounds of the range tombstones as the statement has them.
    pub(crate) bounds: RangeBounds,
}

/// All writes of one request.
#[derive(Clone, Default)]
pub struct WriteSet {
    pub rows: Vec<RowWrite>,
    pub headers: Vec<HeaderWrite>,
    /// States of counters that this request has already changed, in case it changes them again.
    pub(crate) counters: Counters,
    /// True for writes that come from another cluster's log of changes. The tables' own logs do not list them.
    pub(crate) is_uncaptured: bool,
    /// The locks under which the writes are computed. Shared locks are held until the outcome of the write is known.
    pub(crate) guard: Option<Arc<PartitionGuard>>,
    /// Operands of hidden tables for the record of the writes, in the same tablets.
    pub(crate) marks: Vec<Op>,
}

impl WriteSet {
    /// Returns an empty set of writes under these locks.
    pub fn under(guard: Option<Arc<PartitionGuard>>) -> WriteSet {
        WriteSet {
            guard,
            ..WriteSet::default()
        }
    }

    pub(crate) fn push(
        &mut self,
        table: &Arc<Table>,
        partition: &PartitionKey,
        kind: KeyKind,
        clustering: Bytes,
        row: &RowBuilder,
    ) {
        if !row.is_empty() {
            self.rows.push(RowWrite {
                table: table.clone(),
                partition: partition.clone(),
                kind,
                clustering,
                operand: row.build(),
            });
        }
    }

    pub(crate) fn push_header(
        &mut self,
        table: &Arc<Table>,
        partition: &PartitionKey,
        header: PartitionHeader,
        bounds: RangeBounds,
    ) {
        if !header.is_empty() {
            self.headers.push(HeaderWrite {
                table: table.clone(),
                partition: partition.clone(),
                header,
                bounds,
            });
        }
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.headers.is_empty()
    }

    /// Returns the partitions that are written, with their tables. The number in the key is that of the table.
    pub fn partitions(&self) -> HashMap<(u32, &Bytes), &Table> {
        let rows = self.rows.iter().map(|row| (&row.table, &row.partition));
        let headers = self.headers.iter().map(|write| (&write.table, &write.partition));
        rows.chain(headers)
            .map(|(table, partition)| ((table.number.0, &partition.bytes), table.as_ref()))
            .collect()
    }

    /// Writes everything, with the index entries and views that follow.
    pub async fn commit(
        self,
        context: &Arc<ExecutionContext>,
        together: WriteAtomicity,
    ) -> Result<(), ExecutionError> {
        if self.is_empty() {
            return confirm(context, self.guard.as_ref()).await;
        }
        if let Some(cluster) = context.cluster() {
            return commit::commit(context, cluster, self, together).await;
        }
        self.sample(&context.metrics.sampling);
        self.note_headers(context).await?;
        let durable = self.is_durable(&context.schema.load());
        let guard = self.guard.clone();
        let mut indexed = self.indexed_ops(context).await?;
        let turn = publish(context, guard.as_ref(), &mut indexed.rows).await?;
        let batch = WriteBatch {
            ops: indexed.into_ops(),
            hold: guard.map(|guard| guard as _),
            tablets: None,
            turn: turn.map(|turn| turn as _),
        };
        Ok(context.store.write(batch, durable).await?)
    }

    /// Returns the source of reads for these writes: the store with the pending writes of the locked partitions.
    pub(crate) fn view<'v>(&'v self, context: &'v ExecutionContext) -> ReadView<'v> {
        ReadView::under(context, self.guard.as_ref())
    }

    /// Adds the tables of header writes to the tables with partition headers, before the first header is written.
    pub(crate) async fn note_headers(&self, context: &ExecutionContext) -> Result<(), CqlError> {
        for write in &self.headers {
            add_header_table(context, write.table.number).await?;
        }
        Ok(())
    }

    /// Returns true if any write is in a keyspace with durable writes.
    pub(crate) fn is_durable(&self, schema: &Schema) -> bool {
        let is_durable = |table: &Table| {
            schema
                .keyspace(&table.keyspace)
                .is_none_or(|keyspace| keyspace.durable_writes)
        };
        self.rows.iter().any(|write| is_durable(&write.table))
            || self.headers.iter().any(|write| is_durable(&write.table))
    }

    /// Returns the tokens of all writes.
    pub(crate) fn tokens(&self) -> Vec<i64> {
        let rows = self.rows.iter().map(|write| write.partition.token);
        rows.chain(self.headers.iter().map(|write| write.partition.token))
            .collect()
    }

    /// Returns true if a row has an index with posting lists.
    pub(crate) fn have_posting_lists(&self) -> bool {
        let mut indexes = self.rows.iter().flat_map(|write| &write.table.indexes);
        indexes.any(|index| index.has_posting_lists)
    }

    /// Returns the writes divided by the tablets that `tablet` returns for their tokens, each part with one of its tokens.
    pub(crate) fn by_tablet(self, tablet: impl Fn(i64) -> i64) -> Vec<(i64, WriteSet)> {
        let is_uncaptured = self.is_uncaptured;
        let empty = || WriteSet {
            is_uncaptured,
            ..WriteSet::default()
        };
        let mut parts: BTreeMap<i64, (i64, WriteSet)> = BTreeMap::new();
        for write in self.headers {
            let token = write.partition.token;
            let (_, part) = parts.entry(tablet(token)).or_insert_with(|| (token, empty()));
            part.headers.push(write);
        }
        for write in self.rows {
            let token = write.partition.token;
            let (_, part) = parts.entry(tablet(token)).or_insert_with(|| (token, empty()));
            part.rows.push(write);
        }
        parts.into_values().collect()
    }

    /// Returns the merge operands of the headers and the rows.
    pub(crate) fn into_ops(self) -> Vec<Op> {
        let mut batch = WriteBatch::new();
        for write in &self.headers {
            let key = key::header_key(write.table.number, write.partition.token, &write.partition.bytes);
            batch.merge(write.partition.token, key, write.header.encode());
        }
        batch.ops.extend(self.rows.iter().map(RowWrite::op));
        batch.ops
    }

    /// Returns the writes from which [`WriteSet::into_ops`] made these operands. Operands of tables that do not exist any more are omitted.
    ///
    /// # Errors
    /// A key or header is damaged.
    pub(crate) fn from_ops(schema: &Schema, ops: Vec<Op>) -> Result<WriteSet, CqlError> {
        let mut writes = WriteSet::default();
        let mut known: Option<Arc<Table>> = None;
        for op in ops {
            let parts = key::decode_key(&op.key).map_err(corrupt_key)?;
            if known.as_ref().is_none_or(|table| table.number != parts.table) {
                known = schema
                    .stored_tables()
                    .find(|table| table.number == parts.table)
                    .cloned();
            }
            let Some(table) = known.clone() else { continue };
            let partition = PartitionKey {
                token: parts.token,
                bytes: Bytes::copy_from_slice(&parts.partition_key),
            };
            match parts.kind {
                KeyKind::Header => writes.headers.push(HeaderWrite {
                    table,
                    partition,
                    header: PartitionHeader::decode(&op.operand).map_err(corrupt)?,
                    bounds: RangeBounds::default(),
                }),
                kind => writes.rows.push(RowWrite {
                    table,
                    partition,
                    kind,
                    clustering: op.key.slice_ref(parts.clustering),
                    operand: op.operand,
                }),
            }
        }
        Ok(writes)
    }
}
