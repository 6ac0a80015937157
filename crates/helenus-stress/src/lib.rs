//! A load generator for any CQL endpoint. It does not link an engine, so that it measures all servers in the same way.
//!
//! - [`cli`]: the command line, with the flags of tlp-stress; [`numbers`]: the formats of numbers and durations there
//! - [`workloads`]: tables and statements; [`operation`]: the contract between a load and a workload
//! - [`data`]: keys, and values that can be verified
//! - [`db`]: the driver's session, the schema, errors by their CQL codes
//! - [`load`]: threads, pace and counts, with the driver; [`raw`]: connections, pace and counts, with the bare protocol
//! - [`monitor`]: figures of the server, progress
//! - [`results`]: the figures of a run, as types and as files
//! - [`report`]: those files as one page for a browser
//! - [`fql`]: full query logs: printing, replay and comparison
//! - [`commands`]: the subcommands, which use all of this
//!
//! The benchmarks under `bench/` use the library too: they define their own requests, and [`raw`] sends and times them.

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
