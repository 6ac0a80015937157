//! Completion of what was in progress at a cut of all tablets: logged batches, and transactions over partitions of several owners.

use helenus_cql::error::CqlError;
use helenus_row::TableId;
use helenus_tablet::Op;

use super::transaction::spread;
use super::writes::{batch_log, batch_recovery};
use crate::storage::ExecutionContext;

/// The hidden tables with what was in progress.
pub(crate) const HIDDEN: [TableId; 2] = [batch_log::TABLE, spread::TABLE];

/// Returns the operands that complete the cut of the pinned tablets, and adds them to these tablets.
///
/// # Errors
/// The tablets cannot be read.
pub(crate) async fn under_way(context: &ExecutionContext) -> Result<Vec<Op>, CqlError> {
    let mut ops = batch_recovery::under_way(context).await?;
    ops.extend(spread::at_cut::under_way(context).await?);
    Ok(ops)
}
