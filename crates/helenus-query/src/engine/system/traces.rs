//! The keyspace `system_traces`: a session for each traced request, and an event for each of its steps.

use std::sync::Arc;
use std::time::Duration;

use super::Row;
use super::row::{bigint, inet, int, row, text, text_map, uuid};
use crate::engine::Engine;
use crate::schema::Table;
use crate::trace::{Trace, TraceEvent};

pub(crate) fn sessions(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    let traces = engine.traces().all();
    let shown = traces.iter().filter(|trace| !trace.deleted.is_whole);
    shown.map(|trace| session(engine, table, trace)).collect()
}

pub(crate) fn events(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    let traces = engine.traces().all();
    let of_trace = |trace: &Trace| -> Vec<Row> {
        trace
            .events
            .iter()
            .map(|step| event(engine, table, trace, step))
            .collect()
    };
    traces.iter().flat_map(of_trace).collect()
}

fn elapsed_us(time: Duration) -> i32 {
    i32::try_from(time.as_micros()).unwrap_or(i32::MAX)
}

fn event(engine: &Arc<Engine>, table: &Table, trace: &Trace, event: &TraceEvent) -> Row {
    row(
        table,
        [
            ("session_id", uuid(trace.id)),
            ("event_id", uuid(event.id)),
            ("activity", text(&event.activity)),
            ("source", inet(engine.node.native_address.ip())),
            ("source_elapsed", int(elapsed_us(event.elapsed))),
            ("source_port", int(super::storage_port(engine))),
            ("thread", text(&event.thread)),
        ],
    )
}

fn session(engine: &Arc<Engine>, table: &Table, trace: &Trace) -> Row {
    let node = engine.node.native_address;
    let mut session = row(
        table,
        [
            ("session_id", uuid(trace.id)),
            ("client", inet(trace.client)),
            ("command", text(trace.command)),
            ("coordinator", inet(node.ip())),
            ("coordinator_port", int(super::storage_port(engine))),
            ("duration", int(elapsed_us(trace.duration))),
            ("request", text(trace.request)),
            ("started_at", bigint(trace.started_at_us / 1000)),
            ("parameters", text_map(&trace.parameters)),
        ],
    );
    let deleted = trace.deleted.columns.iter();
    for (at, _) in deleted.filter_map(|name| table.column(name)) {
        if let Some(cell) = session.get_mut(at) {
            *cell = None;
        }
    }
    session
}
