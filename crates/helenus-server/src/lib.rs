//! The native transport, the calls between nodes, and HTTP.
//!
//! Three modules serve requests: [`transport`] those of CQL clients, [`rpc`] those of other nodes, and [`http`] those of operators. [`node`]
//! makes the process a node of a cluster. The other modules have what these use. The header of each module says what belongs there.
#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "unit tests run on the machine")
)]

pub mod backups;
pub mod bucket_cost;
pub mod http;
pub mod logs;
pub mod metrics;
pub mod network;
pub mod node;
pub mod rpc;
pub mod settings;
pub mod spans;
mod threads;
pub mod tls;
pub mod transport;

/// Boxes the future of an `async fn` that other crates call, so that the future is compiled once, in this crate.
pub(crate) use async_recursion::async_recursion as boxed;

pub use transport::{Backend, OverloadConfig, Server, ServerConfig};
