//! Counts the entries that are missing in the log.

use std::sync::Arc;

use metrics::{Counter, counter};

use crate::logs::rate_limit::LogRateLimiter;

/// The reason why an entry was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// The queue was full, and requests must not wait.
    QueueFull,
    /// The disk has failed.
    Disk,
    /// The entry is too long for a record.
    TooLong,
}

impl Reason {
    fn words(self) -> &'static str {
        match self {
            Reason::QueueFull => "the queue is full",
            Reason::Disk => "the disk fails",
            Reason::TooLong => "the request is too long",
        }
    }
}

/// Counter of dropped entries.
#[derive(Clone)]
pub(super) struct Dropped {
    counter: Counter,
    lines: Arc<LogRateLimiter>,
}

impl Dropped {
    pub fn new() -> Dropped {
        Dropped {
            counter: counter!("helenus_full_query_log_dropped_total"),
            lines: Arc::default(),
        }
    }

    pub fn count(&self, reason: Reason) {
        self.counter.increment(1);
        if let Some(before) = self.lines.take() {
            let reason = reason.words();
            tracing::warn!(reason, before, "an entry of the full query log is dropped");
        }
    }
}
