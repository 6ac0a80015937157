//! What statements write, gathered: rows, partition headers, and what follows from them for indexes. All of it becomes one
//! batch of the store, so that it happens as a whole or not at all.

use std::any::Any;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_row::header::PartitionHeader;
use helenus_row::merge::merge;
use helenus_row::row::Liveness;
use helenus_row::{Cell, ColumnId, KeyKind, RowBuilder, key};
use helenus_tablet::{Op, WriteBatch};

use super::apply::{CounterState, WriteParams, apply, counter_delta, counter_state};
use super::bound::{Bound, RowName, RowsBound};
use super::index;
use super::operation::{Action, Operation};
use super::view;
use crate::cluster::writes::{self, Together};
use crate::ddl::views_of;
use crate::engine::{Engine, store_error};
use crate::schema::{Schema, Table};
use crate::select::restrictions::StatementKind;
use crate::storage::read::{
    OwnedRow, PartitionKey, RowAt, RowCursor, RowsWanted, StoredRow, corrupt, corrupt_key, read_header,
    read_row, read_static, read_stored_row, read_stored_row_under, read_stored_static,
};
use crate::storage::{Access, PartitionGuard};

/// What is written to one row.
#[derive(Clone)]
pub struct RowWrite {
    pub table: Arc<Table>,
    pub partition: PartitionKey,
    /// `Static` or `Row`.
    pub kind: KeyKind,
    pub clustering: Bytes,
    pub operand: Bytes,
}

/// A partition deletion, or range tombstones.
#[derive(Clone)]
pub struct HeaderWrite {
    pub table: Arc<Table>,
    pub partition: PartitionKey,
    pub header: PartitionHeader,
}

/// Table, partition, kind and clustering.
type RowKey<'w> = (u32, &'w Bytes, KeyKind, &'w Bytes);

type CounterKey = (u32, Bytes, KeyKind, Bytes, ColumnId);

/// Everything that one request writes.
#[derive(Clone, Default)]
pub struct WriteSet {
    pub rows: Vec<RowWrite>,
    pub headers: Vec<HeaderWrite>,
    /// Totals that this request has already made, for counters that it increments more than once.
    counters: HashMap<CounterKey, (i64, i64)>,
    /// Held until the outcome of the write is known.
    guard: Option<Arc<PartitionGuard>>,
}

impl WriteSet {
    /// What is written under these locks.
    pub fn under(guard: Option<Arc<PartitionGuard>>) -> WriteSet {
        WriteSet {
            guard,
            ..WriteSet::default()
        }
    }

    /// Adds what a statement does. Partitions are locked if [`Bound::needs_lock`].
    ///
    /// # Errors
    /// Cassandra's, for values that make no sense.
    pub async fn add(
        &mut self,
        engine: &Engine,
        bound: &Bound<'_>,
        timestamp_us: i64,
        now_s: i64,
    ) -> Result<(), CqlError> {
        let plan = bound.plan;
        let params = WriteParams {
            table: &plan.table,
            eval: bound.eval,
            timestamp_us,
            now_s,
            expiry: match plan.kind {
                StatementKind::Delete => None,
                _ => plan.attributes.expiry(&bound.eval, &plan.table, now_s)?,
            },
        };
        for partition in &bound.partitions {
            if plan.kind == StatementKind::Delete {
                self.add_delete(engine, bound, &params, partition).await?;
            } else {
                self.add_upsert(engine, bound, &params, partition).await?;
            }
        }
        Ok(())
    }

    async fn add_upsert(
        &mut self,
        engine: &Engine,
        bound: &Bound<'_>,
        params: &WriteParams<'_>,
        partition: &PartitionKey,
    ) -> Result<(), CqlError> {
        if let RowsBound::Names(names) = &bound.rows {
            for name in names {
                let mut row = RowBuilder::new();
                if bound.plan.kind == StatementKind::Insert {
                    row.liveness(Liveness {
                        timestamp_us: params.timestamp_us,
                        expiry: params.expiry,
                    });
                }
                let operations: Vec<&Operation> = bound.regular_operations().collect();
                self.apply_all(
                    engine,
                    params,
                    partition,
                    KeyKind::Row,
                    &name.clustering,
                    &operations,
                    &mut row,
                )
                .await?;
                self.push_row(params, partition, name, row);
            }
        }
        self.add_static(engine, bound, params, partition).await
    }

