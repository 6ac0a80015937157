//! COPY: writes a table to a CSV file, or the file to the table, with cqlsh's syntax and options.

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

/// Reason why a COPY ended early.
enum CopyError {
    /// Error of the server or the connection.
    Statement(StatementError),
    /// Error that the user can correct.
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
    /// Runs a COPY. Returns false if it failed or left out rows.
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

/// Returns a function that adds the file's name to an error.
fn about(path: &str) -> impl Fn(std::io::Error) -> String {
    move |error| format!("{path}: {error}")
}
