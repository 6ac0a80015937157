//! The parts of the comparison; the other benchmarks use its connection.

mod alarm;
pub mod client;
pub mod load;
pub mod operation;
pub mod report;
pub mod server;
pub mod slowest;
pub mod stalls;
