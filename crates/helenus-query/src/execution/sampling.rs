//! Samples of reads and contention, for the lists of the most active partitions ([`crate::metrics::sampling`]).

use std::sync::Arc;
use std::time::Duration;

use helenus_cql::error::CqlError;
use helenus_row::TableId;

use crate::cluster::Source;
use crate::measurement;
use crate::metrics::sampling::{Interest, PartitionSampling, SamplerKind};
use crate::rows::PartitionKey;
use crate::schema::Table;
use crate::statement_shape::without_values;
use crate::storage::PartitionGuard;
use crate::trace;

/// A read of one partition, with the samplers that record it.
pub(crate) struct SampledRead<'r> {
    sampling: &'r PartitionSampling,
    interest: Interest,
    table: &'r Table,
}

impl<'r> SampledRead<'r> {
    /// Begins the read of a partition. `is_named` is true if the request names the partition by its key.
    pub fn begin(
        sampling: &'r PartitionSampling,
        table: &'r Table,
        key: &PartitionKey,
        is_named: bool,
    ) -> SampledRead<'r> {
        let interest = match is_named {
            true => sampling.interest([
                SamplerKind::Reads,
                SamplerKind::ReadRowCount,
                SamplerKind::ReadTombstoneCount,
            ]),
            false => sampling.interest([SamplerKind::ReadRowCount, SamplerKind::ReadTombstoneCount]),
        };
        let read = SampledRead {
            sampling,
            interest,
            table,
        };
        if is_named && !interest.is_none() {
            read.record(SamplerKind::Reads, key, 1);
        }
        read
    }

    /// Records the live rows and tombstones of a finished read.
    pub fn end(self, key: &PartitionKey, live: u64, tombstones: u64) {
        if !self.interest.is_none() {
            self.record(SamplerKind::ReadRowCount, key, live);
            self.record(SamplerKind::ReadTombstoneCount, key, tombstones);
        }
    }

    fn record(&self, kind: SamplerKind, key: &PartitionKey, value: u64) {
        self.sampling
            .record(self.interest, kind, self.table.id, &key.bytes, value);
    }
}

/// Returns true if reads of ranges are recorded, partition by partition.
pub(crate) fn samples_ranges(sampling: &PartitionSampling) -> bool {
    !sampling
        .interest([SamplerKind::ReadRowCount, SamplerKind::ReadTombstoneCount])
        .is_none()
}

/// Records the time of a finished read, by the text of its statement without values.
pub(crate) fn read_took(sampling: &PartitionSampling, table: &Table, source: &Source<'_>, took: Duration) {
    let interest = sampling.interest([SamplerKind::LocalReadTime]);
    if interest.is_none() {
        return;
    }
    let text = match source {
        Source::Text(text) => text,
        Source::Prepared(prepared) => prepared.query.as_ref(),
        Source::Batch(..) => return,
    };
    let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    let shape = without_values(trace::shorten(text));
    sampling.record(
        interest,
        SamplerKind::LocalReadTime,
        table.id,
        shape.as_bytes(),
        micros,
    );
}

/// Waits for the locks of the partitions of a conditional write or transaction. Records whether another write was in the way or is still
/// pending. With several partitions, each of them is recorded, because the one with the other write is not known.
pub(crate) async fn contended(
    sampling: &PartitionSampling,
    partitions: &[(&Table, &PartitionKey)],
    lock: impl Future<Output = Result<Arc<PartitionGuard>, CqlError>>,
) -> Result<Arc<PartitionGuard>, CqlError> {
    let interest = sampling.interest([SamplerKind::CasContentions]);
    if interest.is_none() {
        return lock.await;
    }
    let before_ns = measurement::lock_wait_ns();
    let locked = lock.await;
    let has_pending = locked.as_ref().is_ok_and(|guard| guard.has_pending());
    if has_pending || measurement::lock_wait_ns() > before_ns || locked.is_err() {
        record_contention(sampling, partitions, |_| true);
    }
    locked
}

/// Records the partitions of a transaction whose locks other writes had.
pub(crate) fn record_contention(
    sampling: &PartitionSampling,
    partitions: &[(&Table, &PartitionKey)],
    is_contended: impl Fn((TableId, i64)) -> bool,
) {
    let interest = sampling.interest([SamplerKind::CasContentions]);
    if interest.is_none() {
        return;
    }
    let contended = partitions
        .iter()
        .filter(|(table, key)| is_contended((table.number, key.token)));
    for (table, key) in contended {
        sampling.record(interest, SamplerKind::CasContentions, table.id, &key.bytes, 1);
    }
}
