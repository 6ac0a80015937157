//! Counts the requests that rate limits have refused.

use std::sync::atomic::{AtomicU64, Ordering};

/// Kind of the rate limit that a request would have exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateLimitKind {
    /// The limit of a partition, set by the option `per_partition_rate_limit` of its table.
    Partition,
    /// The limit of a role, set by its service levels.
    Role,
}

impl RateLimitKind {
    pub const ALL: [RateLimitKind; 2] = [RateLimitKind::Partition, RateLimitKind::Role];

    /// Returns the name of the kind in metrics.
    pub fn name(self) -> &'static str {
        match self {
            RateLimitKind::Partition => "partition",
            RateLimitKind::Role => "role",
        }
    }
}

/// Numbers of requests that this node has refused.
#[derive(Debug, Default)]
pub struct RateLimitMetrics {
    partition: AtomicU64,
    role: AtomicU64,
}

impl RateLimitMetrics {
    fn of(&self, kind: RateLimitKind) -> &AtomicU64 {
        match kind {
            RateLimitKind::Partition => &self.partition,
            RateLimitKind::Role => &self.role,
        }
    }

    pub(crate) fn refused(&self, kind: RateLimitKind) {
        self.of(kind).fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of refused requests.
    pub fn count(&self, kind: RateLimitKind) -> u64 {
        self.of(kind).load(Ordering::Relaxed)
    }
}
