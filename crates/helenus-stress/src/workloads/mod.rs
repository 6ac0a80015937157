//! Workloads: what is written and read. Each is a module with an [`Info`] and a [`Workload`].

mod batch_mutate;
mod collections;
mod counters;
mod create_drop;
mod dense_kv;
mod hot_keys;
mod kv;
mod lwt;
mod many_tables;
mod queue;
mod scan;
pub mod setup;
mod surge;
mod timeseries;
mod tombstones;
mod user_quorum;
mod wide_rows;

use async_trait::async_trait;
use futures::future::BoxFuture;

use crate::db::{Db, OpError};
use crate::load::slot::Slot;
pub use setup::Setup;

/// What kind of work an operation is; the parts of reads and deletions can be set from the command line.
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

/// A parameter, set by `--workload.NAME=VALUE`.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    pub name: &'static str,
    /// Another name for it, tlp-stress's.
    pub alias: Option<&'static str>,
    pub default: &'static str,
    pub about: &'static str,
}

/// A column that `--field.NAME=GENERATOR` fills.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// `TABLE.COLUMN`.
    pub name: &'static str,
    pub default: &'static str,
}

/// All that is said of a workload without a server.
#[derive(Clone, Copy, Debug)]
pub struct Info {
    pub name: &'static str,
    /// Names that tlp-stress knows it by.
    pub aliases: &'static [&'static str],
    pub about: &'static str,
    pub operations: &'static [Operation],
    pub parameters: &'static [Parameter],
    pub fields: &'static [Field],
    /// Keys a thread, unless told.
    pub partitions: u64,
    /// Into how many pieces `populate` and `verify` divide what belongs to a key; the key that they name is then a piece's number.
    pub pieces: Option<fn(&Setup) -> anyhow::Result<u64>>,
    /// Whether all threads share the keys; otherwise each has its own.
    pub shared_keys: bool,
    /// The threads, where the workload has separate ones for separate things; otherwise those of the command line, doing it all.
    pub pools: Option<fn(&Setup) -> anyhow::Result<Vec<PoolOf>>>,
    /// What was published of it, a sentence each.
    pub published: &'static [&'static str],
    /// The statements that make the tables, in order.
    pub schema: fn(&Setup) -> anyhow::Result<Vec<String>>,
    /// Prepares the statements, once the tables are there.
    pub prepare: Prepare,
}

/// Threads that do the operations of one class only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolOf {
    pub class: Class,
    pub threads: u32,
    pub in_flight: u32,
}

/// Makes a workload ready to run.
pub type Prepare = for<'a> fn(&'a Setup, &'a Db) -> BoxFuture<'a, anyhow::Result<Box<dyn Workload>>>;

/// What an operation that succeeded came upon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
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

impl Found {
    /// So many rows were written or deleted.
    pub fn rows(rows: u64) -> Self {
        Self {
            rows,
            ..Self::default()
        }
    }

    /// What it is when a read finds nothing: a miss, or when the row is known to be there, a row that is missing.
    pub fn nothing(expected: bool) -> Self {
        Self {
            misses: u32::from(!expected),
            missing: u32::from(expected),
            ..Self::default()
        }
    }

    /// A lookup found a row; `sound` says whether it is what was written.
    pub fn row(sound: bool) -> Self {
        Self {
            rows: 1,
            hits: u32::from(sound),
            corrupt: u32::from(!sound),
            ..Self::default()
        }
    }
}

/// What an operation came to.
pub type Outcome = Result<Found, OpError>;

/// What a workload does, its statements prepared. One value serves all threads.
#[async_trait]
pub trait Workload: Send + Sync {
    /// Does the operation of that index in [`Info::operations`].
    async fn perform(&self, db: &Db, operation: usize, slot: &mut Slot) -> Outcome;

    /// The operation to do when the mix has picked one: another, where operations have an order.
    fn choose(&self, picked: usize, _slot: &mut Slot) -> usize {
        picked
    }

    /// Writes all that belongs to a key. Called once for each key by `populate`.
    async fn populate(&self, db: &Db, key: u64, slot: &mut Slot) -> Outcome;

    /// Reads what [`Workload::populate`] wrote for the key, and checks it.
    async fn verify(&self, db: &Db, key: u64, slot: &mut Slot) -> Outcome;
}

/// Every workload, in the order of `list`.
pub const ALL: &[&Info] = &[
    &kv::INFO,
    &many_tables::INFO,
    &dense_kv::INFO,
    &batch_mutate::INFO,
    &user_quorum::INFO,
    &tombstones::INFO,
    &timeseries::INFO,
    &wide_rows::INFO,
    &counters::INFO,
    &lwt::INFO,
    &collections::INFO,
    &hot_keys::INFO,
    &scan::INFO,
    &create_drop::INFO,
    &queue::INFO,
    &surge::INFO,
];

/// The workload of that name or alias, in any case.
pub fn find(name: &str) -> anyhow::Result<&'static Info> {
    let is = |known: &&str| known.eq_ignore_ascii_case(name);
    ALL.iter()
        .copied()
        .find(|info| is(&info.name) || info.aliases.iter().any(is))
        .ok_or_else(|| {
            let names: Vec<&str> = ALL.iter().map(|info| info.name).collect();
            anyhow::anyhow!("no workload {name:?}; there are {}", names.join(", "))
        })
}
