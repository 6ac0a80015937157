//! The HTTP server: `/health`, `/metrics`, `/node` and the console, and `/cluster` for a node of a cluster.
//!
//! Routes that report the state of the node belong in [`reports`]. Routes that make the node do something belong in [`commands`], with those
//! that report the state of the changed part. The web page and its interface are in [`console`]. The routes of `/cluster` are in
//! `node/admin_api.rs`. Until the node is ready, [`starting`] serves requests.

pub mod commands;
mod console;
pub mod reports;
mod starting;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use serde_json::{Value, json};
use tokio::sync::watch;

pub use starting::StartingHttp;

use crate::metrics::{PrometheusHandle, computed};
use crate::node::AdminApi;
use commands::NodeCommands;
use console::Console;
use reports::{NodeReporter, facts, slow_statements, tables};

/// Interval at which samples are moved into their buckets, so that they do not pile up while no client reads the metrics.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

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
            .merge(facts::router(reporter.engine.clone()))
            .merge(reporter.clone().router(up.clone()))
            .merge(slow_statements::router(
                reporter.slow_requests.clone(),
                commands.authenticator(),
            ))
            .merge(commands.router())
            .merge(tables::router(engine))
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
    computed::write_statements(&mut text, engine.metrics());
    computed::write_tables(&mut text, engine.metrics(), &engine.schema());
    computed::write_change_logs(&mut text, &engine.recent_change_logs());
    if let Some(bucket) = engine.store().bucket_stats() {
        computed::write_bucket(&mut text, &bucket);
    }
    let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    (kind, text)
}
