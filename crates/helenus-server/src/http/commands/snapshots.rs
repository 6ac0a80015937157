//! Snapshots of tables over HTTP, for `nodetool`. `POST /node/snapshots/take` takes a snapshot of tables in use, `POST
//! /node/snapshots/restore` restores tables, and `POST /node/snapshots/clear` deletes snapshots. The body of each is a JSON object with the
//! fields of [`Take`], [`Restore`] or [`Clear`]; the response reports what was done. `GET /node/tables/snapshots` returns the list of
//! snapshots.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{ConnectInfo, State};
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use axum::routing::post;
use helenus_query::engine::Engine;
use helenus_query::engine::snapshots::{Clear, Restore, Take};
use serde_json::json;

use super::json_body::{failed, requested};
use crate::http::reports::as_json;
use crate::node::admin_auth::{AdminAuthenticator, Refusal};

const TAKE: &str = "/node/snapshots/take";
const RESTORE: &str = "/node/snapshots/restore";
const CLEAR: &str = "/node/snapshots/clear";

#[derive(Clone)]
struct Context {
    engine: Arc<Engine>,
    authenticator: AdminAuthenticator,
}

/// Returns the routes of the requests above. `authenticator` is that of the node's other commands.
pub(crate) fn router(engine: Arc<Engine>, authenticator: AdminAuthenticator) -> Router {
    Router::new()
        .route(TAKE, post(take))
        .route(RESTORE, post(restore))
        .route(CLEAR, post(clear))
        .with_state(Context {
            engine,
            authenticator,
        })
}

async fn take(
    State(context): State<Context>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    body: String,
) -> Result<impl IntoResponse, Refusal> {
    let which: Take = requested(&context.authenticator, TAKE, peer, &headers, &body)?;
    context.engine.take_snapshot(&which).await.map_err(failed)?;
    Ok(as_json(&json!({ "snapshot": which.tag })))
}

async fn restore(
    State(context): State<Context>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    body: String,
) -> Result<impl IntoResponse, Refusal> {
    let wanted: Restore = requested(&context.authenticator, RESTORE, peer, &headers, &body)?;
    let restored = context.engine.restore_snapshot(&wanted).await.map_err(failed)?;
    Ok(as_json(&json!(restored)))
}

async fn clear(
    State(context): State<Context>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    body: String,
) -> Result<impl IntoResponse, Refusal> {
    let which: Clear = requested(&context.authenticator, CLEAR, peer, &headers, &body)?;
    let cleared = context.engine.clear_snapshots(&which).await.map_err(failed)?;
    Ok(as_json(&json!({ "snapshots": cleared })))
}
