//! Metrics of a node for Prometheus: their names, their values and their help texts.
//!
//! Metrics of requests belong in [`transport`], and the time that a request takes in each stage in [`stage_times`]. Metrics that are set
//! just before they are read belong in [`engine`], and those that are computed as text in [`computed`]. The text of each metric is in
//! [`help`]. `rpc`, `node` and `bucket_cost` record their own metrics, in a module `metrics` of each.

pub(crate) mod computed;
pub(crate) mod engine;
mod help;
mod recorder;
pub(crate) mod stage_times;
mod transport;

pub use metrics_exporter_prometheus::PrometheusHandle;
pub use recorder::install_recorder;
pub use transport::{Metrics, RequestKind};
