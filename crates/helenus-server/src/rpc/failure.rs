//! Maps the status of a failed call to a `RemoteError`, which says whether the call may have been executed.

use std::error::Error;

use helenus_cql::error::CqlError;
use helenus_query::cluster::RemoteError;
use tonic::{Code, ConnectError, Status};

/// Returns the error for the status of a failed call.
pub(super) fn failure(status: &Status) -> RemoteError {
    let mut source: Option<&(dyn Error + 'static)> = status.source();
    while let Some(error) = source {
        if error.is::<ConnectError>() {
            return RemoteError::Unreachable(error.to_string());
        }
        source = error.source();
    }
    match status.code() {
        // The called node has executed nothing. It is not the node that was meant, or does not know this node yet.
        Code::PermissionDenied => RemoteError::Unreachable(status.message().to_owned()),
        Code::Unauthenticated | Code::FailedPrecondition => RemoteError::Failed(CqlError::Server(format!(
            "another node has refused: {}",
            status.message()
        ))),
        _ => RemoteError::NoAnswer(status.to_string()),
    }
}
