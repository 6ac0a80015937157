//! Commands to a node over HTTP, for `nodetool`. Nodes of every kind accept them:
//!
//! - `POST /node/flush` and `POST /node/compact`;
//! - `POST /node/binary` with a body of `on` or `off`, for the port of CQL clients;
//! - `POST /node/stop`;
//! - `POST /node/log_level` with a body of `TARGET LEVEL`, `LEVEL`, or nothing for the levels at the start of the process;
//! - `POST /node/audit_log/enable` and `/disable`.
//!
//! Other commands have modules by topic: [`backups`], [`full_query_log`], [`partition_sampling`], [`settings`] and [`snapshots`]. Each has a
//! function `router`, which [`NodeCommands`] merges into its routes. Commands to the cluster are in `node/admin_api.rs`.
//!
//! The authorisation of a command covers its method, path and body.
//!
//! [`admin_auth`](crate::node::admin_auth) decides which callers' commands are accepted. A node with a folder and without `cluster_secret`
//! accepts commands from its own machine only.

mod backups;
mod full_query_log;
mod json_body;
mod partition_sampling;
mod settings;
mod snapshots;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use helenus_query::engine::Engine;
use serde_json::json;
use tokio::sync::Notify;

use crate::http::reports::as_json;
use crate::logs::audit::{AuditLog, AuditPatch};
use crate::logs::full_query_log::FullQueryLog;
use crate::node::admin_auth::{AdminAuthenticator, Refusal};
use crate::rpc::secret::Secret;
use crate::settings::{LiveSettings, LogLevel, LogLevels};
use crate::transport::Transport;

/// The logs of requests that commands switch on and off.
#[derive(Clone)]
pub struct RequestLogs {
    pub audit: Arc<AuditLog>,
    pub full_query: Arc<FullQueryLog>,
}

/// The commands of a node.
#[derive(Clone)]
pub struct NodeCommands {
    engine: Arc<Engine>,
    log_levels: Arc<dyn LogLevels>,
    settings: Arc<dyn LiveSettings>,
    request_logs: RequestLogs,
    transport: Transport,
    stop_requested: Arc<Notify>,
    authenticator: AdminAuthenticator,
}

impl NodeCommands {
    /// Returns the commands of a node. `secret` authenticates commands from other machines; `None` refuses those. `stop_requested` is
    /// notified by a command to stop the node.
    pub fn new(
        engine: Arc<Engine>,
        log_levels: Arc<dyn LogLevels>,
        settings: Arc<dyn LiveSettings>,
        request_logs: RequestLogs,
        transport: Transport,
        stop_requested: Arc<Notify>,
        secret: Option<Secret>,
    ) -> NodeCommands {
        NodeCommands {
            engine,
            log_levels,
            settings,
            request_logs,
            transport,
            stop_requested,
            authenticator: AdminAuthenticator::new(secret.unwrap_or_else(Secret::random)),
        }
    }

    /// Returns the authenticator of the node's commands.
    pub(crate) fn authenticator(&self) -> AdminAuthenticator {
        self.authenticator.clone()
    }

    pub(crate) fn router(self) -> Router {
        let settings = settings::router(self.settings.clone(), self.authenticator.clone());
        let sampling = partition_sampling::router(self.engine.clone(), self.authenticator.clone());
        let full_query_log =
            full_query_log::router(self.request_logs.full_query.clone(), self.authenticator.clone());
        let snapshots = snapshots::router(self.engine.clone(), self.authenticator.clone());
        let backups = backups::router(
            self.engine.clone(),
            self.settings.clone(),
            self.authenticator.clone(),
        );
        Router::new()
            .route("/node/challenge", get(challenge))
            .route("/node/flush", post(flush))
            .route("/node/compact", post(compact))
            .route("/node/binary", post(set_binary))
            .route("/node/stop", post(stop))
            .route("/node/log_level", get(log_levels).post(set_log_level))
            .route("/node/audit_log", get(audit_log))
            .route("/node/audit_log/enable", post(enable_audit_log))
            .route("/node/audit_log/disable", post(disable_audit_log))
            .with_state(self)
            .merge(settings)
            .merge(sampling)
            .merge(full_query_log)
            .merge(snapshots)
            .merge(backups)
    }
}

