//! Snapshots of tables over HTTP, for `nodetool`: `POST /node/snapshots/take` takes one of tables in use, `POST /node/snapshots/restore` puts
//! tables back, `POST /node/snapshots/clear` clears snapshots. All have a JSON object as their body, with the fields of [`Take`],
//! [`Restore`] and [`Clear`], and answer with what they have done. The list of snapshots is `GET /node/tables/snapshots`.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use axum::routing::post;
use helenus_cql::error::CqlError;
use helenus_query::engine::Engine;
use helenus_query::engine::snapshots::{Clear, Restore, Take};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::node::admin_auth::{AdminAuthenticator, Refusal};
use crate::node_report::as_json;

const TAKE: &str = "/node/snapshots/take";
const RESTORE: &str = "/node/snapshots/restore";
const CLEAR: &str = "/node/snapshots/clear";

#[derive(Clone)]
struct Context {
    engine: Arc<Engine>,
    authenticator: AdminAuthenticator,
}

/// Returns the requests above. `authenticator` is that of the node's other commands.
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

fn misread(error: serde_json::Error) -> Refusal {
    (
        StatusCode::BAD_REQUEST,
        format!("the body is not understood: {error}\n"),
    )
}

/// Returns the refusal of a command that has failed.
pub(crate) fn failed(error: CqlError) -> Refusal {
    let status = match error {
        CqlError::Invalid(_) => StatusCode::CONFLICT,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    (status, format!("{error}\n"))
}

/// What the body of a request that is admitted asks for.
///
/// # Errors
/// The request may not come from there, or its body is not understood.
pub(crate) fn requested<T: DeserializeOwned>(
    authenticator: &AdminAuthenticator,
    path: &str,
    peer: SocketAddr,
    headers: &HeaderMap,
    body: &str,
) -> Result<T, Refusal> {
    let command = format!("POST {path} {body}");
    authenticator.admit(command.trim_end(), peer, headers)?;
    serde_json::from_str(body).map_err(misread)
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
