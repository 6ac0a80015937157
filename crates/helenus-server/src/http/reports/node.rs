//! Reports of a node, served by every node. `GET /node` returns its state as JSON, for `nodetool info`. `GET /node/clients` returns its
//! clients, for `nodetool clientstats`.
//!
//! A node whose store is a folder also answers `GET /cluster` here, as a cluster of one node. For nodes with a shared store,
//! `node::admin_api` does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::response::IntoResponse;
use axum::routing::get;
use helenus_cluster::{AgentHandle, AgentState};
use helenus_query::engine::Engine;
use helenus_query::engine::clients::Client;
use helenus_tablet::{StoreStats, TabletStats, machine_memory_bytes, resident_memory_bytes};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::as_json;
use super::watched::Watched;
use crate::bucket_cost::{BucketCost, BucketCostMeter};
use crate::metrics::Metrics;
use crate::transport::{SlowRequestLog, Transport};

/// The parts of a node from which its report is made.
#[derive(Clone)]
pub struct NodeReporter {
    pub engine: Arc<Engine>,
    /// The node's agent in its cluster. `None` if the node is not part of a cluster.
    pub agent: Option<AgentHandle>,
    /// The meter of the bucket's cost. `None` if the store is not in a bucket.
    pub bucket_cost: Option<Arc<BucketCostMeter>>,
    /// Metrics of the native transport.
    pub metrics: Arc<Metrics>,
    pub transport: Transport,
    pub slow_requests: SlowRequestLog,
    pub watched: Watched,
    /// Time at which the process began.
    pub started: Instant,
}

/// Interval at which the node checks its own health.
const HEALTH_INTERVAL: Duration = Duration::from_millis(500);

/// The state of a handler: the reporter, and true while the node serves clients.
type Served = (NodeReporter, Arc<AtomicBool>);

impl NodeReporter {
    /// Returns the routes of the reports. `serves_clients` is false once the node is stopping.
    pub(crate) fn router(self, serves_clients: Arc<AtomicBool>) -> Router {
        let mut router = Router::new()
            .route("/node", get(show))
            .route("/node/clients", get(show_clients));
        if self.agent.is_none() && !self.engine.store().is_read_only() {
            router = router
                .route("/cluster", get(show_single))
                .route("/cluster/loads", get(show_single_load));
        }
        router.with_state((self, serves_clients))
    }

    /// Returns a description of this node as a cluster of one, in the format of a cluster of several.
    pub(crate) fn single(&self, serves_clients: bool) -> Value {
        let node = self.engine.node();
        let tablets = self.engine.store_stats().tablets;
        let here = json!({
            "host_id": node.host_id.to_string(),
            "name": Value::Null,
            "here": true,
            "alive": true,
            "state": if serves_clients { "normal" } else { "leaving" },
            "cql_address": node.native_address.to_string(),
            "rpc_address": Value::Null,
            "data_center": node.data_center,
            "rack": node.rack,
            "software_version": env!("CARGO_PKG_VERSION"),
            "tablets": tablets.len(),
            "owns": 1.0,
        });
        let tablet = |tablet: &TabletStats| {
            json!({
                "id": tablet.id,
                "first_token": tablet.tokens.first.to_string(),
                "last_token": tablet.tokens.last.to_string(),
                "owner": node.host_id.to_string(),
                "epoch": Value::Null,
                "state": "open",
            })
        };
        json!({
            "cluster_name": node.cluster_name,
            "version": Value::Null,
            "schema_version": self.engine.schema().version.to_string(),
            "state": if serves_clients { "serving" } else { "leaving" },
            "nodes": [here],
            "lost": [],
            "tablets": tablets.iter().map(tablet).collect::<Vec<Value>>(),
        })
    }

