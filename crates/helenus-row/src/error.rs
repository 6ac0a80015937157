//! Errors of stored bytes, and of values that cannot become part of a key.

use thiserror::Error;

/// The error of a value that can't become part of a key, or of key bytes that can't be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum KeyError {
    /// More clustering components than the table has clustering columns.
    #[error("{given} clustering components for {columns} clustering columns")]
    TooManyComponents { given: usize, columns: usize },
    /// The value isn't a valid serialized value of its type.
    #[error("invalid value of type {ty}")]
    InvalidValue { ty: String },
    /// The type can't be part of a clustering key (counter, or a collection that isn't frozen).
    #[error("type {ty} can't be part of a key")]
    UnsupportedType { ty: String },
    /// A component of a composite partition key is longer than 65535 bytes, or the whole key is.
    #[error("Key length of {length} is longer than maximum of 65535")]
    PartitionKeyTooLong { length: usize },
    /// Stored key bytes end too early or hold bytes that no encoder writes.
    #[error("corrupt key: {0}")]
    Corrupt(&'static str),
}

/// The error of a packed value that can't be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RowError {
    /// The bytes end in the middle of a field.
    #[error("packed value ends too early")]
    Truncated,
    /// The value holds bytes that no encoder writes.
    #[error("corrupt packed value: {0}")]
    Corrupt(&'static str),
    /// The key beside the value can't be read.
    #[error(transparent)]
    Key(#[from] KeyError),
}
