//! The process's recorder of metrics.

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

use super::help;
use super::transport::{LATENCY_BUCKETS_S, REQUEST_DURATION, STAGE_DURATION};
use crate::threads::stall::STALL_DURATION;

/// Installs the process's recorder of metrics. Call it once, before anything is measured.
///
/// # Errors
/// Another recorder is installed already.
pub fn install_recorder() -> Result<PrometheusHandle, String> {
    PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Full(REQUEST_DURATION.to_owned()), &LATENCY_BUCKETS_S)
        .and_then(|builder| {
            let stages = Matcher::Full(STAGE_DURATION.to_owned());
            builder.set_buckets_for_metric(stages, &LATENCY_BUCKETS_S)
        })
        .and_then(|builder| {
            let stalls = Matcher::Full(STALL_DURATION.to_owned());
            builder.set_buckets_for_metric(stalls, &LATENCY_BUCKETS_S)
        })
        .and_then(PrometheusBuilder::install_recorder)
        .inspect(|_| {
            help::describe();
            metrics_process::Collector::default().describe();
        })
        .map_err(|error| error.to_string())
}
