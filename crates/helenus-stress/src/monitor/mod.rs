//! What is watched while a load runs: the server's process and metrics, and the progress that is shown.

pub mod metrics;
pub mod process;
pub mod progress;
