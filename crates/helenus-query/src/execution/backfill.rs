//! Backfill: adds rows that existed before an index or a view to it. One node does this in the background. After a crash it starts again
//! from the beginning.
//!
//! Writers maintain a new index or view as soon as it is in the schema, so a build only adds what it finds. Readers ignore superfluous
//! index entries. Readers of a view do not check its rows. So these rows are added with a timestamp below those of all writers, and the
//! base rows are read again just before. If a row changes meanwhile, the writer's version wins.

use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_row::{KeyKind, TableId, murmur3_token};
use helenus_tablet::Op;

use super::views::existing_row_op;
use crate::failure::ExecutionError;
use crate::index::building::{BaseRow, decode, entries, existing, with_complete_index, without_old_entries};
use crate::index::nearest::directories;
use crate::rows::RowSelection;
use crate::schema::{Derivation, DerivedTable, Schema, Table, View};
use crate::storage::ExecutionContext;
use crate::storage::row_reads::{FoundPartition, RangeCursor, read_stored_row};
use crate::storage::writes::write_anywhere;

/// Number of rows that a build adds together.
const BATCH_ROWS: usize = 512;
/// Distance of a build's timestamps below the clock. It is more than the clocks of nodes may differ.
const BEFORE_WRITERS_US: i64 = 3_600_000_000;
/// Maximum time from reading a batch of rows to writing it. Later, tombstones that writers wrote meanwhile may already have been purged.
const BATCH_AGE_MAX: Duration = Duration::from_secs(5);
/// Time after which a failed build begins again.
const RETRY: Duration = Duration::from_secs(1);

