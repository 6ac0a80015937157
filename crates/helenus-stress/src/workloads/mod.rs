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

/// The description of a workload, which needs no server.
#[derive(Clone, Copy, Debug)]
pub struct Info {
    pub name: &'static str,
    /// Names that tlp-stress knows it by.
    pub aliases: &'static [&'static str],
    pub about: &'static str,
    pub operations: &'static [Operation],
    pub parameters: &'static [Parameter],
    pub fields: &'static [Field],
    /// Keys a thread by default.
    pub partitions: u64,
    /// The number of pieces into which `populate` and `verify` divide the rows of a key; the key that they name is then a piece's number.
    pub pieces: Option<fn(&Setup) -> anyhow::Result<u64>>,
    /// Whether all threads share the keys; otherwise each has its own.
    pub shared_keys: bool,
    /// The threads, where the workload has separate ones for separate things; otherwise those of the command line, doing it all.
    pub pools: Option<fn(&Setup) -> anyhow::Result<Vec<PoolOf>>>,
    /// Published figures, a sentence each.
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

/// Prepares a workload.
pub type Prepare = for<'a> fn(&'a Setup, &'a Db) -> BoxFuture<'a, anyhow::Result<Box<dyn Workload>>>;

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

/// Returns the workload of that name or alias, in any case.
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
