//! Backups over HTTP, for `helenus backup` and `helenus restore`. `POST /node/backups/write` writes a backup, and `POST
//! /node/backups/restore` restores tables from one. The body of both is a JSON object with the fields of [`BackUp`] or [`RestoreBackup`];
//! the response reports what was done. A command that has begun continues even if the client disconnects.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use axum::routing::post;
use helenus_cql::error::CqlError;
use helenus_query::engine::Engine;
use helenus_query::engine::backups::{BackUp, RestoreBackup};
use serde_json::json;

use super::json_body::{failed, requested};
use crate::http::reports::as_json;
use crate::node::admin_auth::{AdminAuthenticator, Refusal};
use crate::settings::{LiveSettings, unusual_settings};

const WRITE: &str = "/node/backups/write";
const RESTORE: &str = "/node/backups/restore";

#[derive(Clone)]
struct Context {
    engine: Arc<Engine>,
    settings: Arc<dyn LiveSettings>,
    authenticator: AdminAuthenticator,
}

/// Returns the routes of the requests above. `authenticator` is that of the node's other commands.
pub(crate) fn router(
    engine: Arc<Engine>,
    settings: Arc<dyn LiveSettings>,
    authenticator: AdminAuthenticator,
) -> Router {
    Router::new()
        .route(WRITE, post(write))
        .route(RESTORE, post(restore))
        .with_state(Context {
            engine,
            settings,
            authenticator,
        })
}

/// Runs `work` in a task of its own and returns its result. The task continues even if the client disconnects.
async fn outcome<T: Send + 'static>(
    work: impl Future<Output = Result<T, CqlError>> + Send + 'static,
) -> Result<T, Refusal> {
    match tokio::spawn(work).await {
        Ok(done) => done.map_err(failed),
        Err(error) => Err((StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n"))),
    }
}

async fn write(
    State(context): State<Context>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    body: String,
) -> Result<impl IntoResponse, Refusal> {
    let wanted: BackUp = requested(&context.authenticator, WRITE, peer, &headers, &body)?;
    let settings = unusual_settings(context.settings.as_ref());
    let report = outcome(async move { context.engine.back_up(&wanted, settings).await }).await?;
    Ok(as_json(&json!(report)))
}

async fn restore(
    State(context): State<Context>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    body: String,
) -> Result<impl IntoResponse, Refusal> {
    let wanted: RestoreBackup = requested(&context.authenticator, RESTORE, peer, &headers, &body)?;
    let restored = outcome(async move { context.engine.restore_backup(&wanted).await }).await?;
    Ok(as_json(&json!(restored)))
}
