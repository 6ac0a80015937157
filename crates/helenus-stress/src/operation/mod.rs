//! The contract between a load and its workloads: operations, their results, and the slot that an operation runs in.

pub mod slot;

use async_trait::async_trait;

use crate::db::{Db, OpError};
pub use slot::{Slot, ThreadKeys};

/// The kind of an operation; the shares of reads and deletions can be set from the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Read,
    Write,
    Delete,
}

/// An operation that a workload mixes.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// Lowercase letters, digits and underscores.
    pub name: &'static str,
    pub class: Class,
    /// Its part of all operations, relative to the others'.
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
    /// Lookups that found nothing where nothing needed to be.
    pub misses: u32,
    /// Lookups that found nothing, or not everything, where it was known to be.
    pub missing: u32,
    /// Values that don't fit their key or checksum.
    pub corrupt: u32,
}

impl ReadSummary {
    /// Returns a number of rows was written or deleted.
    pub fn rows(rows: u64) -> Self {
        Self {
            rows,
            ..Self::default()
        }
    }

    /// Returns a read found nothing: a miss, or a missing row where the row is known to exist.
    pub fn nothing(expected: bool) -> Self {
        Self {
            misses: u32::from(!expected),
            missing: u32::from(expected),
            ..Self::default()
        }
    }

    /// Returns a lookup found a row; `sound` says whether its value is one that was written.
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

/// A workload with prepared statements. One value serves all threads.
#[async_trait]
pub trait Workload: Send + Sync {
    /// Does the operation of that index in `Info::operations` of the workload.
    async fn perform(&self, db: &Db, operation: usize, slot: &mut Slot) -> OperationOutcome;

    /// Returns the operation to do when the mix has picked one: another, where operations have an order.
    fn choose(&self, picked: usize, _slot: &mut Slot) -> usize {
        picked
    }

    /// Writes all that belongs to a key. Called once for each key by `populate`.
    async fn populate(&self, db: &Db, key: u64, slot: &mut Slot) -> OperationOutcome;

    /// Reads the rows that [`Workload::populate`] wrote for the key, and checks them.
    async fn verify(&self, db: &Db, key: u64, slot: &mut Slot) -> OperationOutcome;
}
