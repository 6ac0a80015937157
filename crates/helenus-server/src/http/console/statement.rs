//! Statements of the page, run as the role that has logged in.

use std::time::{Duration, Instant};

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use helenus_cql::frame::ColumnSpec;
use helenus_cql::value::json::to_json;
use helenus_query::request::{ClientState, QueryParameters};
use helenus_query::response::{Outcome, Response, Rows};
use serde_json::{Value, json};

use super::Console;
use super::access::{Caller, Refused};
use crate::http::reports::as_json;

/// Maximum number of rows in a result.
const ROWS_MAX: i32 = 1000;
/// Maximum time to wait for a result. The statement still runs to its end.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Runs the statement in the body, in its `keyspace` if there is one.
pub(super) async fn run(
    State(console): State<Console>,
    Extension(caller): Extension<Caller>,
    body: String,
) -> Result<impl IntoResponse, Refused> {
    let bad = |why: String| Refused(StatusCode::BAD_REQUEST, why);
    let body: Value = serde_json::from_str(&body).map_err(|error| bad(format!("no JSON: {error}")))?;
    let field = |name: &str| body.get(name).and_then(Value::as_str).map(str::to_owned);
    let statement = field("statement").ok_or_else(|| bad("\"statement\" is missing".to_owned()))?;
    let Ok(permit) = console.statements.clone().try_acquire_owned() else {
        let why = "the console runs as many statements as it may: try again".to_owned();
        return Err(Refused(StatusCode::TOO_MANY_REQUESTS, why));
    };
    let client = ClientState {
        keyspace: field("keyspace").filter(|name| !name.is_empty()),
        user: caller.user(),
    };
    let options = QueryParameters {
        page_size: Some(ROWS_MAX),
        ..QueryParameters::default()
    };
    let engine = console.reporter.engine.clone();
    let began = Instant::now();
    let running = tokio::spawn(async move {
        let _permit = permit;
        engine.query(&client, &statement, &options).await
    });
    let outcome = match tokio::time::timeout(TIMEOUT, running).await {
        Ok(Ok(outcome)) => outcome.map_err(|error| bad(error.to_string()))?,
        Ok(Err(_)) => {
            let why = "the statement ended without an answer; the log says why".to_owned();
            return Err(Refused(StatusCode::INTERNAL_SERVER_ERROR, why));
        }
        Err(_) => {
            let why = format!("no answer within {} s; the statement runs on", TIMEOUT.as_secs());
            return Err(Refused(StatusCode::GATEWAY_TIMEOUT, why));
        }
    };
    Ok(as_json(&report(&outcome, began.elapsed())))
}

fn report(outcome: &Outcome, took: Duration) -> Value {
    let mut report = match &outcome.response {
        // Encoded results are for clients of the native protocol.
        Response::Void | Response::Encoded(_) => json!({ "kind": "void" }),
        Response::Rows(rows) => rows_report(rows),
        Response::SetKeyspace(name) => json!({ "kind": "keyspace", "keyspace": name }),
        Response::SchemaChange(_) => json!({ "kind": "schema" }),
    };
    if let Some(report) = report.as_object_mut() {
        report.insert("took_ms".to_owned(), json!(took.as_secs_f64() * 1e3));
        report.insert("warnings".to_owned(), json!(outcome.warnings));
    }
    report
}

fn rows_report(rows: &Rows) -> Value {
    let columns = &rows.metadata.columns;
    let column = |column: &ColumnSpec| json!({ "name": *column.name, "type": column.ty.to_string() });
    let row = |cells: Vec<Option<bytes::Bytes>>| -> Value {
        let cells = columns.iter().zip(cells);
        cells
            .map(|(column, cell)| cell.map(|cell| cell_text(column, &cell)))
            .collect::<Vec<_>>()
            .into()
    };
    json!({
        "kind": "rows",
        "columns": columns.iter().map(column).collect::<Vec<Value>>(),
        "rows": rows.content.iter().map(row).collect::<Vec<Value>>(),
        "has_more": rows.paging_state.is_some(),
    })
}

/// Returns a value as text, because JSON numbers lose digits in a browser.
fn cell_text(column: &ColumnSpec, bytes: &[u8]) -> String {
    match to_json(&column.ty, bytes) {
        Ok(text) => serde_json::from_str::<String>(&text).unwrap_or(text),
        Err(error) => error,
    }
}
