//! The latest slow statements.

use axum::Extension;
use axum::extract::State;
use axum::response::IntoResponse;
use serde_json::Value;

use super::Console;
use super::access::Caller;
use crate::http::reports::as_json;
use crate::logs::slow::KeptRequest;

/// Returns the latest slow statements about tables that the caller may read. A superuser sees all.
pub(super) async fn show(
    State(console): State<Console>,
    Extension(caller): Extension<Caller>,
) -> impl IntoResponse {
    let user = caller.user();
    let may_see = |request: &KeptRequest| {
        let table = (!request.table.is_empty()).then_some((&*request.keyspace, &*request.table));
        let engine = &console.reporter.engine;
        engine.may_read_same(user.as_deref(), table, request.measurement.statement.table)
    };
    let kept = console.reporter.slow_requests.kept();
    let shown: Vec<Value> = kept
        .iter()
        .filter(|request| may_see(request))
        .map(KeptRequest::report)
        .collect();
    as_json(&shown.into())
}
