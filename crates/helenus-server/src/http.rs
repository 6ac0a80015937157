//! The HTTP server: `/health`, `/metrics`, `/node` and the console, and `/cluster` for a node of a cluster.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder};
use serde_json::{Value, json};
use tokio::sync::watch;

pub use metrics_exporter_prometheus::PrometheusHandle;

use crate::console::Console;
use crate::figure_metrics;
use crate::metric_help;
use crate::metrics::{LATENCY_BUCKETS_S, REQUEST_DURATION, STAGE_DURATION};
use crate::node::AdminApi;
use crate::node_commands::NodeCommands;
use crate::node_facts;
use crate::node_report::NodeReporter;
use crate::slow_report;
use crate::stall::STALL_DURATION;
use crate::starting_http::StartingHttp;
use crate::table_report;

/// Interval at which samples are moved into their buckets, so that they do not pile up while no client reads the metrics.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

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
            metric_help::describe();
            metrics_process::Collector::default().describe();
        })
        .map_err(|error| error.to_string())
}

#[derive(Clone)]
struct Context {
    prometheus: PrometheusHandle,
    record_stats: Arc<dyn Fn() + Send + Sync>,
    reporter: NodeReporter,
    up: Arc<AtomicBool>,
}

/// A running HTTP server.
pub struct HttpServer {
    address: SocketAddr,
    up: Arc<AtomicBool>,
    stop: watch::Sender<bool>,
}

impl HttpServer {
    /// Takes over the server of the start and serves all routes. `record_stats` is called before metrics are read. `reporter` serves
    /// `/health` and `/node`, `commands` serves `POST /node/…`. `control` is `None` if the node is not part of a cluster.
    pub fn start(
        starting: StartingHttp,
        prometheus: PrometheusHandle,
        record_stats: Arc<dyn Fn() + Send + Sync>,
        reporter: NodeReporter,
        commands: NodeCommands,
        control: Option<AdminApi>,
    ) -> HttpServer {
        let stopped = starting.stop.subscribe();
        tokio::spawn(upkeep(prometheus.clone(), stopped.clone()));
        tokio::spawn(reporter.clone().watch_health(stopped.clone()));
        let up = Arc::new(AtomicBool::new(true));
        let engine = reporter.engine.clone();
        let console = Console::new(
            reporter.clone(),
            control.clone(),
            up.clone(),
            starting.address.port(),
        );
        tokio::spawn(
            console
                .clone()
                .sample(prometheus.clone(), record_stats.clone(), stopped.clone()),
        );
        let context = Context {
            prometheus,
            record_stats,
            reporter: reporter.clone(),
            up: up.clone(),
        };
        let router = Router::new()
            .route("/health", get(ready))
            .route("/health/live", get(live))
            .route("/health/ready", get(ready))
            .route("/metrics", get(metrics))
            .with_state(context)
            .merge(node_facts::router(reporter.engine.clone()))
            .merge(reporter.clone().router(up.clone()))
            .merge(slow_report::router(
                reporter.slow_requests.clone(),
                commands.authenticator(),
            ))
            .merge(commands.router())
            .merge(table_report::router(engine))
            .merge(console.router())
            .merge(control.map(AdminApi::router).unwrap_or_default());
        starting.answer_by(router);
        let StartingHttp { address, stop, .. } = starting;
        HttpServer { address, up, stop }
    }

    /// Returns the address on which the server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Makes `/health` report from now on that the node is stopping.
    pub fn set_stopping(&self) {
        self.up.store(false, Ordering::Relaxed);
    }

    /// Stops the server.
    pub fn stop(self) {
        let _ = self.stop.send(true);
    }
}

async fn upkeep(prometheus: PrometheusHandle, mut stopped: watch::Receiver<bool>) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(UPKEEP_INTERVAL) => prometheus.run_upkeep(),
            _ = stopped.changed() => return,
        }
    }
}

/// Answers 200 as long as the process runs. Restarting a node does not help if its store is unreachable.
async fn live() -> impl IntoResponse {
    as_json(&json!({ "status": "up" }))
}

/// Reports whether this node is ready for clients. The response lists the reasons if not, and the warnings for the operator.
async fn ready(State(context): State<Context>) -> impl IntoResponse {
    let troubles = context.reporter.troubles();
    let (code, mut body) = match context.up.load(Ordering::Relaxed) {
        true if troubles.is_empty() => (StatusCode::OK, json!({ "status": "up" })),
        true => (
            StatusCode::SERVICE_UNAVAILABLE,
            json!({ "status": "failing", "troubles": troubles }),
        ),
        false => (StatusCode::SERVICE_UNAVAILABLE, json!({ "status": "stopping" })),
    };
    let warnings = context.reporter.warnings();
    if let Some(body) = body.as_object_mut().filter(|_| !warnings.is_empty()) {
        body.insert("warnings".to_owned(), json!(warnings));
    }
    (code, as_json(&body))
}

fn as_json(body: &Value) -> impl IntoResponse + use<> {
    ([(header::CONTENT_TYPE, "application/json")], format!("{body}\n"))
}

async fn metrics(State(context): State<Context>) -> impl IntoResponse {
    (context.record_stats)();
    context.reporter.watched.record();
    metrics_process::Collector::default().collect();
    let is_ready = context.up.load(Ordering::Relaxed) && context.reporter.troubles().is_empty();
    ::metrics::gauge!("helenus_ready").set(f64::from(u8::from(is_ready)));
    let mut text = context.prometheus.render();
    let engine = &context.reporter.engine;
    figure_metrics::write_statements(&mut text, &engine.figures);
    figure_metrics::write_tables(&mut text, &engine.figures, &engine.schema());
    if let Some(bucket) = engine.store().bucket_stats() {
        figure_metrics::write_bucket(&mut text, &bucket);
    }
    let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    (kind, text)
}
