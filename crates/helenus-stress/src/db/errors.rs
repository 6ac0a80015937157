//! Errors of operations, with the protocol's codes and names.

use std::borrow::Cow;

use scylla::errors::{DbError, ExecutionError, PagerExecutionError, RequestAttemptError};

/// A failed operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpError {
    /// The protocol's code. `None` for errors of the client.
    pub code: Option<u32>,
    /// The protocol's name (`OVERLOADED`), or a name for errors of the client (`client timeout`).
    pub name: Cow<'static, str>,
    pub message: String,
}

impl OpError {
    /// Returns an error of the client.
    pub fn client(name: &'static str, message: impl ToString) -> Self {
        Self {
            code: None,
            name: name.into(),
            message: message.to_string(),
        }
    }

    /// Returns the error of a response that does not contain the expected rows.
    pub fn unreadable(error: impl ToString) -> Self {
        Self::client("unreadable answer", error)
    }

    fn server(error: &DbError, message: &str) -> Self {
        let (code, name) = code_and_name(error);
        Self {
            code,
            name,
            message: message.to_owned(),
        }
    }
}

impl std::fmt::Display for OpError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.name, self.message)
    }
}

impl std::error::Error for OpError {}

impl From<RequestAttemptError> for OpError {
    fn from(error: RequestAttemptError) -> Self {
        match &error {
            RequestAttemptError::DbError(db_error, message) => Self::server(db_error, message),
            RequestAttemptError::BrokenConnectionError(_) => Self::client("connection broken", error),
            RequestAttemptError::UnableToAllocStreamId => Self::client("no free stream", error),
            _ => Self::client("driver error", error),
        }
    }
}

impl From<ExecutionError> for OpError {
    fn from(error: ExecutionError) -> Self {
        match error {
            ExecutionError::LastAttemptError(attempt) => attempt.into(),
            ExecutionError::RequestTimeout(_) => Self::client("client timeout", error),
            ExecutionError::ConnectionPoolError(_) | ExecutionError::EmptyPlan => {
                Self::client("no connection", error)
            }
            _ => Self::client("driver error", error),
        }
    }
}

impl From<PagerExecutionError> for OpError {
    fn from(error: PagerExecutionError) -> Self {
        Self::client("driver error", error)
    }
}

fn code_and_name(error: &DbError) -> (Option<u32>, Cow<'static, str>) {
    let (code, name) = match error {
        DbError::ServerError => (0x0000, "SERVER_ERROR"),
        DbError::ProtocolError => (0x000A, "PROTOCOL_ERROR"),
        DbError::AuthenticationError => (0x0100, "BAD_CREDENTIALS"),
        DbError::Unavailable { .. } => (0x1000, "UNAVAILABLE"),
        DbError::Overloaded => (0x1001, "OVERLOADED"),
        DbError::IsBootstrapping => (0x1002, "IS_BOOTSTRAPPING"),
        DbError::TruncateError => (0x1003, "TRUNCATE_ERROR"),
        DbError::WriteTimeout { .. } => (0x1100, "WRITE_TIMEOUT"),
        DbError::ReadTimeout { .. } => (0x1200, "READ_TIMEOUT"),
        DbError::ReadFailure { .. } => (0x1300, "READ_FAILURE"),
        DbError::FunctionFailure { .. } => (0x1400, "FUNCTION_FAILURE"),
        DbError::WriteFailure { .. } => (0x1500, "WRITE_FAILURE"),
        DbError::SyntaxError => (0x2000, "SYNTAX_ERROR"),
        DbError::Unauthorized => (0x2100, "UNAUTHORIZED"),
        DbError::Invalid => (0x2200, "INVALID"),
        DbError::ConfigError => (0x2300, "CONFIG_ERROR"),
        DbError::AlreadyExists { .. } => (0x2400, "ALREADY_EXISTS"),
        DbError::Unprepared { .. } => (0x2500, "UNPREPARED"),
        DbError::Other(0x1600) => (0x1600, "CDC_WRITE_FAILURE"),
        DbError::Other(0x1700) => (0x1700, "CAS_WRITE_UNKNOWN"),
        DbError::Other(code) => return (Some(*code as u32), format!("0x{code:04X}").into()),
        // The code of ScyllaDB's own error differs between connections. Errors of later drivers end here too.
        _ => return (None, "RATE_LIMIT".into()),
    };
    (Some(code), name.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_errors_keep_code_name_and_message() {
        let error = ExecutionError::LastAttemptError(RequestAttemptError::DbError(
            DbError::Overloaded,
            "too much".into(),
        ));
        let error = OpError::from(error);
        assert_eq!((error.code, &*error.name), (Some(0x1001), "OVERLOADED"));
        assert_eq!(error.message, "too much");
        assert_eq!(code_and_name(&DbError::Other(0x1700)).1, "CAS_WRITE_UNKNOWN");
        assert_eq!(
            code_and_name(&DbError::Other(0x1234)),
            (Some(0x1234), "0x1234".into())
        );
    }

    #[test]
    fn a_timeout_of_this_side_has_no_code() {
        let error = OpError::from(ExecutionError::RequestTimeout(std::time::Duration::from_secs(1)));
        assert_eq!((error.code, &*error.name), (None, "client timeout"));
    }
}
