//! What this node asks of the others, for `/metrics`.

use helenus_query::cluster::RemoteError;
use metrics::{Counter, counter};

/// One kind of question.
pub(super) struct Questions {
    done: Counter,
    /// The other node did not own what it was asked for.
    not_mine: Counter,
    /// It was not reached, or has not answered.
    lost: Counter,
}

impl Questions {
    fn new(kind: &'static str) -> Questions {
        let outcome = |outcome: &'static str| counter!("helenus_cluster_remote_total", "kind" => kind, "outcome" => outcome);
        Questions {
            done: outcome("done"),
            not_mine: outcome("not_mine"),
            lost: outcome("lost"),
        }
    }

    /// Counts an answer, and hands it on.
    pub fn count<T>(&self, answer: Result<T, RemoteError>) -> Result<T, RemoteError> {
        match &answer {
            Ok(_) | Err(RemoteError::Failed(_)) => &self.done,
            Err(RemoteError::NotMine) => &self.not_mine,
            Err(RemoteError::Unreachable(_) | RemoteError::NoAnswer(_)) => &self.lost,
        }
        .increment(1);
        answer
    }
}

/// All of them.
pub(super) struct Counts {
    /// Statements that were passed on to their owner.
    pub statements: Questions,
    /// Rows by key, and ranges, that a read on this node took from others.
    pub gets: Questions,
    pub scans: Questions,
    /// Parts of batches and index entries.
    pub writes: Questions,
}

impl Default for Counts {
    fn default() -> Counts {
        Counts {
            statements: Questions::new("statement"),
            gets: Questions::new("get"),
            scans: Questions::new("scan"),
            writes: Questions::new("write"),
        }
    }
}
