//! Whole clusters, simulated from one seed: agents on a store that fails, nodes that crash, pause and drift, clients that remember.
//!
//! `HELENUS_SIM_SEED=n` runs one seed only, `HELENUS_SIM_SEEDS=n` so many of them.

mod bucket;
mod executor;
mod fault_injection;
mod figures;
mod history;
mod history_recorder;
mod host;
mod world;
