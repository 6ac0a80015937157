//! COPY: a table to a file of CSV and back, with cqlsh's statement and options.

mod from;
mod literal;
mod progress;
mod resume;
mod to;
mod written;

use anyhow::Result;

use super::client::StatementError;
use super::copy_statement::{CopyStatement, Direction};
use super::session::Session;

/// Why a COPY ended early.
enum CopyError {
    /// The server or the connection.
    Statement(StatementError),
    /// Something that the person who typed it can mend.
    User(String),
}

impl From<StatementError> for CopyError {
    fn from(error: StatementError) -> CopyError {
        CopyError::Statement(error)
    }
}

impl From<String> for CopyError {
    fn from(message: String) -> CopyError {
        CopyError::User(message)
    }
}

impl Session {
    /// Runs a COPY. False if it failed or left rows out.
    pub(super) fn run_copy(&mut self, copy: &CopyStatement) -> Result<bool> {
        let result = match copy.direction {
            Direction::To => to::export(self, copy),
            Direction::From => from::import(self, copy),
        };
        match result {
            Ok(is_whole) => Ok(is_whole),
            Err(CopyError::User(message)) => {
                self.complain(message);
                Ok(false)
            }
            Err(CopyError::Statement(error)) => {
                self.report(error, "")?;
                Ok(false)
            }
        }
    }
}

/// Returns a message about a file.
fn about(path: &str) -> impl Fn(std::io::Error) -> String {
    move |error| format!("{path}: {error}")
}
