//! The cluster over HTTP, for `nodetool`: `GET /cluster` shows it in JSON, `POST /cluster/drain` has this node hand its tablets over and
//! leave.
//!
//! Whose commands are taken is told in [`admin_auth`](super::admin_auth).

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::{get, post};

use helenus_cluster::{AgentHandle, AgentState, HostId, NodeState, TabletInfo};
use helenus_query::engine::Engine;
use serde_json::{Value, json};

use super::admin_auth::{AdminAuthenticator, Refusal};
use crate::rpc::secret::Secret;

/// The cluster as this node knows it.
#[derive(Clone)]
pub struct AdminApi {
    agent: AgentHandle,
    here: HostId,
    engine: Arc<Engine>,
    authenticator: AdminAuthenticator,
}

impl AdminApi {
    pub(super) fn new(agent: AgentHandle, here: HostId, engine: Arc<Engine>, secret: Secret) -> AdminApi {
        AdminApi {
            agent,
            here,
            engine,
            authenticator: AdminAuthenticator::new(secret),
        }
    }

    /// What `GET /cluster` answers.
    pub(crate) fn report(&self) -> Value {
        let version = self.engine.schema().version.to_string();
        report(&self.agent, self.here, &version)
    }

    pub(crate) fn router(self) -> Router {
        Router::new()
            .route("/cluster", get(show))
            .route("/cluster/challenge", get(challenge))
            .route("/cluster/drain", post(drain))
            .with_state(self)
    }
}

async fn show(State(control): State<AdminApi>) -> impl IntoResponse {
    let report = control.report();
    let json = [(header::CONTENT_TYPE, "application/json")];
    (json, format!("{report:#}\n"))
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

/// Nodes and tablets as this node knows them.
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
        "tablets": view.tablets().iter().map(tablet).collect::<Vec<Value>>(),
    })
}

fn tablet(tablet: &TabletInfo) -> Value {
    json!({
        "id": tablet.id.0,
        // As text: JSON's numbers lose such large ones.
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
