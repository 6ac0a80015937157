//! Samples of writes: the written partitions and their bytes ([`crate::metrics::sampling`]).

use std::collections::HashMap;

use bytes::Bytes;
use uuid::Uuid;

use super::WriteSet;
use crate::metrics::sampling::{PartitionSampling, SamplerKind};

impl WriteSet {
    /// Records the writes of this node.
    pub(super) fn sample(&self, sampling: &PartitionSampling) {
        let interest = sampling.interest([SamplerKind::Writes, SamplerKind::WriteSize]);
        if interest.is_none() {
            return;
        }
        let record = |table: Uuid, key: &[u8], bytes: u64| {
            sampling.record(interest, SamplerKind::Writes, table, key, 1);
            sampling.record(interest, SamplerKind::WriteSize, table, key, bytes);
        };
        if let ([write], []) = (self.rows.as_slice(), self.headers.as_slice()) {
            return record(write.table.id, &write.partition.bytes, write.operand.len() as u64);
        }
        for ((table, key), bytes) in self.bytes_by_partition() {
            record(table, key, bytes);
        }
    }

    fn bytes_by_partition(&self) -> HashMap<(Uuid, &Bytes), u64> {
        let rows = self.rows.iter();
        let rows = rows.map(|write| (write.table.id, &write.partition.bytes, write.operand.len()));
        let headers = self.headers.iter();
        let headers = headers.map(|write| {
            (
                write.table.id,
                &write.partition.bytes,
                write.header.encode().len(),
            )
        });
        let mut sizes = HashMap::new();
        for (table, key, bytes) in rows.chain(headers) {
            *sizes.entry((table, key)).or_default() += bytes as u64;
        }
        sizes
    }
}
