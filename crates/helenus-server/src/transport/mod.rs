//! The native transport: CQL clients' connections, from the port to the query engine.
//!
//! The [`listener`] accepts connections. Each [`connection`] is one task, which reads requests, runs them concurrently and sends responses
//! in the order in which they are ready. Statements run through the trait [`Backend`], which [`engine`] implements for the query engine.
//! [`config`] has the settings, and [`server_state`] what all connections share.

mod backend;
mod config;
mod connection;
mod engine;
mod events;
mod listener;
mod server_state;
mod working_memory;

pub use backend::Backend;
pub use config::{OverloadConfig, ServerConfig};
pub use listener::{EventSender, Server, SlowRequestLog, Transport};
