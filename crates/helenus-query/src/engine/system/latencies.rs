//! The tables of `system_views` about latencies, and about rows and tombstones that reads meet (Cassandra's `TableMetricTables`).

use std::sync::Arc;

use bytes::Bytes;

use super::Row;
use super::row::{bigint_saturating, double, row, text};
use crate::engine::Engine;
use crate::metrics::histogram::{Histogram, Snapshot};
use crate::metrics::{StatementKind, TableMetrics};
use crate::schema::{Table, TableKind};

/// Function that returns a histogram of a table. The flag is true if the node belongs to a cluster.
type Figure = fn(&TableMetrics, bool) -> Snapshot;

pub(crate) fn local_reads(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    rows(engine, table, true, |of, is_clustered| {
        of.local(is_clustered).of(StatementKind::Read).snapshot()
    })
}

pub(crate) fn local_scans(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    rows(engine, table, true, |of, is_clustered| {
        of.local(is_clustered).of(StatementKind::Range).snapshot()
    })
}

pub(crate) fn local_writes(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    rows(engine, table, true, |of, is_clustered| {
        of.local(is_clustered).writes()
    })
}

pub(crate) fn coordinator_reads(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    rows(engine, table, true, |of, _| {
        of.coordinator.of(StatementKind::Read).snapshot()
    })
}

pub(crate) fn coordinator_scans(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    rows(engine, table, true, |of, _| {
        of.coordinator.of(StatementKind::Range).snapshot()
    })
}

pub(crate) fn coordinator_writes(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    rows(engine, table, true, |of, _| of.coordinator.writes())
}

pub(crate) fn rows_per_read(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    rows(engine, table, false, |of, _| {
        Histogram::snapshot(&of.rows_per_read)
    })
}

pub(crate) fn tombstones_per_read(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    rows(engine, table, false, |of, _| {
        Histogram::snapshot(&of.tombstones_per_read)
    })
}

/// Returns a row for each table, including tables without requests. `is_latency` is true if the figure's values are latencies.
fn rows(engine: &Engine, table: &Table, is_latency: bool, snapshot: Figure) -> Vec<Row> {
    let is_clustered = engine.is_clustered();
    let schema = engine.schema();
    let shown = |of: &Arc<Table>| {
        let metrics = engine.metrics().table(of.id);
        let snapshot = metrics.map_or_else(Snapshot::default, |metrics| snapshot(&metrics, is_clustered));
        let mut values = vec![
            ("keyspace_name", text(&of.keyspace)),
            ("table_name", text(&of.name)),
            ("count", bigint_saturating(snapshot.count)),
        ];
        let marks = [
            ("p50th", "p50th_ms", snapshot.quantile(0.5)),
            ("p99th", "p99th_ms", snapshot.quantile(0.99)),
            ("max", "max_ms", snapshot.max()),
        ];
        values.extend(marks.map(|(plain, ms, value)| match is_latency {
            // Latencies are recorded in microseconds.
            true => (ms, rounded(value as f64 / 1e3)),
            false => (plain, rounded(value as f64)),
        }));
        if is_latency {
            values.push(("per_second", rounded(snapshot.rate)));
        }
        row(table, values)
    };
    let tables = schema.stored_tables().filter(|of| of.kind != TableKind::Index);
    tables.map(shown).collect()
}

/// Returns the value rounded to three decimal places, as in Cassandra.
fn rounded(value: f64) -> Option<Bytes> {
    double((value * 1e3).round() / 1e3)
}
