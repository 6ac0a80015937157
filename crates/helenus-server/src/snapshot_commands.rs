//! Snapshots of tables over HTTP, for `nodetool`: `POST /node/snapshots/restore` puts tables back, `POST /node/snapshots/clear` clears snapshots.
//! Both have a JSON object as their body, with the fields of [`RestoreBody`] and [`ClearBody`], and answer with what they have done. The list
//! of snapshots is `GET /node/tables/snapshots`.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use axum::routing::post;
use helenus_cql::error::CqlError;
use helenus_query::engine::Engine;
use helenus_query::engine::snapshots::{Clear, Restore};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::node::admin_auth::{AdminAuthenticator, Refusal};
use crate::node_report::as_json;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RestoreBody {
    /// The snapshot; without, the newest that was left behind.
    tag: Option<String>,
    keyspace: Option<String>,
    table: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClearBody {
    /// The snapshot; without, all.
    tag: Option<String>,
    /// Those of these keyspaces alone, if there are any here.
    #[serde(default)]
    keyspaces: Vec<String>,
    /// Those alone that were taken before, in milliseconds since the Unix epoch.
    taken_before_ms: Option<i64>,
}

#[derive(Clone)]
struct Context {
    engine: Arc<Engine>,
    authenticator: AdminAuthenticator,
}

/// The requests above. `authenticator` is that of the node's other commands.
pub(crate) fn router(engine: Arc<Engine>, authenticator: AdminAuthenticator) -> Router {
    Router::new()
        .route("/node/snapshots/restore", post(restore))
        .route("/node/snapshots/clear", post(clear))
        .with_state(Context {
            engine,
            authenticator,
        })
}

fn parse<T: DeserializeOwned>(body: &str) -> Result<T, Refusal> {
    serde_json::from_str(body).map_err(|error| {
        (
            StatusCode::BAD_REQUEST,
            format!("the body is not understood: {error}\n"),
        )
    })
}

fn failed(error: CqlError) -> Refusal {
    let status = match error {
        CqlError::Invalid(_) => StatusCode::CONFLICT,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    (status, format!("{error}\n"))
}

async fn restore(
    State(context): State<Context>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    body: String,
) -> Result<impl IntoResponse, Refusal> {
    let command = format!("POST /node/snapshots/restore {body}");
    context.authenticator.admit(command.trim_end(), peer, &headers)?;
    let RestoreBody { tag, keyspace, table } = parse(&body)?;
    let wanted = Restore { tag, keyspace, table };
    let restored = context.engine.restore_snapshot(&wanted).await.map_err(failed)?;
    Ok(as_json(&json!({
        "snapshot": restored.tag,
        "keyspace": restored.keyspace,
        "tables": restored.tables,
        "replaced": restored.replaced,
    })))
}

async fn clear(
    State(context): State<Context>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    body: String,
) -> Result<impl IntoResponse, Refusal> {
    let command = format!("POST /node/snapshots/clear {body}");
    context.authenticator.admit(command.trim_end(), peer, &headers)?;
    let ClearBody {
        tag,
        keyspaces,
        taken_before_ms,
    } = parse(&body)?;
    let which = Clear {
        tag,
        keyspaces,
        taken_before_ms,
    };
    let cleared = context.engine.clear_snapshots(&which).await.map_err(failed)?;
    Ok(as_json(&json!({ "snapshots": cleared })))
}