/// A change of a schema. Returns `None` if the schema does not change.
pub(crate) type SchemaFunction<'a> = dyn for<'s> Fn(&'s Schema) -> Option<Schema> + Send + Sync + 'a;

/// Changes of the schema without a statement.
#[async_trait]
pub(crate) trait SchemaChanges: Send + Sync {
    /// Stores the schema that `change` returns, and installs it. Does nothing if `change` returns `None`.
    async fn update(&self, change: &SchemaFunction<'_>) -> Result<(), CqlError>;
}

/// A running build. It ends when this is dropped.
struct RunningBackfill {
    context: Arc<ExecutionContext>,
    schemas: Arc<dyn SchemaChanges>,
    number: TableId,
}

impl RunningBackfill {
    fn begin(
        context: &Arc<ExecutionContext>,
        schemas: &Arc<dyn SchemaChanges>,
        number: TableId,
    ) -> Option<RunningBackfill> {
        let is_new = context.indexes.backfills.running.lock().insert(number);
        is_new.then(|| RunningBackfill {
            context: context.clone(),
            schemas: schemas.clone(),
            number,
        })
    }
}

impl Drop for RunningBackfill {
    fn drop(&mut self) {
        self.context.indexes.backfills.running.lock().remove(&self.number);
    }
}

/// Builds an index or view, or waits for the node that does. If that takes longer than a request may, the result is a warning that the
/// build continues.
pub(crate) async fn run(
    context: &Arc<ExecutionContext>,
    schemas: &Arc<dyn SchemaChanges>,
    derivation: &Derivation,
) -> Result<Vec<String>, CqlError> {
    resume(context, schemas);
    let deadline = context.deadline();
    loop {
        let mut installed = std::pin::pin!(context.installed.notified());
        installed.as_mut().enable();
        let number = derivation.derived.number();
        if !context
            .schema()
            .unbuilt()
            .iter()
            .any(|one| one.derived.number() == number)
        {
            return Ok(Vec::new());
        }
        if tokio::time::timeout_at(deadline, installed).await.is_err() {
            return Ok(vec![format!(
                "The rows of {} that were there before are still being brought in; it is complete once the build has ended",
                derivation.base.full_name()
            )]);
        }
    }
}

/// Starts the builds that belong to this node and are not running.
pub(crate) fn resume(context: &Arc<ExecutionContext>, schemas: &Arc<dyn SchemaChanges>) {
    for derivation in context.schema().unbuilt() {
        let number = derivation.derived.number();
        if !is_mine(context, number) {
            continue;
        }
        let Some(running) = RunningBackfill::begin(context, schemas, number) else {
            continue;
        };
        tokio::spawn(async move {
            let context = running.context.clone();
            while let Err(error) = build(&context, running.schemas.as_ref(), &derivation).await {
                tracing::warn!(table = derivation.base.full_name(), %error, "a build has failed and starts again");
                tokio::time::sleep(RETRY).await;
                let unbuilt = context.schema().unbuilt();
                if !is_mine(&context, number) || unbuilt.iter().all(|one| one.derived.number() != number) {
                    break;
                }
            }
        });
    }
}

/// Returns true if this node must run a build. The build belongs to the owner of a token that is computed from its table number, so another
/// node takes it over if that one dies.
fn is_mine(context: &ExecutionContext, number: TableId) -> bool {
    context.owns(murmur3_token(&number.0.to_be_bytes()))
}

async fn build(
    context: &Arc<ExecutionContext>,
    schemas: &dyn SchemaChanges,
    derivation: &Derivation,
) -> Result<(), CqlError> {
    let base = &derivation.base;
    let begun = Instant::now();
    // Nodes of older versions refuse this schema. The build waits below until they have left.
    if let DerivedTable::Index(index) = &derivation.derived
        && index.has_old_entries
    {
        let changed = |schema: &Schema| without_old_entries(schema, base, index);
        schemas.update(&changed).await?;
    }
    // Rows that are written from here on maintain the index or view themselves.
    crate::storage::agreement::await_old_writes(context).await?;
    let timestamp_us = context.clock.now_us() - BEFORE_WRITERS_US;
    let mut cursor = RangeCursor::new(base, Bound::Unbounded, Bound::Unbounded, RowSelection::all());
    let mut rows = 0;
    let mut batch = Vec::with_capacity(BATCH_ROWS);
    while let Some(FoundPartition { key, static_row }) = cursor.next_partition(context, base).await? {
        let found = |kind, clustering, row| BaseRow {
            partition: key.clone(),
            kind,
            clustering,
            row,
        };
        batch.extend(static_row.map(|row| found(KeyKind::Static, Bytes::new(), row)));
        while let Some(at) = cursor.next_row(context).await? {
            batch.push(found(KeyKind::Row, at.clustering, at.row));
            if batch.len() >= BATCH_ROWS {
                rows += batch.len();
                backfill_batch(context, derivation, timestamp_us, std::mem::take(&mut batch)).await?;
            }
        }
    }
    rows += batch.len();
    backfill_batch(context, derivation, timestamp_us, batch).await?;
    tracing::info!(
        table = base.full_name(),
        rows,
        seconds = begun.elapsed().as_secs(),
        "a build has ended"
    );
    mark_built(schemas, derivation).await
}

async fn backfill_batch(
    context: &Arc<ExecutionContext>,
    derivation: &Derivation,
    timestamp_us: i64,
    batch: Vec<BaseRow>,
) -> Result<(), CqlError> {
    let begun = Instant::now();
    let mut ops = Vec::with_capacity(batch.len());
    match &derivation.derived {
        DerivedTable::Index(index) => {
            let mut only_this = derivation.base.to_builder();
            only_this.indexes = vec![index.clone()];
            let only_this = only_this.build();
            let now_s = context.clock.now_us().div_euclid(1_000_000);
            let prepared = directories::prepare(context, &only_this).await;
            prepared.map_err(ExecutionError::into_client_error)?;
            // An entry of a posting list contains the vector, so an entry of a writer must be the newer one.
            let entry_timestamp_us = || match index.has_posting_lists {
                true => timestamp_us,
                false => context.next_timestamp_us(),
            };
            for found in &batch {
                let lists = &context.indexes.posting_lists;
                ops.extend(entries(&only_this, found, now_s, lists, &entry_timestamp_us)?);
            }
        }
        DerivedTable::View(view) => {
            for found in batch.iter().filter(|found| found.kind == KeyKind::Row) {
                ops.extend(view_row(context, view, &derivation.base, found, timestamp_us).await?);
            }
        }
    }
    if begun.elapsed() > BATCH_AGE_MAX {
        return Err(CqlError::Server("reading took too long".to_owned()));
    }
    write_anywhere(context, ops, context.deadline()).await
}

async fn view_row(
    context: &ExecutionContext,
    view: &Table,
    base: &Table,
    found: &BaseRow,
    timestamp_us: i64,
) -> Result<Option<Op>, CqlError> {
    let Some(now) = read_stored_row(context, base, &found.partition, &found.clustering).await? else {
        return Ok(None);
    };
    let clustering = decode(base, found)?;
    let now_s = context.clock.now_us().div_euclid(1_000_000);
    let write = existing(&found.partition, KeyKind::Row, &clustering, &now, now_s);
    match existing_row_op(view, base, &write, timestamp_us) {
        // Rows whose values cannot be a key of the view are omitted.
        Err(CqlError::Invalid(_)) => Ok(None),
        made => made,
    }
}

async fn mark_built(schemas: &dyn SchemaChanges, derivation: &Derivation) -> Result<(), CqlError> {
    let built = |schema: &Schema| match &derivation.derived {
        DerivedTable::Index(index) => with_complete_index(schema, &derivation.base, index),
        DerivedTable::View(view) => with_built_view(schema, view),
    };
    schemas.update(&built).await
}

/// Returns the schema in which the view is built. `None` if the view was dropped meanwhile.
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
