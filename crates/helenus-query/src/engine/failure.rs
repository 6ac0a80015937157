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
        StoreError::NotOwned(_) | StoreError::Fenced => crate::cluster::moved(),
        StoreError::DiskFull(_)
        | StoreError::Corrupt { .. }
        | StoreError::Locked { .. }
        | StoreError::NewerFormat { .. }
        | StoreError::Closed
        | StoreError::InvalidConfig(_)
        | StoreError::MetaConflict(_)
        | StoreError::TooLarge { .. }
        | StoreError::Unavailable(_) => CqlError::Server(message),
    }
}

/// Puts a request's consistency, and what kind of write it is, into the error of a store that knows of neither.
pub(super) fn at_consistency(mut error: CqlError, asked: Consistency, kind: WriteType) -> CqlError {
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
