//! The web console at `/console`. It is a page in plain HTML, CSS and JavaScript that is part of the binary, and a JSON interface under
//! `/console/api`.
//!
//! The page shows the contents of `/cluster`, of `/metrics` and of the tables of `system_views`. It reads those tables by statements of the
//! role that has logged in, so that the role sees no more than in `cqlsh`. [`access`] decides which requests are allowed.

mod access;
mod assets;
mod cluster;
mod figures;
#[cfg(test)]
mod figures_tests;
mod history;
#[cfg(test)]
mod history_tests;
mod login_limit;
mod partitions;
mod requests;
mod sessions;
#[cfg(test)]
mod sessions_tests;
mod slow_statements;
mod statement;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::response::Redirect;
use axum::routing::{get, post};
use metrics_exporter_prometheus::PrometheusHandle;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};

use crate::http::reports::NodeReporter;
use crate::node::AdminApi;
use access::Access;
use cluster::TabletRates;
use figures::Sampler;
use history::History;

/// Interval at which figures are added to the history.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(5);
/// Maximum number of statements of the console that run at the same time.
const STATEMENTS_MAX: usize = 4;

/// The state of the console's handlers.
#[derive(Clone)]
pub(crate) struct Console {
    reporter: NodeReporter,
    /// The cluster's requests. `None` if the node is not part of a cluster.
    control: Option<AdminApi>,
    serves_clients: Arc<AtomicBool>,
    access: Arc<Access>,
    history: Arc<Mutex<History>>,
    tablet_rates: Arc<Mutex<TabletRates>>,
    statements: Arc<Semaphore>,
}

impl Console {
    /// Returns the console. `port` is that of the HTTP server. `serves_clients` is false once the node is stopping.
    pub fn new(
        reporter: NodeReporter,
        control: Option<AdminApi>,
        serves_clients: Arc<AtomicBool>,
        port: u16,
    ) -> Console {
        Console {
            access: Arc::new(Access::new(reporter.engine.clone(), port)),
            reporter,
            control,
            serves_clients,
            history: Arc::new(Mutex::new(History::new(SAMPLE_INTERVAL))),
            tablet_rates: Arc::default(),
            statements: Arc::new(Semaphore::new(STATEMENTS_MAX)),
        }
    }

    pub fn router(self) -> Router {
        let api = Router::new()
            .route("/console/api/session", get(requests::session))
            .route("/console/api/login", post(requests::log_in))
            .route("/console/api/logout", post(requests::log_out))
            .route("/console/api/cluster", get(requests::cluster))
            .route("/console/api/history", get(requests::history))
            .route("/console/api/partitions", get(partitions::show))
            .route("/console/api/slow_statements", get(slow_statements::show))
            .route("/console/api/cql", post(statement::run))
            .layer(from_fn_with_state(self.access.clone(), access::guard))
            .with_state(self);
        Router::new()
            .route("/", get(|| async { Redirect::temporary("/console/") }))
            .route("/console", get(|| async { Redirect::temporary("/console/") }))
            .route("/console/", get(assets::page))
            .route("/console/assets/{name}", get(assets::asset))
            .merge(api)
    }

    /// Adds figures to the history until the server stops. `record_stats` updates the metrics first.
    pub async fn sample(
        self,
        prometheus: PrometheusHandle,
        record_stats: Arc<dyn Fn() + Send + Sync>,
        mut stopped: watch::Receiver<bool>,
    ) {
        let mut sampler = Sampler::default();
        let mut ticks = tokio::time::interval(SAMPLE_INTERVAL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                _ = stopped.changed() => return,
            }
            record_stats();
            let figures = sampler.figures(&prometheus.render());
            self.history
                .lock()
                .add(self.reporter.engine.clock_us() / 1_000_000, figures);
            self.tablet_rates.lock().add(&self.reporter.engine.store_stats());
        }
    }
}
