//! A node's part in the cluster.

mod config;
mod handle;

pub use config::{AgentConfig, LEASE_DEFAULT};
pub use handle::{AgentHandle, AgentState};
