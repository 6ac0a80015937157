//! Maps the status of a failed call to a `RemoteError`, which says whether the call may have been carried out.

use std::error::Error;

use helenus_cql::error::CqlError;
use helenus_query::cluster::RemoteError;
use tonic::{Code, ConnectError, Status};

/// Whether the call has reached the other node, by its status.
pub(super) fn failure(status: &Status) -> RemoteError {
    let mut source: Option<&(dyn Error + 'static)> = status.source();
    while let Some(error) = source {
        if error.is::<ConnectError>() {
            return RemoteError::Unreachable(error.to_string());
        }
        source = error.source();
    }
    match status.code() {
        // Someone else, who has heard nothing: whom this node means is elsewhere, or knows it soon.
        Code::PermissionDenied => RemoteError::Unreachable(status.message().to_owned()),
        Code::Unauthenticated | Code::FailedPrecondition => RemoteError::Failed(CqlError::Server(format!(
            "another node has refused: {}",
            status.message()
        ))),
        _ => RemoteError::NoAnswer(status.to_string()),
    }
}
