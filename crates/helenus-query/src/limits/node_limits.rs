//! The limits of a node, and the memory, permits and rates that its requests share.

use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use tokio::sync::Semaphore;

use super::Limits;
use super::answers::ResultMemory;
use super::client_memory::ClientMemory;
use super::partition_rates::PartitionRates;

/// The limits of a node, and what its requests share.
pub(crate) struct NodeLimits {
    /// The current limits. They are replaced as a whole when settings change.
    current: ArcSwap<Limits>,
    /// Memory that clients' requests and answers hold.
    pub client_memory: Arc<ClientMemory>,
    /// Memory for answers.
    pub answers: Arc<ResultMemory>,
    /// One permit for each part of whole-table aggregates that may be read concurrently.
    pub scan_permits: Arc<Semaphore>,
    /// Request rates of partitions of tables with a limit.
    pub partition_rates: PartitionRates,
}

impl NodeLimits {
    pub fn new(limits: Limits) -> NodeLimits {
        NodeLimits {
            client_memory: ClientMemory::new(limits.client_memory_bytes),
            answers: Arc::new(ResultMemory::new(limits.answers_bytes_max)),
            scan_permits: Arc::new(Semaphore::new(limits.scan_concurrency)),
            partition_rates: PartitionRates::default(),
            current: ArcSwap::from_pointee(limits),
        }
    }

    /// Returns the limits for reads as of an earlier time. They have the memory and the permits of this node.
    pub fn as_of(&self) -> NodeLimits {
        NodeLimits {
            client_memory: self.client_memory.clone(),
            answers: self.answers.clone(),
            scan_permits: self.scan_permits.clone(),
            partition_rates: PartitionRates::default(),
            current: ArcSwap::new(self.load_full()),
        }
    }

    /// Returns the current limits.
    pub fn load(&self) -> Guard<Arc<Limits>> {
        self.current.load()
    }

    /// Returns the current limits, to keep.
    pub fn load_full(&self) -> Arc<Limits> {
        self.current.load_full()
    }

    /// Sets the limits of the requests that begin from now on. Memory that was divided at the start (`prepared_cache_bytes`,
    /// `client_memory_bytes`, `answers_bytes_max`) and `scan_concurrency` do not change.
    pub fn set(&self, limits: Limits) {
        let now = self.load_full();
        self.current.store(Arc::new(Limits {
            prepared_cache_bytes: now.prepared_cache_bytes,
            client_memory_bytes: now.client_memory_bytes,
            answers_bytes_max: now.answers_bytes_max,
            scan_concurrency: now.scan_concurrency,
            ..limits
        }));
    }

    /// Returns the number of running parts of table scans. They run in their own tasks, beside those of the requests.
    pub fn scan_parts_running(&self) -> usize {
        let free = self.scan_permits.available_permits();
        self.load().scan_concurrency.saturating_sub(free)
    }
}
