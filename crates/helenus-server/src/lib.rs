//! The native transport, HTTP, and what joins them to the query floor.
//!
//! [`listener::Server`] accepts connections; each is one task, [`connection`], which reads requests, runs them
//! side by side and sends answers as they come. What runs a statement is behind [`backend::Backend`], so that
//! the transport can be tested without a store. [`http`] answers `/health` and `/metrics`.

mod aside;
pub mod backend;
mod breakdown;
pub mod config;
mod connection;
mod engine;
mod events;
pub mod http;
pub mod listener;
mod log_limit;
pub mod metrics;
pub mod node;
pub mod rpc;
mod shared;
mod slow;
pub mod tls;
mod working_memory;

pub use backend::Backend;
pub use config::{OverloadConfig, ServerConfig};
pub use listener::Server;
