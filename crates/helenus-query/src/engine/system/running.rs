//! The tables of `system_views` about current activity: `queries`, `thread_pools`, `system_logs`.

use std::sync::Arc;

use bytes::Bytes;

use super::Row;
use super::row::{bigint, bigint_saturating, int, row, text};
use crate::engine::Engine;
use crate::metrics::log_lines;
use crate::schema::Table;
use crate::trace;

/// The name of the pool that runs requests of clients, as in Cassandra.
const REQUESTS: &str = "Native-Transport-Requests";

/// Returns the running statements of clients (Cassandra's `QueriesTable`). The time for which each was queued is not known.
pub(crate) fn queries(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    let running = engine.context.running.list();
    let shown = running.iter().map(|running| {
        let micros = i64::try_from(running.began.elapsed().as_micros()).unwrap_or(i64::MAX);
        row(
            table,
            [
                ("thread_id", text(format!("{REQUESTS}-{}", running.id))),
                ("running_micros", bigint(micros)),
                ("task", text(trace::shorten(&running.text.to_string()))),
            ],
        )
    });
    shown.collect()
}

/// Metrics of a pool of tasks.
struct Pool {
    name: &'static str,
    active: Option<u64>,
    limit: Option<u64>,
    pending: Option<u64>,
    completed: Option<u64>,
}

/// Returns the pools of tasks (Cassandra's `ThreadPoolsTable`), which all share the threads of the node. Unknown values are null.
pub(crate) fn thread_pools(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    let stats = engine.store_stats();
    let running = engine.context.running.list().len() as u64;
    let transport = engine.metrics().transport.read();
    let pools = [
        Pool {
            name: REQUESTS,
            active: Some(running),
            limit: Some(transport.running_max),
            pending: Some(transport.waiting),
            completed: Some(engine.context.running.begun().saturating_sub(running)),
        },
        Pool {
            name: "CompactionExecutor",
            active: Some(stats.compactions_running),
            limit: None,
            pending: None,
            completed: None,
        },
        Pool {
            name: "MemtableFlushWriter",
            active: None,
            limit: None,
            pending: None,
            completed: Some(stats.flushes),
        },
        Pool {
            name: "ScanParts",
            active: Some(engine.scan_parts_running() as u64),
            limit: Some(engine.context.limits.load().scan_concurrency as u64),
            pending: None,
            completed: None,
        },
    ];
    let shown = |pool: &Pool| {
        row(
            table,
            [
                ("name", text(pool.name)),
                ("active_tasks", small(pool.active)),
                ("active_tasks_limit", small(pool.limit)),
                ("pending_tasks", small(pool.pending)),
                ("completed_tasks", pool.completed.and_then(bigint_saturating)),
                ("blocked_tasks", bigint(0)),
                ("blocked_tasks_all_time", bigint(0)),
            ],
        )
    };
    pools.iter().map(shown).collect()
}

fn small(value: Option<u64>) -> Option<Bytes> {
    int(i32::try_from(value?).unwrap_or(i32::MAX))
}

/// Returns the last lines of the log (Cassandra's `LogMessagesTable`).
pub(crate) fn system_logs(_engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut last = (i64::MIN, 0);
    for line in log_lines::kept() {
        let order = match last {
            (at, order) if at == line.at_ms => order + 1,
            _ => 0,
        };
        last = (line.at_ms, order);
        rows.push(row(
            table,
            [
                ("timestamp", bigint(line.at_ms)),
                ("order_in_millisecond", int(order)),
                ("level", text(line.level)),
                ("logger", text(line.logger)),
                ("message", text(&line.message)),
            ],
        ));
    }
    rows
}