    async fn add_static(
        &mut self,
        engine: &Engine,
        bound: &Bound<'_>,
        params: &WriteParams<'_>,
        partition: &PartitionKey,
    ) -> Result<(), CqlError> {
        let operations: Vec<&Operation> = bound.static_operations().collect();
        if operations.is_empty() {
            return Ok(());
        }
        let mut row = RowBuilder::new();
        self.apply_all(
            engine,
            params,
            partition,
            KeyKind::Static,
            &Bytes::new(),
            &operations,
            &mut row,
        )
        .await?;
        self.push(&bound.plan.table, partition, KeyKind::Static, Bytes::new(), &row);
        Ok(())
    }

    async fn add_delete(
        &mut self,
        engine: &Engine,
        bound: &Bound<'_>,
        params: &WriteParams<'_>,
        partition: &PartitionKey,
    ) -> Result<(), CqlError> {
        let table = &bound.plan.table;
        let operations: Vec<&Operation> = bound.regular_operations().collect();
        let whole = bound.operations.is_empty();
        match &bound.rows {
            _ if !whole && operations.is_empty() => {}
            RowsBound::Names(names) => {
                for name in names {
                    let mut row = RowBuilder::new();
                    if whole {
                        row.delete_row(params.deletion());
                    }
                    self.apply_all(
                        engine,
                        params,
                        partition,
                        KeyKind::Row,
                        &name.clustering,
                        &operations,
                        &mut row,
                    )
                    .await?;
                    self.push_row(params, partition, name, row);
                }
            }
            _ if !whole => {
                return Err(CqlError::invalid(
                    "Range deletions are not supported for specific columns",
                ));
            }
            RowsBound::Ranges(ranges) => {
                let header = PartitionHeader::deleting_ranges(ranges.iter().cloned(), params.deletion());
                self.push_header(table, partition, header);
            }
            RowsBound::None => {
                self.push_header(
                    table,
                    partition,
                    PartitionHeader::deleting_partition(params.deletion()),
                );
            }
        }
        self.add_static(engine, bound, params, partition).await
    }

