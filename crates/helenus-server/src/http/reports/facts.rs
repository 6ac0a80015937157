//! Facts about a node over HTTP, for `nodetool`. `GET /node/tables/NAME` returns the rows of a computed table, `GET
//! /node/token/KEYSPACE/TABLE/KEY` the token of a partition, and `GET /node/history` a report of the history that is kept.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::get;
use helenus_query::engine::Engine;
use helenus_query::engine::status::ReportedTable;
use serde_json::{Value, json};

use super::as_json;
use crate::node::admin_auth::Refusal;

pub(crate) fn router(engine: Arc<Engine>) -> Router {
    Router::new()
        .route("/node/tables/{name}", get(rows))
        .route("/node/token/{keyspace}/{table}/{key}", get(token))
        .route("/node/history", get(history))
        .with_state(engine)
}

async fn history(State(engine): State<Arc<Engine>>) -> Result<impl IntoResponse, Refusal> {
    let report = engine.history_report().await;
    let report = report.map_err(|error| (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")))?;
    Ok(as_json(&json!(report)))
}

async fn rows(
    State(engine): State<Arc<Engine>>,
    Path(name): Path<String>,
) -> Result<impl IntoResponse, Refusal> {
    let table = ReportedTable::ALL.into_iter().find(|(known, _)| *known == name);
    let (_, table) =
        table.ok_or_else(|| (StatusCode::NOT_FOUND, format!("there is no report of {name}\n")))?;
    let rows = engine.reported_rows(table).await;
    let rows = rows.map_err(|error| (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")))?;
    let rows = rows.iter().filter_map(|row| serde_json::from_str(row).ok());
    Ok(as_json(&rows.collect::<Vec<Value>>().into()))
}

async fn token(
    State(engine): State<Arc<Engine>>,
    Path((keyspace, table, key)): Path<(String, String, String)>,
) -> Result<impl IntoResponse, Refusal> {
    let token = engine.token_of_key(&keyspace, &table, &key);
    let token = token.map_err(|why| (StatusCode::BAD_REQUEST, format!("{why}\n")))?;
    // The token is a string, because many JSON parsers lose digits of such large numbers.
    Ok(as_json(&json!({ "token": token.to_string() })))
}
