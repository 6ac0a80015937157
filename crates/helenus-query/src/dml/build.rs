//! Brings the rows that were there before an index or a view into it: in the background, by one node, again from the start after a crash.
//!
//! Writers keep a new index or view up to date from the moment it stands in the schema, so a build has only to add what it finds. An
//! entry of an index too many is ignored by readers. A view's rows are not checked by its readers: they are added with a timestamp
//! below those of all writers, and from rows read again just before, so that a row that changes meanwhile is the writer's.

use std::collections::HashSet;
use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_row::{KeyKind, TableId, murmur3_token};
use helenus_tablet::{Op, WriteBatch};
use parking_lot::Mutex;

use super::index::{RowWrite, entry_ops};
use super::view::existing_row_op;
use crate::cluster::Owner;
use crate::cluster::writes::write_ops;
use crate::engine::{Engine, store_error};
use crate::schema::{Followed, Follower, Index, Schema, Table, View};
use crate::storage::read::{
    FoundPartition, PartitionKey, RangeCursor, RowsWanted, StoredRow, corrupt_key, read_stored_row,
};

/// Rows that a build brings in at a time.
const BATCH_ROWS: usize = 512;
/// How far below the clock the timestamps of a build lie: more than the clocks of nodes may differ.
const BEFORE_WRITERS_US: i64 = 3_600_000_000;
/// How long the rows of a batch may be on their way, before what writers did to them meanwhile may have been forgotten.
const BATCH_AGE_MAX: Duration = Duration::from_secs(5);
/// How long a build that failed waits until it begins anew.
const RETRY: Duration = Duration::from_secs(1);

/// The indexes and views that are being built here, by the number of their table.
#[derive(Debug, Default)]
pub(crate) struct Builds {
    running: Mutex<HashSet<TableId>>,
}

/// A build under way; ends when dropped.
struct Running {
    engine: Arc<Engine>,
    number: TableId,
}

