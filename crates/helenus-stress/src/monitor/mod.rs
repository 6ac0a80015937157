//! Monitors a running load: the server's processes and metrics, and the progress.

pub mod metrics;
pub mod process;
pub mod progress;
