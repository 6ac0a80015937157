//! Commands whose body is a JSON object, and the responses to those that fail.

use std::net::SocketAddr;

use axum::http::{HeaderMap, StatusCode};
use helenus_cql::error::CqlError;
use serde::de::DeserializeOwned;

use crate::node::admin_auth::{AdminAuthenticator, Refusal};

fn misread(error: serde_json::Error) -> Refusal {
    (
        StatusCode::BAD_REQUEST,
        format!("the body is not understood: {error}\n"),
    )
}

/// Returns the HTTP response for a command that failed.
pub(super) fn failed(error: CqlError) -> Refusal {
    let status = match error {
        CqlError::Invalid(_) => StatusCode::CONFLICT,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    (status, format!("{error}\n"))
}

/// Authenticates a command and parses its body.
///
/// # Errors
/// The caller is not authorised, or the body is invalid.
pub(super) fn requested<T: DeserializeOwned>(
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
