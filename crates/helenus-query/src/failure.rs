//! What clients are told when the store could not do something.

use helenus_cql::error::{Consistency, CqlError, WriteType};
use helenus_tablet::StoreError;

/// A store's error as a client sees it. [`at_consistency`] puts the request's consistency in.
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
        // Another node has it, or will.
        StoreError::NotOwned(_) | StoreError::Fenced => moved(),
        StoreError::DiskFull(_)
        | StoreError::Corrupt { .. }
        | StoreError::Locked { .. }
        | StoreError::NewerFormat { .. }
        | StoreError::OlderFormat { .. }
        | StoreError::Closed
        | StoreError::InvalidConfig(_)
        | StoreError::MetaConflict(_)
        | StoreError::TooLarge { .. }
        | StoreError::Unavailable(_) => CqlError::Server(message),
    }
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

/// What a node says of rows that are on their way to another: nothing was done, and another try may find them.
pub(crate) fn moved() -> CqlError {
    CqlError::IsBootstrapping("The partition is moving to another node".to_owned())
}

/// True if nothing was done, because the rows are elsewhere or on their way.
pub(crate) fn is_moved(error: &CqlError) -> bool {
    matches!(error, CqlError::IsBootstrapping(_))
}

/// True of errors upon which drivers send a write again, since it was not done: what comes of a list or a counter would be there twice.
pub(crate) fn says_undone(error: &CqlError) -> bool {
    match error {
        CqlError::Server(_)
        | CqlError::Unavailable { .. }
        | CqlError::Overloaded(_)
        | CqlError::IsBootstrapping(_)
        | CqlError::Truncate(_)
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

/// No answer to a read in time.
pub(crate) fn read_timeout(consistency: Consistency) -> CqlError {
    CqlError::ReadTimeout {
        message: "Operation timed out - received only 0 responses.".to_owned(),
        consistency,
        received: 0,
        block_for: 1,
        data_present: false,
    }
}

/// No answer to a write in time: it may or may not have happened.
pub(crate) fn write_timeout(consistency: Consistency, write_type: WriteType) -> CqlError {
    CqlError::WriteTimeout {
        message: "Operation timed out - received only 0 responses.".to_owned(),
        consistency,
        received: 0,
        block_for: 1,
        write_type,
    }
}
