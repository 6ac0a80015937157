//! The keyspace `system_traces`. A session tells how long a request took; its one event is that
//! the answer is ready.

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
        "events" => {
            let traces = engine.traces.all();
            traces.iter().map(|trace| event(engine, table, trace)).collect()
        }
        _ => Vec::new(),
    }
}

fn elapsed_us(trace: &Trace) -> i32 {
    i32::try_from(trace.duration.as_micros()).unwrap_or(i32::MAX)
}

fn event(engine: &Arc<Engine>, table: &Table, trace: &Trace) -> Row {
    row(
        table,
        [
            ("session_id", uuid(trace.id)),
            ("event_id", uuid(trace.answered_id)),
            ("activity", text("Answer is ready")),
            ("source", inet(engine.node.native_address.ip())),
            ("source_elapsed", int(elapsed_us(trace))),
            ("source_port", int(super::STORAGE_PORT)),
            ("thread", text("helenus")),
        ],
    )
}

fn session(engine: &Arc<Engine>, table: &Table, trace: &Trace) -> Row {
    let node = engine.node.native_address;
    row(
        table,
        [
            ("session_id", uuid(trace.id)),
            ("client", inet(trace.client)),
            ("command", text(trace.command)),
            ("coordinator", inet(node.ip())),
            ("coordinator_port", int(super::STORAGE_PORT)),
            ("duration", int(elapsed_us(trace))),
            ("request", text(trace.request)),
            ("started_at", bigint(trace.started_at_us / 1000)),
            ("parameters", text_map(&trace.parameters)),
        ],
    )
}
