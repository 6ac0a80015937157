//! The metrics of the process, for Prometheus.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use axum::Router;
use axum::routing::get;
use metrics::{counter, describe_counter, describe_gauge, gauge};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use tokio::net::TcpListener;
use tokio::runtime;

use super::queue::Queue;
use super::shared::{Phase, Shared};

const LAG: &str = "helenus_replication_lag_seconds";
const LAG_ROWS: &str = "helenus_replication_lag_rows";
const SENT: &str = "helenus_replication_rows_sent_total";
const COPIED: &str = "helenus_replication_rows_copied_total";
const RANGES_LEFT: &str = "helenus_replication_copy_ranges_left";
const STOPPED: &str = "helenus_replication_stopped";
const FAILURES: &str = "helenus_replication_failures_total";

/// Answers `/metrics` at an address, on a thread of its own.
pub fn serve(address: SocketAddr) -> Result<()> {
    let recorder = PrometheusBuilder::new().build_recorder();
    let handle = recorder.handle();
    metrics::set_global_recorder(recorder).context("can't collect metrics")?;
    describe_gauge!(
        LAG,
        "Age in seconds of the oldest change that may not be sent yet, by table"
    );
    describe_gauge!(
        LAG_ROWS,
        "Rows of the log that wait to be sent, by table, estimated from the rate of the changes that were sent last"
    );
    describe_counter!(SENT, "Rows of the log that this process has sent, by table");
    describe_counter!(COPIED, "Rows that this process has copied, by table");
    describe_gauge!(RANGES_LEFT, "Ranges of tokens that are not copied yet, by table");
    describe_gauge!(STOPPED, "1 for a table whose replication has stopped");
    describe_counter!(FAILURES, "Passes that failed, and were made again");
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    let listener = runtime
        .block_on(TcpListener::bind(address))
        .with_context(|| format!("--metrics {address}: can't listen there"))?;
    thread::spawn(move || runtime.block_on(answer(listener, handle)));
    Ok(())
}

async fn answer(listener: TcpListener, handle: PrometheusHandle) {
    let router = Router::new().route(
        "/metrics",
        get(move || {
            let text = handle.render();
            async move { text }
        }),
    );
    if let Err(error) = axum::serve(listener, router).await {
        eprintln!("the metrics can't be read any more: {error}");
    }
}

/// Records the state again and again. Without [`serve`], nothing is kept.
pub fn record_until_end(shared: &Shared, queue: &Queue) {
    const INTERVAL: Duration = Duration::from_millis(200);
    while shared.interrupt.sleep(INTERVAL) {
        record(shared, queue);
    }
}

fn record(shared: &Shared, queue: &Queue) {
    for (position, table) in shared.tables.iter().enumerate() {
        let name = table.name.to_string();
        if let Some(lag) = shared.lag_of_table(position) {
            gauge!(LAG, "table" => name.clone()).set(lag.seconds);
            gauge!(LAG_ROWS, "table" => name.clone()).set(lag.rows.round());
        }
        counter!(SENT, "table" => name.clone()).absolute(table.rows_sent());
        counter!(COPIED, "table" => name.clone()).absolute(table.rows_copied());
        gauge!(RANGES_LEFT, "table" => name.clone()).set(table.missing_ranges().len() as f64);
        let is_stopped = matches!(table.phase(), Phase::Stopped(_));
        gauge!(STOPPED, "table" => name).set(f64::from(u8::from(is_stopped)));
    }
    counter!(FAILURES).absolute(queue.failures());
}
