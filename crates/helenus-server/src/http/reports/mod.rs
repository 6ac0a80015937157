//! Reports of a node over HTTP, for `nodetool`. They change nothing. Requests that make the node do something belong in `http/commands/`.
//!
//! [`node`] has the state of the node, [`tables`] the metrics of its tables, [`slow_statements`] the latest slow requests, and [`facts`] the
//! rest. [`watched`] has the warnings for the operator. Reports of the cluster are in `node/admin_api.rs`.

pub(super) mod facts;
mod node;
pub(super) mod slow_statements;
pub(super) mod tables;
mod watched;

use axum::http::header;
use axum::response::IntoResponse;
use serde_json::Value;

pub use node::NodeReporter;
pub use watched::Watched;

/// Returns a value as indented JSON, because people read it, too.
pub(crate) fn as_json(value: &Value) -> impl IntoResponse + use<> {
    let json = [(header::CONTENT_TYPE, "application/json")];
    (json, format!("{value:#}\n"))
}
