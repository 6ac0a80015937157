//! The record of intents: their rows, and the index entries that the transaction adds.
//!
//! A reader of an index finds a row only through its entry. So all entries of a transaction exist before any of its rows can be seen. Readers
//! check each entry against its row, which they cannot read before the transaction is decided. Entries of an aborted transaction are removed
//! like other stale ones.

use std::sync::Arc;

use helenus_tablet::Op;

use super::intents;
use crate::cluster::Cluster;
use crate::execution::writes::{IndexedOps, WriteSet};
use crate::failure::ExecutionError;
use crate::storage::undecided::UndecidedIntent;
use crate::storage::writes::write_ops;
use crate::storage::{ExecutionContext, PartitionGuard};

/// Returns the operands of the record. Index entries in other tablets have been written.
///
/// # Errors
/// An index cannot hold a value, or the record would be too large. Index entries may have been written, but no intent.
pub(super) async fn prepared(
    context: &Arc<ExecutionContext>,
    cluster: &Arc<dyn Cluster>,
    guard: &Arc<PartitionGuard>,
    intents: &[Arc<UndecidedIntent>],
) -> Result<Vec<Op>, ExecutionError> {
    let mut record: Vec<Op> = intents
        .iter()
        .map(|intent| intents::op_of(&intent.intent))
        .collect();
    for intent in intents {
        let ops = intent.intent.ops.clone();
        let mut writes = WriteSet::from_ops(&context.schema(), ops)?;
        if !writes.has_derived_tables() && !writes.is_captured() {
            continue;
        }
        writes.guard = Some(guard.clone());
        let IndexedOps {
            rows,
            added,
            replaced,
            removed,
            views,
            changes,
        } = writes.indexed_ops(context).await?;
        let pairs = replaced.iter().map(|entry| entry.pair.clone());
        let entries: Vec<Op> = added.into_iter().chain(pairs).collect();
        // The record of the commit must not be too large either.
        let commit = [rows, entries.clone(), removed, views, changes].concat();
        context.store.check_size(&commit)?;
        let tablet = cluster.tablet(intent.intent.token);
        let (near, far): (Vec<Op>, Vec<Op>) = entries.into_iter().partition(|op| tablet.contains(op.token));
        record.extend(near);
        if !far.is_empty() {
            write_ops(context, cluster, far, true, context.deadline()).await?;
        }
    }
    context.store.check_size(&record)?;
    Ok(record)
}
