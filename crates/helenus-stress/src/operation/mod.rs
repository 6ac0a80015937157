//! The contract between a load and its workloads: operations, their results, and the slot in which an operation runs.

pub mod slot;

use async_trait::async_trait;

use crate::db::{Db, OpError};
pub use slot::{Slot, ThreadKeys};

/// The class of an operation. The shares of reads and deletions can be set on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Read,
    Write,
    Delete,
}

/// One operation of a workload's mix.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// Lowercase letters, digits and underscores.
    pub name: &'static str,
    pub class: Class,
    /// The operation's share, relative to the weights of the others.
    pub weight: f64,
    pub about: &'static str,
}

/// Rows and lookups of a successful operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadSummary {
    /// Rows written, deleted or returned.
    pub rows: u64,
    /// Lookups that found something.
    pub hits: u32,
    /// Lookups without a result where none was required.
    pub misses: u32,
    /// Lookups with no or too few rows where rows are known to exist.
    pub missing: u32,
    /// Values that do not match their key or checksum.
    pub corrupt: u32,
}

impl ReadSummary {
    /// Returns the summary of a number of rows written or deleted.
    pub fn rows(rows: u64) -> Self {
        Self {
            rows,
            ..Self::default()
        }
    }

    /// Returns the summary of a read without a result. The row counts as missing if it is known to exist.
    pub fn nothing(expected: bool) -> Self {
        Self {
            misses: u32::from(!expected),
            missing: u32::from(expected),
            ..Self::default()
        }
    }

    /// Returns the summary of a lookup that found a row. `sound` is true if the value is one that was written.
    pub fn row(sound: bool) -> Self {
        Self {
            rows: 1,
            hits: u32::from(sound),
            corrupt: u32::from(!sound),
            ..Self::default()
        }
    }
}

/// The result of an operation.
pub type OperationOutcome = Result<ReadSummary, OpError>;

/// A workload with prepared statements, which all threads share.
#[async_trait]
pub trait Workload: Send + Sync {
    /// Runs the operation with this index in the workload's `Info::operations`.
    async fn perform(&self, db: &Db, operation: usize, slot: &mut Slot) -> OperationOutcome;

    /// Returns the operation to run after the mix picked one. It differs in workloads whose operations have an order.
    fn choose(&self, picked: usize, _slot: &mut Slot) -> usize {
        picked
    }

    /// Writes all rows of a key. `populate` calls it once for each key.
    async fn populate(&self, db: &Db, key: u64, slot: &mut Slot) -> OperationOutcome;

    /// Reads the rows that [`Workload::populate`] wrote for the key, and verifies them.
    async fn verify(&self, db: &Db, key: u64, slot: &mut Slot) -> OperationOutcome;
}
