//! Settings over HTTP, for `nodetool`: `GET /node/settings`, `POST /node/settings` with a body of `NAME VALUE`, and `POST
//! /node/reload_config`, which reads the file of settings again. Values that are secrets are not shown. Guardrails have `GET
//! /node/guardrails` and `POST /node/guardrails`, whose body has a line `NAME=VALUE` for each setting to change.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use serde_json::{Value, json};

use crate::http::reports::as_json;
use crate::node::admin_auth::{AdminAuthenticator, Refusal};
use crate::settings::{LiveSettings, Reloaded, SettingState};

#[derive(Clone)]
struct Context {
    settings: Arc<dyn LiveSettings>,
    authenticator: AdminAuthenticator,
}

/// Returns the routes of the requests above. `authenticator` is that of the node's other commands.
pub(crate) fn router(settings: Arc<dyn LiveSettings>, authenticator: AdminAuthenticator) -> Router {
    Router::new()
        .route("/node/settings", get(show).post(set))
        .route("/node/guardrails", get(show_guardrails).post(set_guardrails))
        .route("/node/reload_config", post(reload))
        .with_state(Context {
            settings,
            authenticator,
        })
}

async fn show(State(context): State<Context>) -> impl IntoResponse {
    let setting = |setting: SettingState| {
        json!({
            "name": setting.name,
            "value": setting.value,
            "default": setting.default,
            "live": setting.is_live,
        })
    };
    let settings: Vec<Value> = context.settings.settings().into_iter().map(setting).collect();
    as_json(&settings.into())
}

async fn set(
    State(context): State<Context>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    body: String,
) -> Result<&'static str, Refusal> {
    let command = format!("POST /node/settings {body}");
    context.authenticator.check(command.trim_end(), peer, &headers)?;
    let refused = |why: String| (StatusCode::BAD_REQUEST, format!("{why}\n"));
    let words = body.trim().split_once(' ');
    let (name, value) = words.ok_or_else(|| refused("the body is not NAME VALUE".to_owned()))?;
    context.settings.set(name, value.trim()).map_err(refused)?;
    Ok("set\n")
}

async fn show_guardrails(State(context): State<Context>) -> impl IntoResponse {
    let setting = |(name, value)| json!({ "name": name, "value": value });
    let settings: Vec<Value> = context.settings.guardrails().into_iter().map(setting).collect();
    as_json(&settings.into())
}

async fn set_guardrails(
    State(context): State<Context>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    body: String,
) -> Result<&'static str, Refusal> {
    let command = format!("POST /node/guardrails {body}");
    context.authenticator.check(command.trim_end(), peer, &headers)?;
    let refused = |why: String| (StatusCode::BAD_REQUEST, format!("{why}\n"));
    let lines = body.lines().map(|line| line.split_once('='));
    let changes: Option<Vec<(&str, &str)>> = lines.collect();
    let changes = changes.ok_or_else(|| refused("a line of the body is not NAME=VALUE".to_owned()))?;
    context.settings.set_guardrails(&changes).map_err(refused)?;
    Ok("set\n")
}

async fn reload(
    State(context): State<Context>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
) -> Result<impl IntoResponse, Refusal> {
    let command = "POST /node/reload_config";
    context.authenticator.admit(command, peer, &headers)?;
    let settings = context.settings.clone();
    // A reload reads files, which blocks.
    let reloaded = helenus_tablet::threads::spawn_blocking(move || settings.reload()).await;
    let reloaded = reloaded.unwrap_or_else(|error| Err(error.to_string()));
    let Reloaded { changed, waiting } =
        reloaded.map_err(|why| (StatusCode::BAD_REQUEST, format!("{why}\n")))?;
    Ok(as_json(&json!({ "changed": changed, "waiting": waiting })))
}
