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

use crate::node::admin_auth::{AdminAuthenticator, Refusal};
use crate::node_report::as_json;

/// A setting and its present value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingState {
    pub name: &'static str,
    pub value: String,
    /// The value of a setting that is not set.
    pub default: String,
    /// True if the setting can change while the node runs.
    pub is_live: bool,
}

/// The settings whose values a reload found changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reloaded {
    /// Settings whose new values have taken effect.
    pub changed: Vec<&'static str>,
    /// Settings whose new values take effect after a restart.
    pub waiting: Vec<&'static str>,
}

/// The settings of the process.
pub trait LiveSettings: Send + Sync {
    /// Returns all settings.
    fn settings(&self) -> Vec<SettingState>;

    /// Changes a setting until the node stops, or until the settings are read again.
    ///
    /// # Errors
    /// The reason why the setting was not changed.
    fn set(&self, name: &str, value: &str) -> Result<(), String>;

    /// Returns the settings of guardrails and their values, in the form of `system_views.settings`.
    fn guardrails(&self) -> Vec<(String, Option<String>)>;

    /// Changes all given settings of guardrails, or none of them, until the node stops or the settings are read again.
    ///
    /// # Errors
    /// The reason why no setting was changed.
    fn set_guardrails(&self, changes: &[(&str, &str)]) -> Result<(), String>;

    /// Reads the file of settings and the certificates again. The file's values replace those of [`LiveSettings::set`].
    ///
    /// # Errors
    /// The reason why nothing was changed.
    fn reload(&self) -> Result<Reloaded, String>;
}

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
    let reloaded = tokio::task::spawn_blocking(move || settings.reload()).await;
    let reloaded = reloaded.unwrap_or_else(|error| Err(error.to_string()));
    let Reloaded { changed, waiting } =
        reloaded.map_err(|why| (StatusCode::BAD_REQUEST, format!("{why}\n")))?;
    Ok(as_json(&json!({ "changed": changed, "waiting": waiting })))
}