    #[allow(
        clippy::too_many_arguments,
        reason = "the parts of one row's place, passed on as they are"
    )]
    async fn apply_all(
        &mut self,
        engine: &Engine,
        params: &WriteParams<'_>,
        partition: &PartitionKey,
        kind: KeyKind,
        clustering: &Bytes,
        operations: &[&Operation],
        row: &mut RowBuilder,
    ) -> Result<(), CqlError> {
        let mut existing: Option<Option<OwnedRow>> = None;
        let mut stored: Option<Option<StoredRow>> = None;
        for operation in operations {
            if let Action::Increment { delta, is_negated } = &operation.action {
                let Some(delta) = counter_delta(delta, *is_negated, &params.eval)? else {
                    continue;
                };
                if stored.is_none() {
                    stored = Some(read_stored(engine, params.table, partition, kind, clustering).await?);
                }
                let id = params
                    .table
                    .columns
                    .get(operation.column)
                    .map_or(ColumnId(0), |column| column.id);
                let key = (
                    params.table.number.0,
                    partition.bytes.clone(),
                    kind,
                    clustering.clone(),
                    id,
                );
                self.increment(
                    key,
                    delta,
                    params.timestamp_us,
                    stored.as_ref().and_then(Option::as_ref),
                    row,
                )?;
                continue;
            }
            if operation.action.requires_read() && existing.is_none() {
                existing = Some(match kind {
                    KeyKind::Static => read_static(engine, params.table, partition, params.now_s).await?,
                    _ => read_row(engine, params.table, partition, clustering, params.now_s).await?,
                });
            }
            apply(operation, params, existing.as_ref().and_then(Option::as_ref), row)?;
        }
        Ok(())
    }

    /// Adds to a counter. The new total is newer than the old one whatever the clock says, so that merges keep it.
    fn increment(
        &mut self,
        key: CounterKey,
        delta: i64,
        timestamp_us: i64,
        stored: Option<&StoredRow>,
        row: &mut RowBuilder,
    ) -> Result<(), CqlError> {
        let id = key.4;
        let (total, timestamp_us) = match self.counters.get(&key) {
            Some((total, last_us)) => (total.wrapping_add(delta), last_us.saturating_add(1)),
            None => match counter_state(stored, id)? {
                CounterState::Absent => (delta, timestamp_us),
                CounterState::Total {
                    total,
                    timestamp_us: last_us,
                } => (
                    total.wrapping_add(delta),
                    timestamp_us.max(last_us.saturating_add(1)),
                ),
                CounterState::Deleted => return Ok(()),
            },
        };
        self.counters.insert(key, (total, timestamp_us));
        row.cell(id, Cell::counter(timestamp_us, total));
        Ok(())
    }

    fn push_row(
        &mut self,
        params: &WriteParams<'_>,
        partition: &PartitionKey,
        name: &RowName,
        mut row: RowBuilder,
    ) {
        if row.is_empty() {
            return;
        }
        if let Some(exact) = &name.exact {
            row.exact_clustering(params.timestamp_us, exact.clone());
        }
        self.push(
            params.table,
            partition,
            KeyKind::Row,
            name.clustering.clone(),
            &row,
        );
    }

    fn push(
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

    fn push_header(&mut self, table: &Arc<Table>, partition: &PartitionKey, header: PartitionHeader) {
        if !header.is_empty() {
            self.headers.push(HeaderWrite {
                table: table.clone(),
                partition: partition.clone(),
                header,
            });
        }
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.headers.is_empty()
    }

    /// The partitions that are written.
    pub fn partitions(&self) -> HashSet<(&str, &str, &Bytes)> {
        self.rows
            .iter()
            .map(|row| {
                (
                    row.table.keyspace.as_str(),
                    row.table.name.as_str(),
                    &row.partition.bytes,
                )
            })
            .chain(self.headers.iter().map(|write| {
                (
                    write.table.keyspace.as_str(),
                    write.table.name.as_str(),
                    &write.partition.bytes,
                )
            }))
            .collect()
    }

    /// Bytes of all operands.
    pub fn data_len(&self) -> usize {
        self.rows
            .iter()
            .map(|row| row.operand.len() + row.clustering.len())
            .sum()
    }

    /// Writes everything, and the index entries that follow.
    pub async fn commit(self, engine: &Arc<Engine>, together: Together) -> Result<(), CqlError> {
        if self.is_empty() {
            return Ok(());
        }
        if let Some(cluster) = engine.cluster() {
            return writes::commit(engine, cluster, self, together).await;
        }
        self.note_headers(engine).await?;
        let durable = self.is_durable(&engine.schema.load());
        let hold = self.hold();
        let IndexedOps {
            rows,
            added,
            removed,
            views,
        } = self.indexed_ops(engine).await?;
        let mut batch = WriteBatch { ops: added, hold };
        batch.ops.extend(removed);
        batch.ops.extend(views);
        batch.ops.extend(rows);
        engine.store.write(batch, durable).await.map_err(store_error)
    }
}

/// The operands of rows, and of what follows from them.
pub struct IndexedOps {
    pub rows: Vec<Op>,
    /// Index entries.
    pub added: Vec<Op>,
    /// Index entries.
    pub removed: Vec<Op>,
    /// Rows of views.
    pub views: Vec<Op>,
}

impl WriteSet {
    /// Makes known that partitions of these tables may have headers, before the first one is written.
    pub(crate) async fn note_headers(&self, engine: &Engine) -> Result<(), CqlError> {
        for write in &self.headers {
            engine.headers.add(engine, write.table.number).await?;
        }
        Ok(())
    }

    /// True if any of it is in a keyspace with durable writes.
    pub(crate) fn is_durable(&self, schema: &Schema) -> bool {
        let is_durable = |table: &Table| {
            schema
                .keyspace(&table.keyspace)
                .is_none_or(|keyspace| keyspace.durable_writes)
        };
        self.rows.iter().any(|write| is_durable(&write.table))
            || self.headers.iter().any(|write| is_durable(&write.table))
    }

