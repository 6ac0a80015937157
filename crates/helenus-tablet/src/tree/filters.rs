//! Bloom filters by key and by partition.

use std::sync::Arc;

use slatedb::{BloomFilterPolicy, FilterPolicy};

use crate::data_model::{KeyLayout, Partitions};

const BITS_PER_KEY: u32 = 10;

/// Returns the policy by which the filters of SSTables are written and read.
pub(crate) fn policy(model: Arc<dyn KeyLayout>) -> Arc<dyn FilterPolicy> {
    Arc::new(BloomFilterPolicy::new(BITS_PER_KEY).with_prefix_extractor(Arc::new(Partitions(model))))
}
