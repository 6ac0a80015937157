//! The compactions of this node: `system_views.sstable_tasks` and `system.compaction_history`. A compaction merges files of a tablet, which
//! contain rows of all tables. Therefore its keyspace is shown as `*`, and its table as the name of the tablet.

use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::value::uuid::{from_ticks, ticks_at_millis};
use helenus_tablet::{CompactionId, EndedCompaction, RunningCompaction};

use super::Row;
use super::row::{bigint_saturating, double, int, row, text, text_map, uuid};
use crate::engine::Engine;
use crate::schema::Table;

/// The name that stands for all keyspaces.
const KEYSPACE: &str = "*";
/// Ticks of a `timeuuid` in a millisecond.
const TICKS_PER_MS: u64 = 10_000;
/// Variant bits of the second half of a `timeuuid`, and its multicast bit, which means that the node id is no network address.
const VARIANT: u64 = 0x8000_0100_0000_0000;

fn tablet_name(tablet: u32) -> String {
    format!("tablet-{tablet}")
}

/// Returns the id of a compaction, which is always the same for one compaction and different for each.
fn id(engine: &Engine, compaction: CompactionId) -> Option<Bytes> {
    let ms = i64::try_from(compaction.began_ms).unwrap_or(i64::MAX);
    let within = compaction.number % TICKS_PER_MS;
    let ticks = ticks_at_millis(ms).saturating_add(within as i64);
    let node = engine.node.host_id.as_u64_pair().1 & 0x0000_FFFF_FFFF_FFFF;
    uuid(uuid::Uuid::from_u128(from_ticks(ticks, node | VARIANT)))
}

/// Returns the running compactions (Cassandra's `SSTableTasksTable`).
pub(crate) fn running(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    let shown = |task: &RunningCompaction| {
        let ratio = match task.input_bytes {
            0 => None,
            total => double(task.done_bytes as f64 / total as f64),
        };
        row(
            table,
            [
                ("keyspace_name", text(KEYSPACE)),
                ("table_name", text(tablet_name(task.tablet))),
                ("task_id", id(engine, task.id)),
                ("completion_ratio", ratio),
                ("kind", text("compaction")),
                ("progress", bigint_saturating(task.done_bytes)),
                ("sstables", int(i32::try_from(task.files).unwrap_or(i32::MAX))),
                ("total", bigint_saturating(task.input_bytes)),
                ("unit", text("bytes")),
            ],
        )
    };
    let tasks = engine.context.store.running_compactions();
    tasks.iter().map(shown).collect()
}

/// Returns the last compactions since the node started, as Cassandra's `SystemKeyspace.updateCompactionHistory` records them. The numbers
/// of merged versions of rows are not counted.
pub(crate) fn history(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    let properties = [("compaction_type".to_owned(), "Compaction".to_owned())].into();
    let shown = |ended: &EndedCompaction| {
        row(
            table,
            [
                ("id", id(engine, ended.id)),
                ("bytes_in", bigint_saturating(ended.input_bytes)),
                ("bytes_out", bigint_saturating(ended.output_bytes)),
                ("columnfamily_name", text(tablet_name(ended.tablet))),
                ("compacted_at", bigint_saturating(ended.ended_ms)),
                ("compaction_properties", text_map(&properties)),
                ("keyspace_name", text(KEYSPACE)),
            ],
        )
    };
    let ended = engine.context.store.ended_compactions();
    ended.iter().map(shown).collect()
}