impl Running {
    fn begin(engine: &Arc<Engine>, number: TableId) -> Option<Running> {
        let is_new = engine.builds.running.lock().insert(number);
        is_new.then(|| Running {
            engine: engine.clone(),
            number,
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.engine.builds.running.lock().remove(&self.number);
    }
}

/// Builds it, or waits for the node that does, as long as a request may take; then warns that it goes on.
pub(crate) async fn run(engine: &Arc<Engine>, followed: &Followed) -> Result<Vec<String>, CqlError> {
    resume(engine);
    let deadline = engine.deadline();
    loop {
        let mut installed = std::pin::pin!(engine.installed.notified());
        installed.as_mut().enable();
        let number = followed.follower.number();
        if !engine
            .schema()
            .unbuilt()
            .iter()
            .any(|one| one.follower.number() == number)
        {
            return Ok(Vec::new());
        }
        if tokio::time::timeout_at(deadline, installed).await.is_err() {
            return Ok(vec![format!(
                "The rows of {} that were there before are still being brought in; it is complete once the build has ended",
                followed.base.full_name()
            )]);
        }
    }
}

/// Begins the builds that are this node's and not under way.
pub(crate) fn resume(engine: &Arc<Engine>) {
    for followed in engine.schema().unbuilt() {
        let number = followed.follower.number();
        if !is_mine(engine, number) {
            continue;
        }
        let Some(running) = Running::begin(engine, number) else {
            continue;
        };
        tokio::spawn(async move {
            let engine = running.engine.clone();
            while let Err(error) = build(&engine, &followed).await {
                tracing::warn!(table = followed.base.full_name(), %error, "a build has failed and begins anew");
                tokio::time::sleep(RETRY).await;
                let unbuilt = engine.schema().unbuilt();
                if !is_mine(&engine, number) || unbuilt.iter().all(|one| one.follower.number() != number) {
                    break;
                }
            }
        });
    }
}

/// A build is done by the owner of a token that its number gives, so that another node takes it over when that one dies.
fn is_mine(engine: &Engine, number: TableId) -> bool {
    let token = murmur3_token(&number.0.to_be_bytes());
    engine
        .cluster()
        .is_none_or(|cluster| cluster.owner(token) == Owner::Here)
}

/// A row of the base table.
struct Found {
    partition: PartitionKey,
    kind: KeyKind,
    clustering: Bytes,
    row: StoredRow,
}

async fn build(engine: &Arc<Engine>, followed: &Followed) -> Result<(), CqlError> {
    let base = &followed.base;
    let begun = Instant::now();
    // Rows that are written from here on bring themselves in.
    crate::ddl::settle(engine).await?;
    let timestamp_us = engine.clock.now_us() - BEFORE_WRITERS_US;
    let mut cursor = RangeCursor::new(base, Bound::Unbounded, Bound::Unbounded, RowsWanted::all());
    let mut rows = 0;
    let mut batch = Vec::with_capacity(BATCH_ROWS);
    while let Some(FoundPartition { key, static_row }) = cursor.next_partition(engine, base).await? {
        let found = |kind, clustering, row| Found {
            partition: key.clone(),
            kind,
            clustering,
            row,
        };
        batch.extend(static_row.map(|row| found(KeyKind::Static, Bytes::new(), row)));
        while let Some(at) = cursor.next_row(engine).await? {
            batch.push(found(KeyKind::Row, at.clustering, at.row));
            if batch.len() >= BATCH_ROWS {
                rows += batch.len();
                bring_in(engine, followed, timestamp_us, std::mem::take(&mut batch)).await?;
            }
        }
    }
    rows += batch.len();
    bring_in(engine, followed, timestamp_us, batch).await?;
    tracing::info!(
        table = base.full_name(),
        rows,
        seconds = begun.elapsed().as_secs(),
        "a build has ended"
    );
    mark_built(engine, followed).await
}

async fn bring_in(
    engine: &Arc<Engine>,
    followed: &Followed,
    timestamp_us: i64,
    batch: Vec<Found>,
) -> Result<(), CqlError> {
    let begun = Instant::now();
    let mut ops = Vec::with_capacity(batch.len());
    match &followed.follower {
        Follower::Index(index) => {
            let mut only_this = followed.base.to_builder();
            only_this.indexes = vec![index.clone()];
            let only_this = only_this.build();
            for found in &batch {
                ops.extend(entries(engine, &only_this, found)?);
            }
        }
        Follower::View(view) => {
            for found in batch.iter().filter(|found| found.kind == KeyKind::Row) {
                ops.extend(view_row(engine, view, &followed.base, found, timestamp_us).await?);
            }
        }
    }
    if begun.elapsed() > BATCH_AGE_MAX {
        return Err(CqlError::Server("reading took too long".to_owned()));
    }
    if ops.is_empty() {
        return Ok(());
    }
    match engine.cluster() {
        Some(cluster) => write_ops(engine, cluster, ops, true, engine.deadline()).await,
        None => engine
            .store
            .write(WriteBatch::of(ops), true)
            .await
            .map_err(store_error),
    }
}

fn entries(engine: &Engine, table: &Table, found: &Found) -> Result<Vec<Op>, CqlError> {
    let clustering = decode(table, found)?;
    let write = existing(engine, &found.partition, found.kind, &clustering, &found.row);
    match entry_ops(engine, table, &write) {
        Ok(ops) => Ok(ops.added),
        // What can't be indexed is left out: the row is there already.
        Err(CqlError::Invalid(_)) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

async fn view_row(
    engine: &Engine,
    view: &Table,
    base: &Table,
    found: &Found,
    timestamp_us: i64,
) -> Result<Option<Op>, CqlError> {
    let Some(now) = read_stored_row(engine, base, &found.partition, &found.clustering).await? else {
        return Ok(None);
    };
    let clustering = decode(base, found)?;
    let write = existing(engine, &found.partition, KeyKind::Row, &clustering, &now);
    match existing_row_op(view, base, &write, timestamp_us) {
        // What can't be a key is left out.
        Err(CqlError::Invalid(_)) => Ok(None),
        made => made,
    }
}

fn decode(table: &Table, found: &Found) -> Result<Vec<Bytes>, CqlError> {
    match found.kind {
        KeyKind::Static => Ok(Vec::new()),
        _ => table
            .layout
            .decode_clustering(&found.clustering)
            .map_err(corrupt_key),
    }
}

fn existing<'a>(
    engine: &Engine,
    partition: &'a PartitionKey,
    kind: KeyKind,
    clustering: &'a [Bytes],
    row: &'a StoredRow,
) -> RowWrite<'a> {
    RowWrite {
        partition,
        kind,
        clustering,
        old: None,
        shadow: row.shadow,
        operand: row.packed.bytes(),
        now_s: engine.clock.now_us().div_euclid(1_000_000),
    }
}

async fn mark_built(engine: &Arc<Engine>, followed: &Followed) -> Result<(), CqlError> {
    crate::ddl::update(engine, |schema| match &followed.follower {
        Follower::Index(index) => with_complete_index(schema, &followed.base, index),
        Follower::View(view) => with_built_view(schema, view),
    })
    .await
}

/// None if it is gone, or another has its name: it was dropped meanwhile.
fn with_complete_index(schema: &Schema, table: &Table, index: &Index) -> Option<Schema> {
    let current = schema.table(&table.keyspace, &table.name)?;
    let mut builder = current.to_builder();
    let built = builder
        .indexes
        .iter_mut()
        .find(|known| known.table.number == index.table.number)?;
    *built = Arc::new(Index {
        is_complete: true,
        ..Index::clone(built)
    });
    Some(schema.with_table(builder.build()))
}

/// The same for a view.
fn with_built_view(schema: &Schema, view: &Table) -> Option<Schema> {
    let current = schema.table(&view.keyspace, &view.name)?;
    if current.number != view.number {
        return None;
    }
    let mut builder = current.to_builder();
    builder.view = Some(Arc::new(View {
        is_built: true,
        ..View::clone(builder.view.as_ref()?)
    }));
    Some(schema.with_table(builder.build()))
}
