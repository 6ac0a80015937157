//! ScyllaDB's tables about the streams of captured changes, which readers of log tables need.
//!
//! Readers look up a keyspace in `system_schema.scylla_keyspaces`. If it is there, they read `system.cdc_timestamps` and
//! `system.cdc_streams`, which are about one table. Otherwise they read the tables of `system_distributed`, which are about all tables.

use std::sync::Arc;

use futures::future::BoxFuture;
use helenus_cql::error::CqlError;

use super::Row;
use super::row::{bigint, blob, row, text};
use crate::engine::Engine;
use crate::rows::cells::blob_set;
use crate::schema::Table;
use crate::storage::change_streams::{Generation, Stream};

pub(crate) const TIMESTAMPS: &str = "CREATE TABLE system.cdc_timestamps (
    keyspace_name text,
    table_name text,
    timestamp timestamp,
    PRIMARY KEY ((keyspace_name, table_name), timestamp)
) WITH ID = 1d3f0c1e-7f0c-3a57-9c4b-2f6b1b1c7e01
    AND CLUSTERING ORDER BY (timestamp DESC)
    AND comment = 'times from which the streams of a table with CDC are others';";

pub(crate) const STREAMS: &str = "CREATE TABLE system.cdc_streams (
    keyspace_name text,
    table_name text,
    timestamp timestamp,
    stream_state tinyint,
    stream_id blob,
    PRIMARY KEY ((keyspace_name, table_name), timestamp, stream_state, stream_id)
) WITH ID = 1d3f0c1e-7f0c-3a57-9c4b-2f6b1b1c7e02
    AND CLUSTERING ORDER BY (timestamp ASC, stream_state ASC, stream_id ASC)
    AND comment = 'streams of a table with CDC: current (0), closed (1) and opened (2)';";

pub(crate) const LOCAL: &str = "CREATE TABLE system.cdc_local (
    key text PRIMARY KEY,
    streams_timestamp timestamp,
    uuid uuid
) WITH ID = 1d3f0c1e-7f0c-3a57-9c4b-2f6b1b1c7e03
    AND comment = 'its row means that system_distributed has the streams of all tables';";

pub(crate) const GENERATION_TIMESTAMPS: &str = "CREATE TABLE system_distributed.cdc_generation_timestamps (
    key text,
    time timestamp,
    expired timestamp,
    PRIMARY KEY (key, time)
) WITH ID = 1d3f0c1e-7f0c-3a57-9c4b-2f6b1b1c7e04
    AND CLUSTERING ORDER BY (time DESC)
    AND comment = 'times from which the streams of tables with CDC are others';";

pub(crate) const STREAMS_DESCRIPTIONS: &str = "CREATE TABLE system_distributed.cdc_streams_descriptions_v2 (
    time timestamp,
    range_end bigint,
    streams frozen<set<blob>>,
    PRIMARY KEY (time, range_end)
) WITH ID = 1d3f0c1e-7f0c-3a57-9c4b-2f6b1b1c7e05
    AND CLUSTERING ORDER BY (range_end ASC)
    AND comment = 'streams of tables with CDC, by the last token of their range';";

/// The states of a stream in `system.cdc_streams`.
const CURRENT: u8 = 0;
const CLOSED: u8 = 1;
const OPENED: u8 = 2;

/// Reads the generations again if another node may have changed them.
pub(crate) fn refresh(engine: Arc<Engine>) -> BoxFuture<'static, Result<(), CqlError>> {
    Box::pin(async move {
        match engine.schema().has_cdc() {
            true => engine.context.load_generations().await,
            false => Ok(()),
        }
    })
}

/// Returns the generations of a table's streams. The first one begins when the table's changes are captured for the first time, or with the
/// oldest known generation if that is later.
fn generations_of(table: &Table, all: &[Generation]) -> Vec<Generation> {
    let captured_ms = table.options.cdc.since_us.div_euclid(1000);
    let before = all.partition_point(|generation| generation.since_ms <= captured_ms);
    let Some(first) = all.get(before.saturating_sub(1)) else {
        return Vec::new();
    };
    let since_ms = captured_ms.max(first.since_ms);
    let first = Generation {
        since_ms,
        opened: first.current.clone(),
        closed: Vec::new(),
        current: first.current.clone(),
    };
    let later = all.iter().skip(before.max(1)).cloned();
    std::iter::once(first).chain(later).collect()
}

/// Returns rows for each generation of each table with captured changes.
fn of_tables(engine: &Arc<Engine>, of_generation: impl Fn(&Table, &Generation, &mut Vec<Row>)) -> Vec<Row> {
    let schema = engine.schema();
    let all = engine.context.known_generations();
    let mut rows = Vec::new();
    for table in schema.stored_tables().filter(|table| table.captures_changes) {
        for generation in generations_of(table, &all) {
            of_generation(table, &generation, &mut rows);
        }
    }
    rows
}

pub(crate) fn timestamps(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    of_tables(engine, |of, generation, rows| {
        rows.push(row(
            table,
            [
                ("keyspace_name", text(&of.keyspace)),
                ("table_name", text(&of.name)),
                ("timestamp", bigint(generation.since_ms)),
            ],
        ));
    })
}

pub(crate) fn streams(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    of_tables(engine, |of, generation, rows| {
        let states = [
            (CURRENT, &generation.current),
            (CLOSED, &generation.closed),
            (OPENED, &generation.opened),
        ];
        for (state, streams) in states {
            rows.extend(streams.iter().map(|stream| {
                row(
                    table,
                    [
                        ("keyspace_name", text(&of.keyspace)),
                        ("table_name", text(&of.name)),
                        ("timestamp", bigint(generation.since_ms)),
                        ("stream_state", blob([state])),
                        ("stream_id", blob(&stream.key.bytes)),
                    ],
                )
            }));
        }
    })
}

pub(crate) fn local(_engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    vec![row(table, [("key", text("rewritten"))])]
}

pub(crate) fn generation_timestamps(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    let times = |generation: Generation| {
        row(
            table,
            [("key", text("timestamps")), ("time", bigint(generation.since_ms))],
        )
    };
    engine
        .context
        .known_generations()
        .into_iter()
        .map(times)
        .collect()
}

pub(crate) fn streams_descriptions(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    let of_stream = |since_ms: i64, stream: &Stream| {
        row(
            table,
            [
                ("time", bigint(since_ms)),
                ("range_end", bigint(stream.range.last)),
                ("streams", blob_set([&stream.key.bytes])),
            ],
        )
    };
    let mut rows = Vec::new();
    for generation in engine.context.known_generations() {
        rows.extend(
            generation
                .current
                .iter()
                .map(|stream| of_stream(generation.since_ms, stream)),
        );
    }
    rows
}

#[cfg(test)]
#[path = "cdc_tests.rs"]
mod tests;
