//! Failures of requests: those that another node may still serve ([`ExecutionError::NotOwned`]), and those that clients are told.

use std::fmt;

use helenus_cql::error::{Consistency, CqlError, WriteType};
use helenus_tablet::StoreError;

/// Why a node did not carry out a request, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExecutionError {
    /// The node does not own all of its rows, or may no longer, and has done nothing: the request belongs to another node.
    NotOwned,
    /// The error for the client.
    Failed(CqlError),
}

impl ExecutionError {
    /// Returns the error for the client of a request that no other node is asked to carry out.
    pub(crate) fn into_client_error(self) -> CqlError {
        match self {
            ExecutionError::NotOwned => moving(),
            ExecutionError::Failed(error) => error,
        }
    }

    /// Changes the error that the client is told, if it is told one.
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

/// An error for the client is never a reason to ask another node, whatever its code. The other direction has no `From`, so that `?` cannot
/// turn [`ExecutionError::NotOwned`] into an error for the client unnoticed ([`ExecutionError::into_client_error`]).
impl From<CqlError> for ExecutionError {
    fn from(error: CqlError) -> ExecutionError {
        ExecutionError::Failed(error)
    }
}

impl From<StoreError> for ExecutionError {
    fn from(error: StoreError) -> ExecutionError {
        match error {
            // Another node has it, or will.
            StoreError::NotOwned(_) | StoreError::Fenced => ExecutionError::NotOwned,
            error => ExecutionError::Failed(store_error(error)),
        }
    }
}

/// Returns a store's error as a client sees it. [`at_consistency`] puts the request's consistency in.
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
        | StoreError::PastTooLarge { .. }
        | StoreError::PastUncertain { .. }
        | StoreError::FileGone(_)
        | StoreError::Unavailable(_) => CqlError::Server(message),
    }
}

/// Returns the refusal of a node that only reads the store, and why.
pub(crate) fn refused_read_only(why: &str) -> CqlError {
    CqlError::invalid(format!(
        "This node is read-only (helenus serve --read-only): {why}"
    ))
}

/// Puts a request's consistency, and what kind of write it is, into the error of a store that knows of neither.
pub(crate) fn at_consistency(mut error: CqlError, asked: Consistency, kind: WriteType) -> CqlError {
    match &mut error {
        CqlError::WriteTimeout {
            consistency,
            write_type,
            ..
        } => (*consistency, *write_type) = (asked, kind),
        CqlError::ReadTimeout { consistency, .. } => *consistency = asked,
        CqlError::Warned { error, .. } => {
            let inner = std::mem::replace(error.as_mut(), CqlError::Server(String::new()));
            **error = at_consistency(inner, asked, kind);
        }
        _ => {}
    }
    error
}

/// Returns the error for clients of rows that are on their way to another node: nothing was done, and another try may find them.
fn moving() -> CqlError {
    CqlError::IsBootstrapping("The partition is moving to another node".to_owned())
}

/// Returns true of errors upon which drivers send a write again, since it was not done: what comes of a list or a counter would be there
/// twice.
pub(crate) fn says_undone(error: &CqlError) -> bool {
    match error {
        CqlError::Server(_)
        | CqlError::Unavailable { .. }
        | CqlError::Overloaded(_)
        | CqlError::IsBootstrapping(_)
        | CqlError::Truncate(_)
        | CqlError::RateLimited { .. }
        // The client of a write is told UNAVAILABLE then.
        | CqlError::ReadTimeout { .. } => true,
        CqlError::Warned { error, .. } => says_undone(error),
        _ => false,
    }
}

/// Nothing was done in time.
pub(crate) fn unavailable(consistency: Consistency) -> CqlError {
    CqlError::Unavailable {
        message: format!("Cannot achieve consistency level {consistency}"),
        consistency,
        required: 1,
        alive: 0,
    }
}

/// Returns no answer to a read in time.
pub(crate) fn read_timeout(consistency: Consistency) -> CqlError {
    CqlError::ReadTimeout {
        message: "Operation timed out - received only 0 responses.".to_owned(),
        consistency,
        received: 0,
        block_for: 1,
        data_present: false,
    }
}

/// Returns no answer to a write in time: it may or may not have happened.
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
    fn only_the_store_says_that_rows_are_elsewhere_whatever_code_a_client_is_told() {
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
