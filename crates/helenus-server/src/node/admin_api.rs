//! The cluster over HTTP, for `nodetool`. `GET /cluster` returns it as JSON, and `GET /cluster/loads` the bytes of each node. `POST
//! /cluster/drain` makes this node hand over its tablets and leave. `POST /cluster/forget` forgets a node that is gone.
//!
//! [`admin_auth`](super::admin_auth) decides which callers' commands are accepted.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::{get, post};

use helenus_cluster::{AgentHandle, AgentState, HostId, LostNode, NodeState, TabletInfo, loads};
use helenus_query::engine::Engine;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::StoreDocuments;
use super::admin_auth::{AdminAuthenticator, Refusal};
use crate::rpc::secret::Secret;

/// The cluster as this node knows it.
#[derive(Clone)]
pub struct AdminApi {
    agent: AgentHandle,
    here: HostId,
    engine: Arc<Engine>,
    documents: Arc<StoreDocuments>,
    authenticator: AdminAuthenticator,
}

impl AdminApi {
    pub(super) fn new(agent: AgentHandle, here: HostId, engine: Arc<Engine>, secret: Secret) -> AdminApi {
        let documents = Arc::new(StoreDocuments::new(engine.store().clone()));
        AdminApi {
            agent,
            here,
            engine,
            documents,
            authenticator: AdminAuthenticator::new(secret),
        }
    }

    /// Returns the response to `GET /cluster`.
    pub(crate) fn report(&self) -> Value {
        let version = self.engine.schema().version.to_string();
        report(&self.agent, self.here, &version)
    }

    pub(crate) fn router(self) -> Router {
        Router::new()
            .route("/cluster", get(show))
            .route("/cluster/loads", get(show_loads))
            .route("/cluster/challenge", get(challenge))
            .route("/cluster/forget", post(forget))
            .route("/cluster/drain", post(drain))
            .with_state(self)
    }
}

fn as_json(value: &Value) -> impl IntoResponse + use<> {
    let json = [(header::CONTENT_TYPE, "application/json")];
    (json, format!("{value:#}\n"))
}

async fn show(State(control): State<AdminApi>) -> impl IntoResponse {
    as_json(&control.report())
}

/// Returns the bytes of each node's tablets, from the nodes' heartbeats. Each heartbeat is read from the store.
async fn show_loads(State(control): State<AdminApi>) -> Result<impl IntoResponse, Refusal> {
    let view = control.agent.view();
    let loads = loads(control.documents.as_ref(), &view).await;
    let loads = loads.map_err(|error| (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")))?;
    let bytes = |host_id: HostId| -> u64 {
        let tablets = view.tablets_of(host_id);
        tablets
            .filter_map(|tablet| loads.get(&tablet.id))
            .map(|load| load.bytes)
            .sum()
    };
    let nodes = view.nodes().iter();
    let report: Map<String, Value> = nodes
        .map(|node| (node.host_id.to_string(), bytes(node.host_id).into()))
        .collect();
    Ok(as_json(&report.into()))
}

/// Forgets a node whose lease has ended. The body is its host id.
async fn forget(
    State(control): State<AdminApi>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    body: String,
) -> Result<&'static str, Refusal> {
    let command = format!("POST /cluster/forget {body}");
    control.authenticator.check(command.trim_end(), peer, &headers)?;
    let refused = |why: String| (StatusCode::BAD_REQUEST, format!("{why}\n"));
    let id = Uuid::parse_str(body.trim()).map_err(|_| refused(format!("{:?} is no host id", body.trim())))?;
    tracing::info!(%peer, command, "a command is carried out");
    let forgotten = control.agent.forget_node(HostId(id)).await;
    forgotten.map_err(|error| refused(error.to_string()))?;
    Ok("forgotten\n")
}

async fn challenge(State(control): State<AdminApi>) -> String {
    control.authenticator.challenge()
}

async fn drain(
    State(control): State<AdminApi>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
) -> Result<&'static str, Refusal> {
    control
        .authenticator
        .check("POST /cluster/drain", peer, &headers)?;
    tracing::info!(%peer, "drain requested");
    let drained = control.agent.drain().await;
    drained.map_err(|error| (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")))?;
    Ok("drained\n")
}

/// Returns the nodes and the tablets as this node knows them.
fn report(agent: &AgentHandle, here: HostId, schema_version: &str) -> Value {
    let view = agent.view();
    let nodes: Vec<Value> = agent
        .status()
        .iter()
        .map(|status| {
            let node = &status.node;
            json!({
                "host_id": node.host_id.to_string(),
                "name": node.description.name,
                "here": node.host_id == here,
                "alive": node.alive,
                "state": match node.state {
                    NodeState::Normal => "normal",
                    NodeState::Leaving => "leaving",
                },
                "cql_address": node.description.cql_address.to_string(),
                "rpc_address": node.description.rpc_address,
                "data_center": node.description.data_center,
                "rack": node.description.rack,
                "software_version": node.description.software_version,
                "tablets": status.tablet_count,
                "owns": status.owned_share,
            })
        })
        .collect();
    json!({
        "cluster_name": view.cluster_name(),
        "version": view.version(),
        "schema_version": schema_version,
        "state": state(&agent.state()),
        "nodes": nodes,
        "lost": view.lost().iter().map(lost).collect::<Vec<Value>>(),
        "tablets": view.tablets().iter().map(tablet).collect::<Vec<Value>>(),
    })
}

/// Returns the report of a node whose lease has ended.
fn lost(node: &LostNode) -> Value {
    json!({
        "host_id": node.host_id.to_string(),
        "name": node.description.name,
        "alive": false,
        "state": "normal",
        "cql_address": node.description.cql_address.to_string(),
        "rpc_address": node.description.rpc_address,
        "data_center": node.description.data_center,
        "rack": node.description.rack,
        "software_version": node.description.software_version,
        "lost_at_ms": node.lost_at_ms,
        "tablets": 0,
        "owns": 0.0,
    })
}

fn tablet(tablet: &TabletInfo) -> Value {
    json!({
        "id": tablet.id.0,
        // Tokens are strings, because many JSON parsers lose digits of such large numbers.
        "first_token": tablet.tokens.first.to_string(),
        "last_token": tablet.tokens.last.to_string(),
        "owner": tablet.owner.map(|owner| owner.to_string()),
        "epoch": tablet.epoch,
        "state": tablet.state.to_string(),
    })
}

fn state(state: &AgentState) -> String {
    match state {
        AgentState::Joining(why) => format!("joining: {why}"),
        AgentState::Serving => "serving".to_owned(),
        AgentState::Leaving => "leaving".to_owned(),
        AgentState::Left => "left".to_owned(),
        AgentState::Failed(error) => format!("failed: {error}"),
    }
}