    /// The tokens of what is written.
    pub(crate) fn tokens(&self) -> Vec<i64> {
        let rows = self.rows.iter().map(|write| write.partition.token);
        rows.chain(self.headers.iter().map(|write| write.partition.token))
            .collect()
    }

    /// The parts of it by what `tablet` gives for their tokens, each with a token of its own.
    pub(crate) fn by_tablet(self, tablet: impl Fn(i64) -> i64) -> Vec<(i64, WriteSet)> {
        let mut parts: BTreeMap<i64, (i64, WriteSet)> = BTreeMap::new();
        for write in self.headers {
            let token = write.partition.token;
            let (_, part) = parts
                .entry(tablet(token))
                .or_insert_with(|| (token, WriteSet::default()));
            part.headers.push(write);
        }
        for write in self.rows {
            let token = write.partition.token;
            let (_, part) = parts
                .entry(tablet(token))
                .or_insert_with(|| (token, WriteSet::default()));
            part.rows.push(write);
        }
        parts.into_values().collect()
    }

    /// What the store is to keep until the outcome of the write is known.
    pub(crate) fn hold(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        self.guard.clone().map(|guard| guard as _)
    }

    /// Locks the partitions whose indexes and views follow.
    pub(crate) async fn lock_indexed(&mut self, engine: &Engine) -> Result<(), CqlError> {
        let mut partitions = Vec::new();
        for write in self.rows.iter().filter(|write| write.table.has_followers()) {
            partitions.push((write.table.number, write.partition.token, Access::Alone));
        }
        for write in self.headers.iter().filter(|write| !write.table.views.is_empty()) {
            partitions.push((write.table.number, write.partition.token, Access::Alone));
        }
        if !partitions.is_empty() {
            let longest = engine.store.write_timeout();
            self.guard = Some(engine.locks.lock_within(partitions, longest).await?);
        }
        Ok(())
    }

    /// The merge operands of the headers and the rows.
    pub(crate) fn into_ops(self) -> Vec<Op> {
        let mut batch = WriteBatch::new();
        for write in &self.headers {
            let key = key::header_key(write.table.number, write.partition.token, &write.partition.bytes);
            batch.merge(write.partition.token, key, write.header.encode());
        }
        for write in self.rows {
            let (table, partition) = (write.table.number, &write.partition);
            let key = match write.kind {
                KeyKind::Static => key::static_key(table, partition.token, &partition.bytes),
                _ => key::row_key(table, partition.token, &partition.bytes, &write.clustering),
            };
            batch.merge(partition.token, key, write.operand);
        }
        batch.ops
    }

    /// What [`WriteSet::into_ops`] was made of. What belongs to a table that is gone is left out.
    ///
    /// # Errors
    /// For keys and headers that are none.
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

    /// The operands, with the index entries and the rows of views that follow from them. The partitions of tables that have any are locked.
    pub(crate) async fn indexed_ops(self, engine: &Engine) -> Result<IndexedOps, CqlError> {
        let (mut added, mut removed) = (Vec::new(), Vec::new());
        let mut views = Vec::new();
        let mut by_row: BTreeMap<RowKey<'_>, (&RowWrite, Vec<Bytes>)> = BTreeMap::new();
        for row in self.rows.iter().filter(|row| row.table.has_followers()) {
            let key = (
                row.table.number.0,
                &row.partition.bytes,
                row.kind,
                &row.clustering,
            );
            by_row
                .entry(key)
                .or_insert_with(|| (row, Vec::new()))
                .1
                .push(row.operand.clone());
        }
        let now_s = engine.clock.now_us().div_euclid(1_000_000);
        for write in self.first_headers_of_viewed() {
            views.extend(self.views_of_deleted(engine, write, &by_row, now_s).await?);
        }
        for (row, operands) in by_row.into_values() {
            let operand = merge(row.kind, None, &operands).map_err(corrupt)?;
            let (table, partition) = (&row.table, &row.partition);
            let before = read_header(engine, table, partition).await?.unwrap_or_default();
            let old = match (index::reads_old_row(table, &operand)?, row.kind) {
                (false, _) => None,
                (true, KeyKind::Static) => {
                    read_stored_static(engine, table, partition, Some(&before)).await?
                }
                (true, _) => {
                    read_stored_row_under(engine, table, partition, &row.clustering, Some(&before)).await?
                }
            };
            let after = self.header_after(before, table, partition);
            let clustering = match row.kind {
                KeyKind::Static => Vec::new(),
                _ => table
                    .layout
                    .decode_clustering(&row.clustering)
                    .map_err(corrupt_key)?,
            };
            let write = index::RowWrite {
                partition,
                kind: row.kind,
                clustering: &clustering,
                old: old.as_ref(),
                shadow: match row.kind {
                    KeyKind::Static => after.deletion,
                    _ => after.deletion_at(&row.clustering),
                },
                operand: &operand,
                now_s,
            };
            let entries = index::entry_ops(engine, table, &write)?;
            added.extend(entries.added);
            removed.extend(entries.removed);
            if !table.views.is_empty() {
                views.extend(view::view_ops(engine, &views_now(engine, table), table, &write)?);
            }
        }
        Ok(IndexedOps {
            rows: self.into_ops(),
            added,
            removed,
            views,
        })
    }

