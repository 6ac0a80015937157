//! The keyspace `system_traces`. A session tells how long a request took; single events are not recorded.

use std::sync::Arc;

use super::Row;
use super::row::{bigint, inet, int, row, text, text_map, uuid};
use crate::engine::Engine;
use crate::schema::Table;
use crate::trace::Trace;

pub(super) fn rows(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    match table.name.as_str() {
        "sessions" => {
            let traces = engine.traces.all();
            traces.iter().map(|trace| session(engine, table, trace)).collect()
        }
        _ => Vec::new(),
    }
}

fn session(engine: &Arc<Engine>, table: &Table, trace: &Trace) -> Row {
    let node = engine.node.native_address;
    let duration_us = i32::try_from(trace.duration.as_micros()).unwrap_or(i32::MAX);
    row(
        table,
        [
            ("session_id", uuid(trace.id)),
            ("client", inet(trace.client)),
            ("command", text(trace.command)),
            ("coordinator", inet(node.ip())),
            ("coordinator_port", int(super::STORAGE_PORT)),
            ("duration", int(duration_us)),
            ("request", text(trace.request)),
            ("started_at", bigint(trace.started_at_us / 1000)),
            ("parameters", text_map(&trace.parameters)),
        ],
    )
}
