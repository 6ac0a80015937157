//! Time limits of computing.

use std::time::Duration;

use helenus_cql::error::WriteType;

/// Times that requests may compute before they fail with a timeout, with Cassandra's names and defaults. A write that was handed to the log
/// is no longer aborted.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// Reads of given partitions.
    pub read_request_timeout: Duration,
    /// Reads of ranges of partitions. For aggregates, the limit of each 10,000 rows.
    pub range_request_timeout: Duration,
    pub write_request_timeout: Duration,
    pub counter_write_request_timeout: Duration,
    /// Writes with conditions.
    pub cas_contention_timeout: Duration,
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        Timeouts {
            read_request_timeout: Duration::from_secs(5),
            range_request_timeout: Duration::from_secs(10),
            write_request_timeout: Duration::from_secs(2),
            counter_write_request_timeout: Duration::from_secs(5),
            cas_contention_timeout: Duration::from_millis(1800),
        }
    }
}

impl Timeouts {
    /// Returns the time limit of a write.
    pub(crate) fn write(&self, write_type: WriteType) -> Duration {
        match write_type {
            WriteType::Cas => self.cas_contention_timeout,
            WriteType::Counter => self.counter_write_request_timeout,
            WriteType::Simple
            | WriteType::Batch
            | WriteType::UnloggedBatch
            | WriteType::BatchLog
            | WriteType::View
            | WriteType::Cdc => self.write_request_timeout,
        }
    }
}
