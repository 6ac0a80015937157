//! Whole clusters, simulated from one seed: agents on a store that fails, nodes that crash, pause and drift, clients that remember.
//!
//! `HELENUS_SIM_SEED=n` runs one seed only, `HELENUS_SIM_SEEDS=n` so many of them.

mod bucket;
mod chaos;
mod executor;
mod figures;
mod history;
mod host;
mod witness;
mod world;
