//! Reports of tables. `GET /node/tables` returns the metrics of every table on this node, for `nodetool tablestats` and `tablehistograms`.
//! `GET /node/latencies` returns the latencies of this node's clients by kind of statement, for `nodetool proxyhistograms`.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::get;
use helenus_cql::error::CqlError;
use helenus_query::engine::Engine;
use helenus_query::engine::sizes::TableSize;
use helenus_query::engine::system::PartitionEstimate;
use helenus_query::metrics::histogram::Snapshot;
use helenus_query::metrics::{StatementKind, TableMetrics};
use helenus_query::schema::{Table, TableKind};
use serde_json::{Value, json};

use super::as_json;

/// The percentiles that nodetool shows.
const SHARES: [f64; 5] = [0.5, 0.75, 0.95, 0.98, 0.99];

pub(crate) fn router(engine: Arc<Engine>) -> Router {
    Router::new()
        .route("/node/tables", get(tables))
        .route("/node/latencies", get(latencies))
        .with_state(engine)
}

async fn latencies(State(engine): State<Arc<Engine>>) -> impl IntoResponse {
    let kinds = StatementKind::ALL.map(|kind| {
        let snapshot = engine.metrics().latencies.of(kind).snapshot();
        (kind.name().to_owned(), shown(&snapshot))
    });
    as_json(&Value::from_iter(kinds))
}

async fn tables(State(engine): State<Arc<Engine>>) -> Result<impl IntoResponse, (StatusCode, String)> {
    let failed = |error: CqlError| (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n"));
    let sizes = engine.table_sizes().await.map_err(failed)?;
    let logs = engine.change_logs().await.map_err(failed)?;
    let schema = engine.schema();
    let mut reports = Vec::new();
    for table in schema
        .stored_tables()
        .filter(|table| table.kind != TableKind::Index)
    {
        let size = sizes.get(&table.number).cloned().unwrap_or_default();
        let estimate = engine.estimate_partitions(table).await.map_err(failed)?;
        let mut report = report(&engine, table, &size, &estimate);
        if let Some(log) = logs.iter().find(|log| log.table.id == table.id) {
            report["oldest_change_seconds"] = json!(log.oldest_age.map(|age| age.as_secs()));
        }
        reports.push(report);
    }
    Ok(as_json(&Value::from(reports)))
}

fn report(engine: &Engine, table: &Table, size: &TableSize, estimate: &PartitionEstimate) -> Value {
    let metrics = engine.metrics().table(table.id);
    let of = |snapshot: &dyn Fn(&TableMetrics) -> Snapshot| {
        shown(&metrics.as_deref().map_or_else(Snapshot::default, snapshot))
    };
    let is_clustered = engine.is_clustered();
    json!({
        "keyspace": table.keyspace,
        "table": table.name,
        "sstables": size.files,
        "bytes": size.bytes,
        "largest_sstable_bytes": size.largest_file,
        "largest_partition_bytes": size.largest_partition,
        "partitions": estimate.partitions,
        "partition_bytes": partition_bytes(size, &estimate.sizes),
        "reads": of(&|metrics| {
            let local = metrics.local(is_clustered);
            let mut reads = local.of(StatementKind::Read).snapshot();
            reads.add(&local.of(StatementKind::Range).snapshot());
            reads
        }),
        "writes": of(&|metrics| metrics.local(is_clustered).writes()),
        "rows_per_read": of(&|metrics| metrics.rows_per_read.snapshot()),
        "tombstones_per_read": of(&|metrics| metrics.tombstones_per_read.snapshot()),
    })
}

/// Returns the figures of a histogram. The percentiles are followed by the minimum and the maximum.
fn shown(snapshot: &Snapshot) -> Value {
    let mut percentiles = SHARES.map(|share| snapshot.quantile(share)).to_vec();
    percentiles.extend([snapshot.min(), snapshot.max()]);
    json!({
        "count": snapshot.count,
        // In nanoseconds, if the histogram is of latencies.
        "sum": snapshot.sum,
        // Null if there are no recent values.
        "recent_mean": snapshot.recent_mean(),
        "percentiles": percentiles,
    })
}

/// Returns the figures of the sizes of partitions that were read. Null if none were read. The maximum also covers the largest known
/// partition.
fn partition_bytes(size: &TableSize, sizes: &[u64]) -> Value {
    let at = |share: f64| {
        sizes
            .get(((sizes.len() as f64 * share).ceil() as usize).saturating_sub(1))
            .copied()
    };
    let (Some(min), Some(max)) = (sizes.first().copied(), sizes.last().copied()) else {
        return Value::Null;
    };
    let mut percentiles: Vec<u64> = SHARES.iter().filter_map(|share| at(*share)).collect();
    percentiles.extend([min, max.max(size.largest_partition)]);
    let mean = sizes.iter().sum::<u64>() / sizes.len().max(1) as u64;
    json!({ "mean": mean, "percentiles": percentiles })
}
