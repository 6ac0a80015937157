//! Timestamps of writes that follow from stored rows.

use helenus_cql::error::CqlError;

use crate::analysis::modification::BoundModification;
use crate::analysis::modification::bound::RowsBound;
use crate::storage::ExecutionContext;
use crate::storage::row_reads::{ReadView, read_header, read_stored_row_under, read_stored_static};

/// Maximum difference between clocks: those of nodes, and those of clients that choose timestamps.
const CLOCK_SKEW_MAX_US: i64 = 60_000_000;

/// Returns the next timestamp, which is newer than `newest_us` of the stored rows. The exception is a `newest_us` so far ahead that only a
/// client can have chosen it.
pub(crate) fn timestamp_after(context: &ExecutionContext, newest_us: Option<i64>) -> i64 {
    let now_us = context.next_timestamp_us();
    match newest_us {
        Some(newest_us) if newest_us >= now_us && newest_us - now_us <= CLOCK_SKEW_MAX_US => newest_us + 1,
        _ => now_us,
    }
}

/// Returns the newest timestamp of the rows that a write names. `None` if there are none.
pub(crate) async fn newest_of_written(
    view: ReadView<'_>,
    write: &BoundModification<'_>,
) -> Result<Option<i64>, CqlError> {
    let table = write.table();
    let mut newest_us = None;
    for partition in &write.partitions {
        let header = read_header(view, table, partition).await?;
        if write.updates_static_row()
            && let Some(row) = read_stored_static(view, table, partition, header.as_ref()).await?
        {
            newest_us = newest_us.max(Some(row.newest_us()?));
        }
        let RowsBound::Names(names) = &write.rows else {
            continue;
        };
        for name in names {
            let row =
                read_stored_row_under(view, table, partition, &name.clustering, header.as_ref()).await?;
            if let Some(row) = row {
                newest_us = newest_us.max(Some(row.newest_us()?));
            }
        }
    }
    Ok(newest_us)
}
