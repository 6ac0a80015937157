//! A load generator for any CQL endpoint. It links no engine, so that it measures every server alike.
//!
//! - [`cli`]: the command line, with the flags that people know from tlp-stress
//! - [`workloads`]: what is written and read; [`data`]: keys, and values that can be checked
//! - [`db`]: the driver's session, the schema, errors by their CQL codes
//! - [`load`]: threads, pace, counting; [`monitor`]: the server's figures, progress
//! - [`results`]: what a run leaves behind, as types and as files
//! - [`report`]: those files as one page for a browser
//! - [`commands`]: the subcommands, from all of this

pub mod cli;
pub mod commands;
pub mod data;
pub mod db;
pub mod load;
pub mod monitor;
pub mod report;
pub mod results;
pub mod workloads;
