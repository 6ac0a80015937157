//! Monitoring of a running load: the server's process and metrics, and the progress.

pub mod metrics;
pub mod process;
pub mod progress;
