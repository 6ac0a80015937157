//! The full query log over HTTP, for `nodetool`: `GET /node/full_query_log`, and `POST /node/full_query_log/enable`, `/disable` and `/reset`.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use serde_json::json;

use crate::http::reports::as_json;
use crate::logs::full_query_log::{FullQueryLog, QueryLogPatch};
use crate::node::admin_auth::{AdminAuthenticator, Refusal};

#[derive(Clone)]
struct Context {
    log: Arc<FullQueryLog>,
    authenticator: AdminAuthenticator,
}

/// Returns the routes of the requests above. `authenticator` is that of the node's other commands.
pub(crate) fn router(log: Arc<FullQueryLog>, authenticator: AdminAuthenticator) -> Router {
    Router::new()
        .route("/node/full_query_log", get(show))
        .route("/node/full_query_log/enable", post(enable))
        .route("/node/full_query_log/disable", post(disable))
        .route("/node/full_query_log/reset", post(reset))
        .with_state(Context { log, authenticator })
}

impl Context {
    /// Runs `switch` on a thread that may block, because switching the log waits for the disk.
    async fn switch(
        self,
        switch: impl FnOnce(&FullQueryLog) -> Result<(), String> + Send + 'static,
    ) -> Result<&'static str, Refusal> {
        let failed = |why: String| (StatusCode::BAD_REQUEST, format!("{why}\n"));
        let switched = helenus_tablet::threads::spawn_blocking(move || switch(&self.log)).await;
        switched
            .map_err(|error| failed(error.to_string()))?
            .map_err(failed)?;
        Ok("switched\n")
    }
}

async fn show(State(context): State<Context>) -> impl IntoResponse {
    let (is_on, options) = context.log.state();
    let enabled = ("enabled", is_on.to_string());
    let option = |(name, value)| json!({ "name": name, "value": value });
    as_json(
        &std::iter::once(enabled)
            .chain(options.by_name())
            .map(option)
            .collect(),
    )
}

/// Enables the log. The body has a line `name=value` for each option that shall differ from the settings.
async fn enable(
    State(context): State<Context>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    body: String,
) -> Result<&'static str, Refusal> {
    let command = format!("POST /node/full_query_log/enable {body}");
    context.authenticator.admit(command.trim_end(), peer, &headers)?;
    context
        .switch(move |log| QueryLogPatch::parse(&body).and_then(|patch| log.enable(&patch)))
        .await
}

async fn disable(
    State(context): State<Context>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
) -> Result<&'static str, Refusal> {
    context
        .authenticator
        .admit("POST /node/full_query_log/disable", peer, &headers)?;
    let disable = |log: &FullQueryLog| {
        log.disable();
        Ok(())
    };
    context.switch(disable).await
}

async fn reset(
    State(context): State<Context>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
) -> Result<&'static str, Refusal> {
    context
        .authenticator
        .admit("POST /node/full_query_log/reset", peer, &headers)?;
    context.switch(FullQueryLog::reset).await
}