    /// Returns this node's state.
    pub(crate) fn report(&self, is_up: bool) -> Value {
        let node = self.engine.node();
        let stats = self.engine.store_stats();
        let serves_clients = is_up && self.transport.is_enabled();
        let tokens: Vec<String> = self.engine.tokens().iter().map(i64::to_string).collect();
        json!({
            "host_id": node.host_id.to_string(),
            "data_center": node.data_center,
            "rack": node.rack,
            "release_version": node.release_version,
            "software_version": env!("CARGO_PKG_VERSION"),
            "in_cluster": self.is_in_cluster(),
            "state": self.state(is_up),
            "serves_clients": serves_clients,
            "warnings": self.warnings(),
            "read_only": self.engine.store().is_read_only(),
            "generation_s": self.engine.generation_s(),
            "uptime_s": self.started.elapsed().as_secs(),
            "memory_bytes": resident_memory_bytes(),
            "memory_bytes_max": machine_memory_bytes(),
            "data_bytes": sum(&stats, |tablet| tablet.data_bytes),
            "server_errors": self.metrics.server_errors(),
            "compactions": compactions(&stats),
            "row_cache": row_cache(&stats),
            "block_cache": block_cache(&stats),
            // Tokens are strings, because many JSON parsers lose digits of such large numbers.
            "tokens": tokens,
            "bucket": self.bucket_cost.as_ref().map(|meter| bucket(meter.cost())),
        })
    }

    /// Returns the reasons why clients should not use this node at present. Empty if all is well.
    pub(crate) fn troubles(&self) -> Vec<String> {
        let mut troubles = self.engine.store().troubles();
        if !self.transport.is_enabled() {
            troubles.push("clients are turned away: nodetool disablebinary".to_owned());
        }
        troubles.extend(self.unready());
        troubles
    }

    /// Returns the states that need an operator although clients are served.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.watched.warnings(&self.engine)
    }

    /// Logs once at WARN when the node becomes unready, and at INFO when it is ready again. Runs until `stopped` changes.
    pub(crate) async fn watch_health(self, mut stopped: watch::Receiver<bool>) {
        let mut was_ready = true;
        loop {
            tokio::select! {
                () = tokio::time::sleep(HEALTH_INTERVAL) => {}
                _ = stopped.changed() => return,
            }
            // A node that leaves on purpose is not reported as unready.
            let leaves = self
                .agent
                .as_ref()
                .is_some_and(|agent| matches!(agent.state(), AgentState::Leaving | AgentState::Left));
            let troubles = match leaves {
                true => Vec::new(),
                false => self.troubles(),
            };
            match (was_ready, troubles.is_empty()) {
                (true, false) => {
                    tracing::warn!(
                        troubles = troubles.join("; "),
                        "the node is not ready: clients should use other nodes"
                    );
                }
                (false, true) => tracing::info!("the node is ready again"),
                _ => {}
            }
            was_ready = troubles.is_empty();
        }
    }

    /// Returns the reason why the node serves no tablets at present. `None` if it does.
    fn unready(&self) -> Option<String> {
        let agent = self.agent.as_ref()?;
        let answered = agent.renewal_error();
        match agent.state() {
            AgentState::Joining(why) => {
                let answered = answered.map_or_else(String::new, |error| format!("; the store: {error}"));
                Some(format!("the node joins the cluster: {why}{answered}"))
            }
            AgentState::Leaving | AgentState::Left => Some("the node leaves the cluster".to_owned()),
            AgentState::Failed(error) => Some(format!("the node is not in the cluster: {error}")),
            AgentState::Serving if agent.may_serve() => None,
            AgentState::Serving => {
                let answered = answered.unwrap_or_else(|| "the store has not answered in time".to_owned());
                Some(format!("the node's lease has run out: {answered}"))
            }
        }
    }

    /// Returns the mode of the node, as Cassandra's tools name it.
    fn state(&self, is_up: bool) -> &'static str {
        match self.agent.as_ref().map(AgentHandle::state) {
            Some(AgentState::Joining(_) | AgentState::Failed(_)) => "JOINING",
            Some(AgentState::Leaving) => "LEAVING",
            Some(AgentState::Left) => "DECOMMISSIONED",
            None | Some(AgentState::Serving) if is_up => "NORMAL",
            None | Some(AgentState::Serving) => "DRAINING",
        }
    }

    /// Returns true if the node has a valid lease, or is not part of a cluster.
    fn is_in_cluster(&self) -> bool {
        self.agent.as_ref().is_none_or(AgentHandle::may_serve)
    }
}

