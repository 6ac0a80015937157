//! The cluster over HTTP, for `nodetool`: `GET /cluster` shows it in JSON, `POST /cluster/drain` has this node hand its tablets over and
//! leave.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::{get, post};

use helenus_cluster::{AgentHandle, AgentState, HostId, NodeState, TabletInfo, TabletState};
use helenus_query::engine::Engine;
use serde_json::{Value, json};

/// The cluster as this node knows it.
#[derive(Clone)]
pub struct Control {
    agent: AgentHandle,
    here: HostId,
    engine: Arc<Engine>,
}

impl Control {
    pub(super) fn new(agent: AgentHandle, here: HostId, engine: Arc<Engine>) -> Control {
        Control { agent, here, engine }
    }

    pub(crate) fn router(self) -> Router {
        Router::new()
            .route("/cluster", get(show))
            .route("/cluster/drain", post(drain))
            .with_state(self)
    }
}

async fn show(State(control): State<Control>) -> impl IntoResponse {
    let version = control.engine.schema().version.to_string();
    let report = report(&control.agent, control.here, &version);
    let json = [(header::CONTENT_TYPE, "application/json")];
    (json, format!("{report:#}\n"))
}

async fn drain(State(control): State<Control>) -> (StatusCode, String) {
    match control.agent.drain().await {
        Ok(()) => (StatusCode::OK, "drained\n".to_owned()),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
    }
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
                "name": node.name,
                "here": node.host_id == here,
                "alive": node.alive,
                "state": match node.state {
                    NodeState::Normal => "normal",
                    NodeState::Leaving => "leaving",
                },
                "cql_address": node.cql_address.to_string(),
                "rpc_address": node.rpc_address,
                "data_center": node.data_center,
                "rack": node.rack,
                "software_version": node.software_version,
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
    let state = match &tablet.state {
        TabletState::Stable => "stable".to_owned(),
        TabletState::Moving { to } => format!("moving to {to}"),
        TabletState::Splitting => "splitting".to_owned(),
        TabletState::Merging => "merging".to_owned(),
    };
    json!({
        "id": tablet.id.0,
        // As text: JSON's numbers lose such large ones.
        "first_token": tablet.tokens.first.to_string(),
        "last_token": tablet.tokens.last.to_string(),
        "owner": tablet.owner.map(|owner| owner.to_string()),
        "epoch": tablet.epoch,
        "state": state,
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
