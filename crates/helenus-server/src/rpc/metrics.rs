//! Metrics of the requests that this node sends to other nodes.

use helenus_query::cluster::RemoteError;
use metrics::{Counter, counter};

/// Counters of one kind of request.
pub(super) struct RequestKindMetrics {
    done: Counter,
    /// Requests that failed because the other node did not own the tablet.
    not_mine: Counter,
    /// Requests that failed because the other node was not reached, or has not answered.
    lost: Counter,
}

impl RequestKindMetrics {
    fn new(kind: &'static str) -> RequestKindMetrics {
        let outcome = |outcome: &'static str| counter!("helenus_cluster_remote_total", "kind" => kind, "outcome" => outcome);
        RequestKindMetrics {
            done: outcome("done"),
            not_mine: outcome("not_mine"),
            lost: outcome("lost"),
        }
    }

    /// Counts a result and returns it.
    pub fn count<T>(&self, answer: Result<T, RemoteError>) -> Result<T, RemoteError> {
        self.record(&answer);
        answer
    }

    /// Counts a result.
    pub fn record<T>(&self, answer: &Result<T, RemoteError>) {
        match answer {
            Ok(_) | Err(RemoteError::Failed(_)) => &self.done,
            Err(RemoteError::NotOwned) => &self.not_mine,
            Err(RemoteError::Unreachable(_) | RemoteError::NoAnswer(_)) => &self.lost,
        }
        .increment(1);
    }
}

/// The counters of all kinds of requests.
pub(super) struct PeerRequestMetrics {
    /// Statements that were forwarded to their owner.
    pub statements: RequestKindMetrics,
    /// Forwarded statements whose answers went straight to their clients' connections.
    pub relayed: Counter,
    /// Parts of aggregates that their owners read.
    pub parts: RequestKindMetrics,
    /// Rows by key, and ranges of rows, that a read on this node took from other nodes.
    pub gets: RequestKindMetrics,
    pub scans: RequestKindMetrics,
    /// Searches of posting lists on other nodes.
    pub list_searches: RequestKindMetrics,
    /// Parts of batches and index entries.
    pub writes: RequestKindMetrics,
    /// Steps of transactions over partitions of several nodes.
    pub transactions: RequestKindMetrics,
}

impl Default for PeerRequestMetrics {
    fn default() -> PeerRequestMetrics {
        PeerRequestMetrics {
            statements: RequestKindMetrics::new("statement"),
            relayed: counter!("helenus_cluster_relayed_total"),
            parts: RequestKindMetrics::new("part"),
            gets: RequestKindMetrics::new("get"),
            scans: RequestKindMetrics::new("scan"),
            list_searches: RequestKindMetrics::new("list_search"),
            writes: RequestKindMetrics::new("write"),
            transactions: RequestKindMetrics::new("transaction"),
        }
    }
}
