//! `POST /node/slow_statements`: the latest slow requests, for `nodetool slowstatements`. It is a command that needs authorisation, because
//! statements may be confidential.

use std::net::SocketAddr;

use axum::Router;
use axum::extract::{ConnectInfo, State};
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use axum::routing::post;
use serde_json::Value;

use super::as_json;
use crate::node::admin_auth::{AdminAuthenticator, Refusal};
use crate::transport::SlowRequestLog;

#[derive(Clone)]
struct Context {
    slow_requests: SlowRequestLog,
    authenticator: AdminAuthenticator,
}

/// Returns the route of the request above. `authenticator` is that of the node's commands.
pub(crate) fn router(slow_requests: SlowRequestLog, authenticator: AdminAuthenticator) -> Router {
    Router::new()
        .route("/node/slow_statements", post(show))
        .with_state(Context {
            slow_requests,
            authenticator,
        })
}

async fn show(
    State(context): State<Context>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
) -> Result<impl IntoResponse, Refusal> {
    let command = "POST /node/slow_statements";
    context.authenticator.check(command, peer, &headers)?;
    let kept = context.slow_requests.kept();
    let report: Vec<Value> = kept.iter().map(|request| request.report()).collect();
    Ok(as_json(&report.into()))
}
