//! Simulations of whole clusters from one seed: agents on a store that fails, nodes that crash, pause and have wrong clocks, and clients
//! whose operations are checked.
//!
//! `HELENUS_SIM_SEED=n` runs one seed only. `HELENUS_SIM_SEEDS=n` runs that number of seeds.

mod bucket;
mod executor;
mod fault_injection;
mod figures;
mod history;
mod history_recorder;
mod host;
mod world;
