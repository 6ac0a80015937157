//! Workloads: the tables and statements of a load. Each is a module with an [`Info`] and a [`Workload`].

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

use futures::future::BoxFuture;

use crate::db::Db;
use crate::operation::{Class, Operation, OperationOutcome, ReadSummary, Workload};
pub use setup::Setup;

/// A parameter, set by `--workload.NAME=VALUE`.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    pub name: &'static str,
    /// The parameter's name in tlp-stress, if it differs.
    pub alias: Option<&'static str>,
    pub default: &'static str,
    pub about: &'static str,
}

/// A column that `--field.NAME=GENERATOR` fills.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Name as `TABLE.COLUMN`.
    pub name: &'static str,
    pub default: &'static str,
}

/// The description of a workload. It needs no server.
#[derive(Clone, Copy, Debug)]
pub struct Info {
    pub name: &'static str,
    /// Names of the workload in tlp-stress.
    pub aliases: &'static [&'static str],
    pub about: &'static str,
    pub operations: &'static [Operation],
    pub parameters: &'static [Parameter],
    pub fields: &'static [Field],
    /// Default number of keys per thread.
    pub partitions: u64,
    /// Number of pieces into which `populate` and `verify` divide the rows of a key. These commands then pass the number of a piece instead
    /// of a key.
    pub pieces: Option<fn(&Setup) -> anyhow::Result<u64>>,
    /// True if all threads share the keys. Otherwise each thread has its own.
    pub shared_keys: bool,
    /// Pools of threads, if the workload has separate threads for separate classes of operations. Otherwise all threads of the command line
    /// do all operations.
    pub pools: Option<fn(&Setup) -> anyhow::Result<Vec<PoolOf>>>,
    /// Published figures, one sentence each.
    pub published: &'static [&'static str],
    /// The statements that create the tables, in order.
    pub schema: fn(&Setup) -> anyhow::Result<Vec<String>>,
    /// Prepares the statements after the tables are created.
    pub prepare: Prepare,
}

/// Threads that do only the operations of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolOf {
    pub class: Class,
    pub threads: u32,
    pub in_flight: u32,
}

/// Function that prepares a workload.
pub type Prepare = for<'a> fn(&'a Setup, &'a Db) -> BoxFuture<'a, anyhow::Result<Box<dyn Workload>>>;

/// All workloads, in the order of `list`.
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

/// Returns the workload with this name or alias, regardless of case.
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
