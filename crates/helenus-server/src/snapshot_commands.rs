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
use serde_json::json;

use crate::node::admin_auth::{AdminAuthenticator, Refusal};
use crate::node_report::as_json;

#[derive(Clone)]
struct Context {
    engine: Arc<Engine>,
    authenticator: AdminAuthenticator,
}

/// The requests above. `authenticator` is that of the node's other commands.
pub(crate) fn router(engine: Arc<Engine>, authenticator: AdminAuthenticator) -> Router {
    Router::new()
        .route("/node/snapshots/take", post(take))
        .route("/node/snapshots/restore", post(restore))
        .route("/node/snapshots/clear", post(clear))
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

fn failed(error: CqlError) -> Refusal {
    let status = match error {
        CqlError::Invalid(_) => StatusCode::CONFLICT,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    (status, format!("{error}\n"))
}

async fn take(
    State(context): State<Context>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    body: String,
) -> Result<impl IntoResponse, Refusal> {
    let command = format!("POST /node/snapshots/take {body}");
    context.authenticator.admit(command.trim_end(), peer, &headers)?;
    let which: Take = serde_json::from_str(&body).map_err(misread)?;
    context.engine.take_snapshot(&which).await.map_err(failed)?;
    Ok(as_json(&json!({ "snapshot": which.tag })))
}

async fn restore(
    State(context): State<Context>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    body: String,
) -> Result<impl IntoResponse, Refusal> {
    let command = format!("POST /node/snapshots/restore {body}");
    context.authenticator.admit(command.trim_end(), peer, &headers)?;
    let wanted: Restore = serde_json::from_str(&body).map_err(misread)?;
    let restored = context.engine.restore_snapshot(&wanted).await.map_err(failed)?;
    Ok(as_json(&json!(restored)))
}

async fn clear(
    State(context): State<Context>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    body: String,
) -> Result<impl IntoResponse, Refusal> {
    let command = format!("POST /node/snapshots/clear {body}");
    context.authenticator.admit(command.trim_end(), peer, &headers)?;
    let which: Clear = serde_json::from_str(&body).map_err(misread)?;
    let cleared = context.engine.clear_snapshots(&which).await.map_err(failed)?;
    Ok(as_json(&json!({ "snapshots": cleared })))
}
