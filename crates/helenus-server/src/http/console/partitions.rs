//! The most active and the largest partitions.

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use helenus_query::engine::sampling::{NamedActivity, NamedSample};
use serde_json::{Value, json};

use super::Console;
use super::access::{Caller, Refused};
use crate::http::reports::as_json;

/// Maximum number of partitions of each kind that are shown.
const TOP: usize = 10;
/// Number of partitions of each kind that are filtered by the tables that the caller may read.
const LOOKED_AT: usize = 200;

/// Returns the most active and the largest partitions of tables that the caller may read.
pub(super) async fn show(
    State(console): State<Console>,
    Extension(caller): Extension<Caller>,
) -> Result<impl IntoResponse, Refused> {
    let engine = &console.reporter.engine;
    let user = caller.user();
    let shown = |samples: Vec<NamedSample>| -> Value {
        let may_see = |one: &NamedSample| engine.may_read(user.as_deref(), Some((&one.keyspace, &one.table)));
        let visible = samples.iter().filter(|one| may_see(one));
        visible.take(TOP).map(report).collect::<Vec<_>>().into()
    };
    let activity = |activity: NamedActivity| json!({ "total": activity.total, "top": shown(activity.top) });
    let recent = engine.recently_active(LOOKED_AT);
    let largest = engine.largest_partitions(LOOKED_AT).await;
    let largest = largest.map_err(|error| Refused(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    Ok(as_json(&json!({
        "interval": recent.interval,
        "span_s": recent.span_s,
        "reads": activity(recent.reads),
        "writes": activity(recent.writes),
        "largest": shown(largest),
    })))
}

fn report(sample: &NamedSample) -> Value {
    json!({
        "keyspace": sample.keyspace,
        "table": sample.table,
        "partition": sample.value,
        "count": sample.count,
        "error": sample.error,
    })
}
