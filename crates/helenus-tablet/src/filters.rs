//! Bloom filters by key and by partition, which can also be told that no SSTable is wanted: a scan that reads SSTables by itself
//! ([`crate::runs`]) asks SlateDB for what lies in memory alone.

use std::sync::Arc;

use bytes::{BufMut, Bytes};
use slatedb::{
    BloomFilterPolicy, Filter, FilterBuilder, FilterContext, FilterPolicy, FilterQuery, FilterTarget,
    RowEntry,
};

use crate::hooks::{Hooks, Partitions};

const BITS_PER_KEY: u32 = 10;
const MEMORY_ONLY: &[u8] = b"memory only";

/// What a scan says that wants no SSTable. Each has a filter that can refuse it.
pub(crate) fn memory_only() -> FilterContext {
    FilterContext::Bytes(Bytes::from_static(MEMORY_ONLY))
}

fn is_memory_only(query: &FilterQuery) -> bool {
    matches!(&query.context, Some(FilterContext::Bytes(context)) if context == MEMORY_ONLY)
}

/// SlateDB's policy, and what it calls itself: its filters are the same bytes.
pub(crate) struct Policy {
    bloom: BloomFilterPolicy,
    asked_for_ranges: bool,
}

impl Policy {
    /// `asked_for_ranges` has filters read for ranges of keys too, of which they know only whether SSTables are wanted at all.
    pub fn new(hooks: Arc<dyn Hooks>, asked_for_ranges: bool) -> Policy {
        Policy {
            bloom: BloomFilterPolicy::new(BITS_PER_KEY).with_prefix_extractor(Arc::new(Partitions(hooks))),
            asked_for_ranges,
        }
    }
}

impl FilterPolicy for Policy {
    fn name(&self) -> &str {
        self.bloom.name()
    }

    fn builder(&self) -> Box<dyn FilterBuilder> {
        Box::new(Builder(self.bloom.builder()))
    }

    fn decode(&self, data: &[u8]) -> Arc<dyn Filter> {
        Arc::new(Wanted(self.bloom.decode(data)))
    }

    fn estimate_size(&self, num_keys: usize) -> usize {
        self.bloom.estimate_size(num_keys)
    }

    fn supports_range_queries(&self) -> bool {
        self.asked_for_ranges
    }

    fn supports_prefix_queries(&self) -> bool {
        self.bloom.supports_prefix_queries()
    }
}

struct Builder(Box<dyn FilterBuilder>);

impl FilterBuilder for Builder {
    fn add_entry(&mut self, entry: &RowEntry) {
        self.0.add_entry(entry);
    }

    fn build(&mut self) -> Arc<dyn Filter> {
        Arc::new(Wanted(self.0.build()))
    }
}

struct Wanted(Arc<dyn Filter>);

impl Filter for Wanted {
    fn might_match(&self, query: &FilterQuery) -> bool {
        if is_memory_only(query) {
            return false;
        }
        matches!(query.target, FilterTarget::Range { .. }) || self.0.might_match(query)
    }

    fn encode(&self, writer: &mut dyn BufMut) {
        self.0.encode(writer);
    }

    fn size(&self) -> usize {
        self.0.size()
    }

    fn clamp_allocated_size(&self) -> Arc<dyn Filter> {
        Arc::new(Wanted(self.0.clamp_allocated_size()))
    }
}
