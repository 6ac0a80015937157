//! The guardrails of partitions. They are checked when an SSTable is written. No client is involved then, so violations are logged.

use std::sync::Weak;

use helenus_row::TableId;
use helenus_row::key::decode_partition_prefix;

use crate::engine::sampling::key_text;
use crate::limits::Limits;
use crate::limits::guardrails::{Guard, Threshold, ThresholdKind};
use crate::schema::{Schema, TableKind};
use crate::storage::{ExecutionContext, MeasuredPartition, PartitionThresholds};

/// Sets the thresholds from which on partitions are reported, which are the least of those for warnings and failures.
pub(crate) fn follow(thresholds: &PartitionThresholds, limits: &Limits) {
    let least = |kind| {
        let Threshold { warn, fail } = limits.guardrails.threshold(kind);
        warn.into_iter()
            .chain(fail)
            .min()
            .and_then(|least| u64::try_from(least).ok())
    };
    thresholds.set(
        least(ThresholdKind::PartitionSize),
        least(ThresholdKind::PartitionTombstones),
    );
}

/// Logs the reported partitions.
pub(crate) fn log_reported(thresholds: &PartitionThresholds, context: Weak<ExecutionContext>) {
    thresholds.report_to(move |partition| {
        if let Some(context) = context.upgrade() {
            log(&context, partition);
        }
    });
}

fn log(context: &ExecutionContext, partition: &MeasuredPartition) {
    let Some(what) = name(&context.schema(), partition) else {
        return;
    };
    let figures = [
        (ThresholdKind::PartitionSize, partition.bytes),
        (ThresholdKind::PartitionTombstones, partition.tombstones),
    ];
    let limits = context.limits();
    for (kind, figure) in figures {
        let mut guard = Guard::new(&limits.guardrails);
        let figure = i64::try_from(figure).unwrap_or(i64::MAX);
        match guard.check(kind, &what, figure) {
            Err(refusal) => tracing::error!("{}", refusal.split().0),
            Ok(()) => guard
                .warnings
                .iter()
                .for_each(|warning| tracing::warn!("{warning}")),
        }
    }
}

/// Returns the name of a partition for messages. `None` for tables of indexes and for tables that no longer exist.
fn name(schema: &Schema, partition: &MeasuredPartition) -> Option<String> {
    let number = TableId(u32::from_be_bytes(*partition.prefix.first_chunk()?));
    let mut tables = schema.stored_tables();
    let table = tables.find(|table| table.number == number && table.kind != TableKind::Index)?;
    let (_, key) = decode_partition_prefix(&partition.prefix).ok()?;
    Some(format!(
        "{}.{}:{}",
        table.keyspace,
        table.name,
        key_text(table, &key)
    ))
}