    /// A header for each partition of a table with views.
    fn first_headers_of_viewed(&self) -> impl Iterator<Item = &HeaderWrite> {
        let mut seen = HashSet::new();
        self.headers
            .iter()
            .filter(|write| !write.table.views.is_empty())
            .filter(move |write| seen.insert((write.table.number.0, &write.partition.bytes)))
    }

    /// What becomes of the views of the rows that a partition's headers delete, but for those that are written as well.
    async fn views_of_deleted(
        &self,
        engine: &Engine,
        write: &HeaderWrite,
        written: &BTreeMap<RowKey<'_>, (&RowWrite, Vec<Bytes>)>,
        now_s: i64,
    ) -> Result<Vec<Op>, CqlError> {
        let (table, partition) = (&write.table, &write.partition);
        let tables = views_now(engine, table);
        let before = read_header(engine, table, partition).await?;
        let after = self.header_after(before.clone().unwrap_or_default(), table, partition);
        let mut cursor = RowCursor::new(table, partition.clone(), before, RowsWanted::all(), false);
        let untouched = RowBuilder::new().build();
        let mut ops = Vec::new();
        while let Some(RowAt { clustering, row }) = cursor.next(engine).await? {
            let shadow = after.deletion_at(&clustering);
            let key = (table.number.0, &partition.bytes, KeyKind::Row, &clustering);
            if shadow == row.shadow || written.contains_key(&key) {
                continue;
            }
            let values = table.layout.decode_clustering(&clustering).map_err(corrupt_key)?;
            let write = index::RowWrite {
                partition,
                kind: KeyKind::Row,
                clustering: &values,
                old: Some(&row),
                shadow,
                operand: &untouched,
                now_s,
            };
            ops.extend(view::view_ops(engine, &tables, table, &write)?);
        }
        Ok(ops)
    }

    /// A partition's header with what is written to it.
    fn header_after(
        &self,
        before: PartitionHeader,
        table: &Table,
        partition: &PartitionKey,
    ) -> PartitionHeader {
        self.headers
            .iter()
            .filter(|write| write.table.number == table.number && write.partition == *partition)
            .fold(before, |header, write| header.merge(&write.header))
    }
}

/// The views on a table, as they are in today's schema.
fn views_now(engine: &Engine, table: &Table) -> Vec<Arc<Table>> {
    views_of(&engine.schema(), table).cloned().collect()
}

/// The stored row or static row, alive or not.
pub async fn read_stored(
    engine: &Engine,
    table: &Table,
    partition: &PartitionKey,
    kind: KeyKind,
    clustering: &[u8],
) -> Result<Option<StoredRow>, CqlError> {
    if kind == KeyKind::Static {
        let header = read_header(engine, table, partition).await?;
        return read_stored_static(engine, table, partition, header.as_ref()).await;
    }
    read_stored_row(engine, table, partition, clustering).await
}
