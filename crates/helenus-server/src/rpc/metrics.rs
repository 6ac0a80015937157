//! Metrics of the requests that this node sends to others.

use helenus_query::cluster::RemoteError;
use metrics::{Counter, counter};

/// One kind of question.
pub(super) struct RequestKindMetrics {
    done: Counter,
    /// The other node did not own what it was asked for.
    not_mine: Counter,
    /// It was not reached, or has not answered.
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

    /// Counts an answer, and hands it on.
    pub fn count<T>(&self, answer: Result<T, RemoteError>) -> Result<T, RemoteError> {
        match &answer {
            Ok(_) | Err(RemoteError::Failed(_)) => &self.done,
            Err(RemoteError::NotOwned) => &self.not_mine,
            Err(RemoteError::Unreachable(_) | RemoteError::NoAnswer(_)) => &self.lost,
        }
        .increment(1);
        answer
    }
}

/// All of them.
pub(super) struct PeerRequestMetrics {
    /// Statements that were passed on to their owner.
    pub statements: RequestKindMetrics,
    /// Parts of aggregates that their owners read.
    pub parts: RequestKindMetrics,
    /// Rows by key, and ranges, that a read on this node took from others.
    pub gets: RequestKindMetrics,
    pub scans: RequestKindMetrics,
    /// Posting lists of other nodes that were searched there.
    pub list_searches: RequestKindMetrics,
    /// Parts of batches and index entries.
    pub writes: RequestKindMetrics,
}

impl Default for PeerRequestMetrics {
    fn default() -> PeerRequestMetrics {
        PeerRequestMetrics {
            statements: RequestKindMetrics::new("statement"),
            parts: RequestKindMetrics::new("part"),
            gets: RequestKindMetrics::new("get"),
            scans: RequestKindMetrics::new("scan"),
            list_searches: RequestKindMetrics::new("list_search"),
            writes: RequestKindMetrics::new("write"),
        }
    }
}