async fn challenge(State(commands): State<NodeCommands>) -> String {
    commands.authenticator.challenge()
}

async fn flush(
    State(commands): State<NodeCommands>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
) -> Result<&'static str, Refusal> {
    commands.authenticator.admit("POST /node/flush", peer, &headers)?;
    let flushed = commands.engine.store().flush().await;
    flushed.map_err(|error| (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")))?;
    Ok("flushed\n")
}

async fn compact(
    State(commands): State<NodeCommands>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
) -> Result<&'static str, Refusal> {
    commands
        .authenticator
        .admit("POST /node/compact", peer, &headers)?;
    let compacted = commands.engine.store().compact().await;
    compacted.map_err(|error| (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")))?;
    Ok("compacted\n")
}

async fn set_binary(
    State(commands): State<NodeCommands>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    body: String,
) -> Result<&'static str, Refusal> {
    commands
        .authenticator
        .admit(format!("POST /node/binary {body}").trim_end(), peer, &headers)?;
    match body.trim() {
        "on" => {
            let enabled = commands.transport.enable().await;
            enabled.map_err(|error| (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")))?;
        }
        "off" => commands.transport.disable().await,
        _ => return Err((StatusCode::BAD_REQUEST, "the body is not on or off\n".to_owned())),
    }
    Ok("set\n")
}

async fn stop(
    State(commands): State<NodeCommands>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
) -> Result<&'static str, Refusal> {
    commands.authenticator.admit("POST /node/stop", peer, &headers)?;
    commands.stop_requested.notify_one();
    Ok("stopping\n")
}

async fn audit_log(State(commands): State<NodeCommands>) -> impl IntoResponse {
    let options = commands.request_logs.audit.options().by_name();
    let option = |(name, value)| json!({ "name": name, "value": value });
    as_json(&options.into_iter().map(option).collect())
}

/// Enables the audit log. The body has a line `name=value` for each option that shall differ from the settings.
async fn enable_audit_log(
    State(commands): State<NodeCommands>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    body: String,
) -> Result<&'static str, Refusal> {
    let command = format!("POST /node/audit_log/enable {body}");
    commands.authenticator.admit(command.trim_end(), peer, &headers)?;
    let enabled = AuditPatch::parse(&body).and_then(|patch| commands.request_logs.audit.enable(patch));
    enabled.map_err(|why| (StatusCode::BAD_REQUEST, format!("{why}\n")))?;
    Ok("enabled\n")
}

async fn disable_audit_log(
    State(commands): State<NodeCommands>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
) -> Result<&'static str, Refusal> {
    commands
        .authenticator
        .admit("POST /node/audit_log/disable", peer, &headers)?;
    commands.request_logs.audit.disable();
    Ok("disabled\n")
}

async fn log_levels(State(commands): State<NodeCommands>) -> impl IntoResponse {
    let levels = commands.log_levels.levels();
    let level = |LogLevel { target, level }| json!({ "target": target, "level": level });
    as_json(&levels.into_iter().map(level).collect())
}

async fn set_log_level(
    State(commands): State<NodeCommands>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    body: String,
) -> Result<&'static str, Refusal> {
    commands
        .authenticator
        .admit(format!("POST /node/log_level {body}").trim_end(), peer, &headers)?;
    let words: Vec<&str> = body.split_whitespace().collect();
    let level = match words.as_slice() {
        [] => None,
        [level] => Some((None, *level)),
        [target, level] => Some((Some((*target).to_owned()), *level)),
        _ => {
            let why = "the body is not TARGET LEVEL, LEVEL or nothing\n".to_owned();
            return Err((StatusCode::BAD_REQUEST, why));
        }
    };
    let level = level.map(|(target, level)| LogLevel {
        target,
        level: level.to_owned(),
    });
    let set = commands.log_levels.set(level);
    set.map_err(|why| (StatusCode::BAD_REQUEST, format!("{why}\n")))?;
    Ok("set\n")
}
