//! The tables of `system_views` about latencies, and about rows and tombstones that reads meet (Cassandra's `TableMetricTables`).

use std::sync::Arc;

use bytes::Bytes;

use super::Row;
use super::row::{bigint_saturating, double, row, text};
use crate::engine::Engine;
use crate::figures::histogram::{Histogram, Snapshot};
use crate::figures::{StatementKind, TableFigures};
use crate::schema::{Table, TableKind};

/// Function that returns the histogram of a table, and true if its values are latencies.
type Figure = (fn(&TableFigures, bool) -> Snapshot, bool);

fn read(figures: &TableFigures, is_clustered: bool) -> Snapshot {
    figures.local(is_clustered).of(StatementKind::Read).snapshot()
}

fn scan(figures: &TableFigures, is_clustered: bool) -> Snapshot {
    figures.local(is_clustered).of(StatementKind::Range).snapshot()
}

fn figure(table: &Table) -> Option<Figure> {
    let figure: Figure = match table.name.as_str() {
        "local_read_latency" => (read, true),
        "local_scan_latency" => (scan, true),
        "local_write_latency" => (|of, is_clustered| of.local(is_clustered).writes(), true),
        "coordinator_read_latency" => (|of, _| of.coordinator.of(StatementKind::Read).snapshot(), true),
        "coordinator_scan_latency" => (|of, _| of.coordinator.of(StatementKind::Range).snapshot(), true),
        "coordinator_write_latency" => (|of, _| of.coordinator.writes(), true),
        "rows_per_read" => (|of, _| Histogram::snapshot(&of.rows_per_read), false),
        "tombstones_per_read" => (|of, _| Histogram::snapshot(&of.tombstones_per_read), false),
        _ => return None,
    };
    Some(figure)
}

pub(crate) fn is_mine(table: &Table) -> bool {
    table.keyspace == "system_views" && figure(table).is_some()
}

/// Returns a row for each table, including tables without requests.
pub(crate) fn rows(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    let Some((snapshot, is_latency)) = figure(table) else {
        return Vec::new();
    };
    let is_clustered = engine.is_clustered();
    let schema = engine.schema();
    let shown = |of: &Arc<Table>| {
        let figures = engine.figures.table(of.id);
        let snapshot = figures.map_or_else(Snapshot::default, |figures| snapshot(&figures, is_clustered));
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
