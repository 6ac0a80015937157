//! The table `system_views.slow_queries` (Cassandra 6's `SlowQueriesTable`): the latest statements that took longer than
//! `slow_query_log_timeout`. Statements of the same text, table and millisecond share a row.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::Row;
use super::row::{bigint, boolean, int, row, text};
use crate::engine::Engine;
use crate::schema::Table;

pub(crate) const SLOW_QUERIES: &str = "CREATE TABLE system_views.slow_queries (
    keyspace_name text,
    table_name text,
    timestamp timestamp,
    query text,
    avg_ms bigint,
    cross_node boolean,
    max_ms bigint,
    min_ms bigint,
    times_reported int,
    PRIMARY KEY (keyspace_name, table_name, timestamp, query)
) WITH CLUSTERING ORDER BY (table_name ASC, timestamp ASC, query ASC)
    AND ID = 4b4f2a86-9d0e-3d0b-9f6c-5a6d0c7f3e21
    AND comment = 'Slow queries';";

/// Returns the slow statements that are kept. Statements that used no table are left out, as in Cassandra.
pub(crate) fn rows(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    let mut reported: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for statement in engine.metrics().slow_statements.latest() {
        if statement.table.is_empty() {
            continue;
        }
        let time = (statement.took, statement.was_forwarded);
        let key = (
            statement.keyspace,
            statement.table,
            statement.at_ms,
            statement.text,
        );
        reported.entry(key).or_default().push(time);
    }
    let rows = reported
        .into_iter()
        .map(|((keyspace, name, at_ms, query), times)| {
            let took = |time: Option<Duration>| bigint(millis(time.unwrap_or_default()));
            let count = u32::try_from(times.len()).unwrap_or(u32::MAX);
            let total: Duration = times.iter().map(|(took, _)| *took).sum();
            row(
                table,
                [
                    ("keyspace_name", text(keyspace)),
                    ("table_name", text(name)),
                    ("timestamp", bigint(at_ms)),
                    ("query", text(query)),
                    ("avg_ms", took(total.checked_div(count))),
                    (
                        "cross_node",
                        boolean(times.iter().any(|(_, forwarded)| *forwarded)),
                    ),
                    ("max_ms", took(times.iter().map(|(took, _)| *took).max())),
                    ("min_ms", took(times.iter().map(|(took, _)| *took).min())),
                    ("times_reported", int(i32::try_from(count).unwrap_or(i32::MAX))),
                ],
            )
        });
    rows.collect()
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
