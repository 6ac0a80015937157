//! Refuses requests that exceed the option `per_partition_rate_limit` of their table.
//!
//! Requests are counted where they run: at the owner of their partitions, if there is one owner. Reads of partitions of several owners, and
//! batches over several owners, are counted at the node that runs them.

use std::collections::HashSet;

use helenus_cql::error::{CqlError, LimitedOperation};

use crate::analysis::modification::BoundModification;
use crate::metrics::rate_limits::RateLimitKind;
use crate::rows::PartitionKey;
use crate::schema::Table;
use crate::storage::ExecutionContext;

/// Counts a read of a partition that the request names by its key.
///
/// # Errors
/// [`CqlError::RateLimited`] if the read exceeds the rate.
pub(crate) fn count_read(
    context: &ExecutionContext,
    table: &Table,
    partition: &PartitionKey,
) -> Result<(), CqlError> {
    match table.is_rate_limited {
        true => count(context, table, LimitedOperation::Read, partition),
        false => Ok(()),
    }
}

/// Counts one write for each partition that is written, whatever the number of statements and rows.
///
/// # Errors
/// [`CqlError::RateLimited`] if a partition's write exceeds the rate.
pub(crate) fn count_writes(
    context: &ExecutionContext,
    bounds: &[BoundModification<'_>],
) -> Result<(), CqlError> {
    let mut limited = bounds
        .iter()
        .filter(|bound| bound.plan.table.is_rate_limited)
        .peekable();
    if limited.peek().is_none() {
        return Ok(());
    }
    let mut counted = HashSet::new();
    for bound in limited {
        let table = &bound.plan.table;
        for partition in &bound.partitions {
            if counted.insert((table.id, &partition.bytes)) {
                count(context, table, LimitedOperation::Write, partition)?;
            }
        }
    }
    Ok(())
}

/// Counts one write for each of these partitions of a table, which may occur repeatedly.
///
/// # Errors
/// As [`count_writes`].
pub(crate) fn count_written<'p>(
    context: &ExecutionContext,
    table: &Table,
    partitions: impl IntoIterator<Item = &'p PartitionKey>,
) -> Result<(), CqlError> {
    if !table.is_rate_limited {
        return Ok(());
    }
    let mut counted = HashSet::new();
    for partition in partitions {
        if counted.insert(&partition.bytes) {
            count(context, table, LimitedOperation::Write, partition)?;
        }
    }
    Ok(())
}

fn count(
    context: &ExecutionContext,
    table: &Table,
    operation: LimitedOperation,
    partition: &PartitionKey,
) -> Result<(), CqlError> {
    let limit = table.options.per_partition_rate_limit.as_ref();
    let rate = limit.and_then(|limit| match operation {
        LimitedOperation::Read => limit.reads_per_second,
        LimitedOperation::Write => limit.writes_per_second,
    });
    let Some(rate) = rate else { return Ok(()) };
    let rates = &context.limits.partition_rates;
    if rates.allows(table.id, operation, &partition.bytes, rate) {
        return Ok(());
    }
    context.metrics.rate_limits.refused(RateLimitKind::Partition);
    Err(CqlError::RateLimited {
        message: format!(
            "Per-partition rate limit reached for {} in table {}.{}: {rate} per second",
            operation.name(),
            table.keyspace,
            table.name
        ),
        operation,
    })
}
