//! A load generator for any CQL endpoint. It links no engine, so that it measures every server alike.
//!
//! - [`cli`]: the command line, with the flags that people know from tlp-stress; [`numbers`]: how numbers and durations are written there
//! - [`workloads`]: tables and statements; [`operation`]: the contract between a load and a workload
//! - [`data`]: keys, and values that can be checked
//! - [`db`]: the driver's session, the schema, errors by their CQL codes
//! - [`load`]: threads, pace, counting, through the driver; [`raw`]: connections, pace, counting on the bare protocol
//! - [`monitor`]: figures of the server, progress
//! - [`results`]: the figures of a run, as types and as files
//! - [`report`]: those files as one page for a browser
//! - [`fql`]: full query logs, shown and replayed
//! - [`commands`]: the subcommands, from all of this
//!
//! The library serves the benchmarks under `bench/` too: they bring their own requests and use [`raw`] to send and time them.

pub mod cli;
pub mod commands;
pub mod data;
pub mod db;
pub mod fql;
pub mod load;
pub mod monitor;
pub mod numbers;
pub mod operation;
pub mod raw;
pub mod report;
pub mod results;
pub mod workloads;
