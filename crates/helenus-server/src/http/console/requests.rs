//! The requests of the page, except statements.

use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::Instant;

use axum::Extension;
use axum::extract::{ConnectInfo, RawQuery, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::access::{Caller, Refused};
use super::{Console, cluster};
use crate::http::reports::as_json;

/// Default time range of the charts, in seconds.
const HISTORY_S: i64 = 3600;

/// Returns whether the caller must log in, the user, and the token of commands.
pub(super) async fn session(
    State(console): State<Console>,
    Extension(caller): Extension<Caller>,
) -> impl IntoResponse {
    as_json(&json!({
        "login_needed": console.reporter.engine.authenticates() && caller.session.is_none(),
        "authentication": console.reporter.engine.authenticates(),
        "user": caller.user().map(|user| user.name.clone()),
        "token": console.access.token(&caller),
        "version": env!("CARGO_PKG_VERSION"),
    }))
}

pub(super) async fn log_in(
    State(console): State<Console>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    body: String,
) -> Result<Response, Refused> {
    let body: Value = serde_json::from_str(&body).unwrap_or_default();
    let field = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default();
    let (access, address) = (&console.access, peer.ip().to_canonical());
    if !access.logins.begin(address, Instant::now()) {
        let why = "too many attempts to log in failed; try again in a minute".to_owned();
        return Err(Refused(StatusCode::TOO_MANY_REQUESTS, why));
    }
    let (name, password) = (field("user"), field("password"));
    // The token below is one of SASL PLAIN (RFC 4616), as drivers send it. It separates the name and the password by NULs.
    if name.contains('\0') || password.contains('\0') {
        return Err(Refused(
            StatusCode::BAD_REQUEST,
            "a user name or password has a NUL character: remove it".to_owned(),
        ));
    }
    let token = format!("\0{name}\0{password}");
    let user = match access.engine.log_in(address, token.as_bytes()).await {
        Ok(user) => user,
        Err(error) => {
            tracing::info!(%peer, "login at the console failed");
            return Err(Refused(StatusCode::UNAUTHORIZED, error.to_string()));
        }
    };
    access.logins.succeeded(address);
    tracing::info!(%peer, user = user.name, "logged in at the console");
    let id = access.sessions.begin(user, Instant::now());
    let cookie = [(header::SET_COOKIE, access.set_cookie(&id))];
    Ok((cookie, as_json(&json!({}))).into_response())
}

pub(super) async fn log_out(
    State(console): State<Console>,
    Extension(caller): Extension<Caller>,
) -> impl IntoResponse {
    if let Some((id, _)) = &caller.session {
        console.access.sessions.end(id);
    }
    let cookie = [(header::SET_COOKIE, console.access.set_cookie(""))];
    (cookie, as_json(&json!({})))
}

/// Returns this node, the cluster as this node knows it, and its tablets with load and size.
pub(super) async fn cluster(State(console): State<Console>) -> impl IntoResponse {
    let serves_clients = console.serves_clients.load(Ordering::Relaxed);
    let mut report = match &console.control {
        Some(control) => control.report(),
        None => console.reporter.single(serves_clients),
    };
    let rates = console.tablet_rates.lock();
    cluster::add_load(&mut report, &console.reporter.engine.store_stats(), &rates);
    drop(rates);
    as_json(&json!({
        "node": console.reporter.report(serves_clients),
        "troubles": console.reporter.troubles(),
        "cluster": report,
    }))
}

/// Returns the figures of the last `seconds`.
pub(super) async fn history(State(console): State<Console>, RawQuery(query): RawQuery) -> impl IntoResponse {
    let seconds = query.as_deref().and_then(|query| query.strip_prefix("seconds="));
    let seconds = seconds
        .and_then(|seconds| seconds.parse().ok())
        .unwrap_or(HISTORY_S);
    let report = console.history.lock().report(seconds);
    as_json(&report)
}
