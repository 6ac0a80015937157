//! The native transport, the calls between nodes, and HTTP.
//!
//! [`listener::Server`] accepts connections. Each [`connection`] is one task, which reads requests, runs them concurrently and sends
//! responses in the order in which they are ready. Statements are run through the trait [`backend::Backend`], so that the transport can be
//! tested without a store. [`http`] answers `/health`, `/metrics` and `/node`, and serves the web [`console`].

pub mod audit;
pub mod backend;
mod backup_commands;
pub mod backup_monitor;
pub mod backup_schedule;
pub mod bucket_cost;
pub mod certificate_expiry;
pub mod config;
mod connection;
mod console;
mod engine;
mod events;
mod figure_metrics;
pub mod full_query_log;
mod full_query_log_commands;
pub mod http;
pub mod listener;
pub mod live_settings;
mod log_folder;
mod log_rate_limit;
mod long_requests;
mod metric_help;
pub mod metrics;
pub mod node;
pub mod node_commands;
mod node_facts;
pub mod node_report;
mod partition_sampling;
pub mod reader;
pub mod roll_cycle;
pub mod rpc;
mod server_state;
mod slow;
mod slow_report;
mod snapshot_commands;
pub mod spans;
mod stage_times;
mod stall;
pub mod starting_http;
mod table_report;
pub mod tls;
pub mod watched;
mod working_memory;

/// Boxes the future of an `async fn` that other crates call, so that the future is compiled once, in this crate.
pub(crate) use async_recursion::async_recursion as boxed;

pub use backend::Backend;
pub use config::{OverloadConfig, ServerConfig};
pub use listener::Server;
