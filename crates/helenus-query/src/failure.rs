//! Failures of requests: those that another node may still serve ([`ExecutionError::NotOwned`]), and errors for clients.

use std::fmt;

use helenus_cql::error::{Consistency, CqlError, WriteType};
use helenus_tablet::StoreError;

/// The reason why a node did not execute a request, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExecutionError {
    /// The node does not own all of the request's rows, or may no longer own them, and has done nothing. The request belongs to another
    /// node.
    NotOwned,
    /// The error for the client.
    Failed(CqlError),
}

impl ExecutionError {
    /// Returns the client's error for a request that no other node will execute.
    pub(crate) fn into_client_error(self) -> CqlError {
        match self {
            ExecutionError::NotOwned => moving(),
            ExecutionError::Failed(error) => error,
        }
    }

    /// Changes the client's error, if there is one.
    pub(crate) fn map_failed(self, change: impl FnOnce(CqlError) -> CqlError) -> ExecutionError {
        match self {
            ExecutionError::NotOwned => ExecutionError::NotOwned,
            ExecutionError::Failed(error) => ExecutionError::Failed(change(error)),
        }
    }
}

impl fmt::Display for ExecutionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExecutionError::NotOwned => write!(f, "{}", moving()),
            ExecutionError::Failed(error) => write!(f, "{error}"),
        }
    }
}

/// An error for the client is never a reason to try another node, whatever its code. The other direction has no `From`, so that `?` cannot
/// turn [`ExecutionError::NotOwned`] into an error for the client unnoticed ([`ExecutionError::into_client_error`]).
impl From<CqlError> for ExecutionError {
    fn from(error: CqlError) -> ExecutionError {
        ExecutionError::Failed(error)
    }
}

impl From<StoreError> for ExecutionError {
    fn from(error: StoreError) -> ExecutionError {
        match error {
            // Another node owns the rows, or will soon.
            StoreError::NotOwned(_) | StoreError::Fenced => ExecutionError::NotOwned,
            error => ExecutionError::Failed(store_error(error)),
        }
    }
}

/// Converts a store's error into one for the client. [`at_consistency`] adds the request's consistency.
pub(crate) fn store_error(error: StoreError) -> CqlError {
    let message = error.to_string();
    match error {
        StoreError::Unknown(_) => CqlError::WriteTimeout {
            message,
            consistency: Consistency::One,
            received: 0,
            block_for: 1,
            write_type: WriteType::Simple,
        },
        StoreError::ReadTimeout(_) => CqlError::ReadTimeout {
            message,
            consistency: Consistency::One,
            received: 0,
            block_for: 1,
            data_present: false,
        },
        StoreError::Overloaded(_) => CqlError::Overloaded(message),
        StoreError::ReadOnly => refused_read_only("it writes nothing"),
        StoreError::NotOwned(_) | StoreError::Fenced => moving(),
        StoreError::DiskFull(_)
        | StoreError::Corrupt { .. }
        | StoreError::Locked { .. }
        | StoreError::NewerFormat { .. }
        | StoreError::OlderFormat { .. }
        | StoreError::NotPinned(_)
        | StoreError::Closed
        | StoreError::InvalidConfig(_)
        | StoreError::MetaConflict(_)
        | StoreError::TooLarge { .. }
        | StoreError::HistoryTooLarge { .. }
        | StoreError::HistoryUncertain { .. }
        | StoreError::FileGone(_)
        | StoreError::Unavailable(_) => CqlError::Server(message),
    }
}

/// Returns the refusal of a read-only node, with the reason.
pub(crate) fn refused_read_only(why: &str) -> CqlError {
    CqlError::invalid(format!(
        "This node is read-only (helenus serve --read-only): {why}"
    ))
}

/// Inserts a request's consistency and kind of write into an error. The store knows neither.
pub(crate) fn at_consistency(mut error: CqlError, requested: Consistency, kind: WriteType) -> CqlError {
    match &mut error {
        CqlError::WriteTimeout {
            consistency,
            write_type,
            ..
        } => (*consistency, *write_type) = (requested, kind),
        CqlError::ReadTimeout { consistency, .. } => *consistency = requested,
        CqlError::Warned { error, .. } => {
            let inner = std::mem::replace(error.as_mut(), CqlError::Server(String::new()));
            **error = at_consistency(inner, requested, kind);
        }
        _ => {}
    }
    error
}

/// Returns the client's error while rows move to another node. Nothing was done, and a retry may find the rows.
fn moving() -> CqlError {
    CqlError::IsBootstrapping("The partition is moving to another node".to_owned())
}

/// Returns true if drivers take the error as a sign that a write was not done, and send the write again. A repeated write to a list or a
/// counter would take effect twice.
pub(crate) fn says_undone(error: &CqlError) -> bool {
    match error {
        CqlError::Server(_)
        | CqlError::Unavailable { .. }
        | CqlError::Overloaded(_)
        | CqlError::IsBootstrapping(_)
        | CqlError::Truncate(_)
        | CqlError::RateLimited { .. }
        // A write that fails with a read timeout is reported to the client as UNAVAILABLE.
        | CqlError::ReadTimeout { .. } => true,
        CqlError::Warned { error, .. } => says_undone(error),
        _ => false,
    }
}

/// Returns the error of a request that found no node in time and has done nothing.
pub(crate) fn unavailable(consistency: Consistency) -> CqlError {
    CqlError::Unavailable {
        message: format!("Cannot achieve consistency level {consistency}"),
        consistency,
        required: 1,
        alive: 0,
    }
}

/// Returns the error of a read without an answer in time.
pub(crate) fn read_timeout(consistency: Consistency) -> CqlError {
    CqlError::ReadTimeout {
        message: "Operation timed out - received only 0 responses.".to_owned(),
        consistency,
        received: 0,
        block_for: 1,
        data_present: false,
    }
}

/// Returns the error of a write without an answer in time. The write may or may not have taken effect.
pub(crate) fn write_timeout(consistency: Consistency, write_type: WriteType) -> CqlError {
    CqlError::WriteTimeout {
        message: "Operation timed out - received only 0 responses.".to_owned(),
        consistency,
        received: 0,
        block_for: 1,
        write_type,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_store_errors_mean_rows_are_elsewhere() {
        let stopping = CqlError::IsBootstrapping("This node is being stopped".to_owned());
        for error in [stopping, moving()] {
            assert_eq!(ExecutionError::from(error.clone()), ExecutionError::Failed(error));
        }
        for error in [StoreError::NotOwned(7), StoreError::Fenced] {
            assert_eq!(ExecutionError::from(error), ExecutionError::NotOwned);
        }
        assert_eq!(ExecutionError::NotOwned.into_client_error(), moving());
    }
}
