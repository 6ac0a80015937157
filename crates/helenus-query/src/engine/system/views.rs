//! Tables of `system_views` about clients, statements, caches, indexes and this node.

use std::sync::Arc;

use helenus_cql::ast::BatchKind;
use helenus_tablet::RowCacheStats;

use super::row::{bigint_saturating, boolean, double, inet, int, row, text, text_map};
use super::{Row, storage_port};
use crate::engine::Engine;
use crate::engine::clients::Client;
use crate::index::kinds::sai::is_storage_attached;
use crate::schema::{Table, is_text};

/// Returns the connected clients (Cassandra's `ClientsTable`).
pub(crate) fn clients(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    let shown = |client: Arc<Client>| {
        let session = client.session();
        let option = |name: &str| session.as_ref().and_then(|session| session.options.get(name));
        row(
            table,
            [
                ("address", inet(client.address.ip())),
                ("port", int(i32::from(client.address.port()))),
                (
                    "client_options",
                    session.as_ref().and_then(|session| text_map(&session.options)),
                ),
                (
                    "connection_stage",
                    text(if session.is_some() { "ready" } else { "established" }),
                ),
                ("driver_name", option("DRIVER_NAME").and_then(text)),
                ("driver_version", option("DRIVER_VERSION").and_then(text)),
                ("hostname", text(client.address.ip().to_string())),
                (
                    "keyspace_name",
                    session
                        .as_ref()
                        .and_then(|session| text(session.keyspace.as_ref()?)),
                ),
                (
                    "protocol_version",
                    session
                        .as_ref()
                        .and_then(|session| int(i32::from(session.protocol_version))),
                ),
                ("request_count", bigint_saturating(client.requests())),
                (
                    "ssl_cipher_suite",
                    client.encryption.as_ref().and_then(|(_, suite)| text(suite)),
                ),
                ("ssl_enabled", boolean(client.encryption.is_some())),
                (
                    "ssl_protocol",
                    client
                        .encryption
                        .as_ref()
                        .and_then(|(protocol, _)| text(protocol)),
                ),
                (
                    "username",
                    text(
                        session
                            .as_ref()
                            .and_then(|session| session.user.as_deref())
                            .unwrap_or("anonymous"),
                    ),
                ),
            ],
        )
    };
    engine.clients.connected().into_iter().map(shown).collect()
}

pub(crate) fn cql_metrics(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    let statement_counts = engine.clients.statement_counts();
    let all = statement_counts.prepared + statement_counts.texts;
    let ratio = if all == 0 {
        0.0
    } else {
        statement_counts.prepared as f64 / all as f64
    };
    let metrics = [
        (
            "prepared_statements_count",
            engine.prepared_statements().len() as f64,
        ),
        ("prepared_statements_evicted", engine.prepared_evicted() as f64),
        ("prepared_statements_executed", statement_counts.prepared as f64),
        ("prepared_statements_ratio", ratio),
        ("regular_statements_executed", statement_counts.texts as f64),
    ];
    metrics
        .into_iter()
        .map(|(name, value)| row(table, [("name", text(name)), ("value", double(value))]))
        .collect()
}

/// Returns metrics of batches (Cassandra's `BatchMetricsTable`).
pub(crate) fn batch_metrics(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    let kinds = [
        ("partitions_per_logged_batch", BatchKind::Logged),
        ("partitions_per_unlogged_batch", BatchKind::Unlogged),
        ("partitions_per_counter_batch", BatchKind::Counter),
    ];
    let shown = |(name, kind): (&str, BatchKind)| {
        let metrics = engine.metrics().batches.of(kind).snapshot();
        let quantile = |share: f64| double(metrics.quantile(share) as f64);
        row(
            table,
            [
                ("name", text(name)),
                ("max", bigint_saturating(metrics.max())),
                ("p50th", quantile(0.5)),
                ("p99th", quantile(0.99)),
                ("p999th", quantile(0.999)),
            ],
        )
    };
    kinds.map(shown).into()
}

pub(crate) fn sai_column_indexes(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    let schema = engine.schema();
    let mut rows = Vec::new();
    for of in schema.stored_tables() {
        for index in of.indexes.iter().filter(|index| is_storage_attached(index)) {
            let is_string = of
                .column(&index.target.column)
                .is_some_and(|(_, column)| is_text(&column.ty));
            rows.push(row(
                table,
                [
                    ("keyspace_name", text(&of.keyspace)),
                    ("index_name", text(&index.name)),
                    ("analyzer", text("NoOpAnalyzer")),
                    ("column_name", text(&index.target.column)),
                    ("is_building", boolean(!index.is_complete)),
                    ("is_queryable", boolean(index.is_complete)),
                    ("is_string", boolean(is_string)),
                    ("table_name", text(&of.name)),
                ],
            ));
        }
    }
    rows
}

/// Returns the row of this node. Other nodes have none.
pub(crate) fn gossip_info(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    let node = &engine.node;
    let here = row(
        table,
        [
            ("address", inet(node.native_address.ip())),
            ("port", int(storage_port(engine))),
            ("dc", text(&node.data_center)),
            ("host_id", text(node.host_id.to_string())),
            ("hostname", text(node.native_address.ip().to_string())),
            ("native_address_and_port", text(node.native_address.to_string())),
            ("rack", text(&node.rack)),
            ("release_version", text(&node.release_version)),
            ("rpc_address", text(node.native_address.ip().to_string())),
            ("schema", text(engine.schema().version.to_string())),
        ],
    );
    vec![here]
}

/// Returns Cassandra's caches, without the chunk cache, which is off by default in Cassandra. The row cache exists here; the caches of
/// counters and keys are shown as empty. Rates of the last minutes are not kept.
pub(crate) fn caches(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    let stats = engine.store_stats();
    let cache = |name: &str, cached: RowCacheStats, hits: u64, misses: u64| {
        let requests = hits + misses;
        row(
            table,
            [
                ("name", text(name)),
                ("capacity_bytes", bigint_saturating(cached.capacity_bytes)),
                ("entry_count", int(i32::try_from(cached.rows).unwrap_or(i32::MAX))),
                ("hit_count", bigint_saturating(hits)),
                ("hit_ratio", double(hits as f64 / requests as f64)),
                ("request_count", bigint_saturating(requests)),
                ("size_bytes", bigint_saturating(cached.bytes)),
            ],
        )
    };
    let totals = stats.totals;
    vec![
        cache("counters", RowCacheStats::default(), 0, 0),
        cache("keys", RowCacheStats::default(), 0, 0),
        cache(
            "rows",
            stats.row_cache,
            totals.row_cache_hits,
            totals.row_cache_misses,
        ),
    ]
}