async fn show(State((reporter, serves_clients)): State<Served>) -> impl IntoResponse {
    as_json(&reporter.report(serves_clients.load(Ordering::Relaxed)))
}

async fn show_clients(State((reporter, _)): State<Served>) -> impl IntoResponse {
    let clients = reporter.engine.clients.connected();
    as_json(&clients.iter().map(|client| client_report(client)).collect())
}

/// Returns a client as `system_views.clients` shows it. Most fields are null before STARTUP.
fn client_report(client: &Client) -> Value {
    let session = client.session();
    let session = session.as_ref();
    let option = |name: &str| session.and_then(|session| session.options.get(name));
    json!({
        "address": client.address.ip().to_string(),
        "port": client.address.port(),
        "ssl_protocol": client.encryption.as_ref().map(|(protocol, _)| protocol),
        "ssl_cipher_suite": client.encryption.as_ref().map(|(_, suite)| suite),
        "protocol_version": session.map(|session| session.protocol_version),
        "user": session.and_then(|session| session.user.as_deref()).unwrap_or("anonymous"),
        "keyspace": session.and_then(|session| session.keyspace.as_deref()),
        "requests": client.requests(),
        "driver_name": option("DRIVER_NAME"),
        "driver_version": option("DRIVER_VERSION"),
        "options": session.map(|session| &session.options),
    })
}

async fn show_single(State((reporter, serves_clients)): State<Served>) -> impl IntoResponse {
    as_json(&reporter.single(serves_clients.load(Ordering::Relaxed)))
}

async fn show_single_load(State((reporter, _)): State<Served>) -> impl IntoResponse {
    let bytes = sum(&reporter.engine.store_stats(), |tablet| tablet.data_bytes);
    let here = reporter.engine.node().host_id.to_string();
    as_json(&json!({ here: bytes }))
}

fn sum(stats: &StoreStats, field: fn(&TabletStats) -> u64) -> u64 {
    stats.tablets.iter().map(field).sum()
}

fn compactions(stats: &StoreStats) -> Value {
    json!({
        "running": stats.compactions_running,
        "ended": sum(stats, |tablet| tablet.compactions_ended),
        "bytes": stats.compacted_bytes,
        // Number of tablets with files that wait for compaction.
        "pending": stats.tablets.iter().filter(|tablet| tablet.level0_files > 0).count(),
        "sorted_runs": sum(stats, |tablet| tablet.sorted_runs),
        "flushes": stats.flushes,
    })
}

fn row_cache(stats: &StoreStats) -> Value {
    json!({
        "entries": stats.row_cache.rows,
        "bytes": stats.row_cache.bytes,
        "capacity_bytes": stats.row_cache.capacity_bytes,
        "hits": stats.totals.row_cache_hits,
        "misses": stats.totals.row_cache_misses,
    })
}

/// Returns the figures of the block cache. The number and the size of its entries are not known.
fn block_cache(stats: &StoreStats) -> Value {
    json!({
        "capacity_bytes": stats.block_cache_bytes,
        "hits": stats.block_cache_hits,
        "misses": stats.block_cache_misses,
    })
}

/// Returns the rates and the cost of a bucket. The rates are null in the first seconds, the cost in the first five minutes.
fn bucket(cost: Option<BucketCost>) -> Value {
    json!({
        "requests_per_second": cost.map(|cost| Value::from_iter(cost.rates.by_kind())),
        "read_bytes_per_second": cost.map(|cost| cost.rates.read_bytes),
        "dollars_per_month": cost.and_then(|cost| cost.settled_dollars()),
    })
}
