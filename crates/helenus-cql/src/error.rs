//! Errors of statements, as the native protocol reports them (spec v5, section 9).
//!
//! All crates above report errors to clients as [`CqlError`]. [`CqlError::code`] maps every error to its code.

use std::fmt;

/// Consistency levels with the codes of the protocol (spec v5, section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[repr(u16)]
pub enum Consistency {
    Any = 0x0000,
    #[default]
    One = 0x0001,
    Two = 0x0002,
    Three = 0x0003,
    Quorum = 0x0004,
    All = 0x0005,
    LocalQuorum = 0x0006,
    EachQuorum = 0x0007,
    Serial = 0x0008,
    LocalSerial = 0x0009,
    LocalOne = 0x000A,
    NodeLocal = 0x000B,
}

impl Consistency {
    /// Returns the level with that protocol code. `None` if there is none.
    pub fn from_code(code: u16) -> Option<Consistency> {
        Some(match code {
            0x0000 => Consistency::Any,
            0x0001 => Consistency::One,
            0x0002 => Consistency::Two,
            0x0003 => Consistency::Three,
            0x0004 => Consistency::Quorum,
            0x0005 => Consistency::All,
            0x0006 => Consistency::LocalQuorum,
            0x0007 => Consistency::EachQuorum,
            0x0008 => Consistency::Serial,
            0x0009 => Consistency::LocalSerial,
            0x000A => Consistency::LocalOne,
            0x000B => Consistency::NodeLocal,
            _ => return None,
        })
    }

    pub fn is_serial(self) -> bool {
        matches!(self, Consistency::Serial | Consistency::LocalSerial)
    }
}

impl fmt::Display for Consistency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Consistency::Any => "ANY",
            Consistency::One => "ONE",
            Consistency::Two => "TWO",
            Consistency::Three => "THREE",
            Consistency::Quorum => "QUORUM",
            Consistency::All => "ALL",
            Consistency::LocalQuorum => "LOCAL_QUORUM",
            Consistency::EachQuorum => "EACH_QUORUM",
            Consistency::Serial => "SERIAL",
            Consistency::LocalSerial => "LOCAL_SERIAL",
            Consistency::LocalOne => "LOCAL_ONE",
            Consistency::NodeLocal => "NODE_LOCAL",
        })
    }
}

/// The kind of a write that timed out or failed (spec v5, section 9, `<writeType>`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteType {
    Simple,
    Batch,
    UnloggedBatch,
    Counter,
    BatchLog,
    Cas,
    View,
    Cdc,
}

impl WriteType {
    pub fn name(self) -> &'static str {
        match self {
            WriteType::Simple => "SIMPLE",
            WriteType::Batch => "BATCH",
            WriteType::UnloggedBatch => "UNLOGGED_BATCH",
            WriteType::Counter => "COUNTER",
            WriteType::BatchLog => "BATCH_LOG",
            WriteType::Cas => "CAS",
            WriteType::View => "VIEW",
            WriteType::Cdc => "CDC",
        }
    }
}

/// The kind of operation that exceeded a partition's rate limit (ScyllaDB's `OperationType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LimitedOperation {
    Read,
    Write,
}

impl LimitedOperation {
    /// Returns the name used in messages.
    pub fn name(self) -> &'static str {
        match self {
            LimitedOperation::Read => "reads",
            LimitedOperation::Write => "writes",
        }
    }
}

/// The code of [`CqlError::RateLimited`], which is ScyllaDB's. SUPPORTED reports it to clients.
pub const RATE_LIMITED_CODE: i32 = 0xF000;

/// An error as a client sees it. Messages use Cassandra's words where drivers, tools and tests match on them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CqlError {
    #[error("{0}")]
    Server(String),
    #[error("{0}")]
    Protocol(String),
    #[error("{0}")]
    BadCredentials(String),
    #[error("{message}")]
    Unavailable {
        message: String,
        consistency: Consistency,
        required: i32,
        alive: i32,
    },
    #[error("{0}")]
    Overloaded(String),
    #[error("{0}")]
    IsBootstrapping(String),
    #[error("{0}")]
    Truncate(String),
    #[error("{message}")]
    WriteTimeout {
        message: String,
        consistency: Consistency,
        received: i32,
        block_for: i32,
        write_type: WriteType,
    },
    #[error("{message}")]
    ReadTimeout {
        message: String,
        consistency: Consistency,
        received: i32,
        block_for: i32,
        data_present: bool,
    },
    #[error("{message}")]
    ReadFailure {
        message: String,
        consistency: Consistency,
        received: i32,
        block_for: i32,
        failures: Vec<Failure>,
        data_present: bool,
    },
    #[error("{message}")]
    FunctionFailure {
        message: String,
        keyspace: String,
        function: String,
        arg_types: Vec<String>,
    },
    #[error("{message}")]
    WriteFailure {
        message: String,
        consistency: Consistency,
        received: i32,
        block_for: i32,
        failures: Vec<Failure>,
        write_type: WriteType,
    },
    #[error("{message}")]
    CasWriteUnknown {
        message: String,
        consistency: Consistency,
        received: i32,
        block_for: i32,
    },
    /// ScyllaDB's `RATE_LIMIT_ERROR`. A partition is requested more often than its table allows, and the request had no effect. Only
    /// clients that requested the extension receive this error ([`CqlError::for_client`]).
    #[error("{message}")]
    RateLimited {
        message: String,
        operation: LimitedOperation,
    },
    #[error("{0}")]
    Syntax(String),
    #[error("{0}")]
    Unauthorized(String),
    #[error("{0}")]
    Invalid(String),
    #[error("{0}")]
    Config(String),
    /// A table or keyspace exists already. `table` is empty for a keyspace.
    #[error("{message}")]
    AlreadyExists {
        message: String,
        keyspace: String,
        table: String,
    },
    /// The id of a prepared statement that this node doesn't know.
    #[error("Prepared query with ID {} not found (either the query was not prepared on this host (maybe the host has been restarted?) or you have prepared too many queries and it has been evicted from the internal cache)", hex(.0))]
    Unprepared(Vec<u8>),
    /// An error of a request that caused warnings before it failed. [`CqlError::warned`] creates it.
    #[error("{error}")]
    Warned {
        error: Box<CqlError>,
        warnings: Vec<String>,
    },
}

/// The reason for which a replica failed (spec v5, section 9, `<reasonmap>`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub endpoint: std::net::IpAddr,
    pub code: u16,
}

impl CqlError {
    /// Returns the error code of the protocol.
    pub fn code(&self) -> i32 {
        match self {
            CqlError::Server(_) => 0x0000,
            CqlError::Protocol(_) => 0x000A,
            CqlError::BadCredentials(_) => 0x0100,
            CqlError::Unavailable { .. } => 0x1000,
            CqlError::Overloaded(_) => 0x1001,
            CqlError::IsBootstrapping(_) => 0x1002,
            CqlError::Truncate(_) => 0x1003,
            CqlError::WriteTimeout { .. } => 0x1100,
            CqlError::ReadTimeout { .. } => 0x1200,
            CqlError::ReadFailure { .. } => 0x1300,
            CqlError::FunctionFailure { .. } => 0x1400,
            CqlError::WriteFailure { .. } => 0x1500,
            CqlError::CasWriteUnknown { .. } => 0x1700,
            CqlError::RateLimited { .. } => RATE_LIMITED_CODE,
            CqlError::Syntax(_) => 0x2000,
            CqlError::Unauthorized(_) => 0x2100,
            CqlError::Invalid(_) => 0x2200,
            CqlError::Config(_) => 0x2300,
            CqlError::AlreadyExists { .. } => 0x2400,
            CqlError::Unprepared(_) => 0x2500,
            CqlError::Warned { error, .. } => error.code(),
        }
    }

    /// Returns the replacement of [`CqlError::RateLimited`] for a client that does not know it. `None` for other errors. As in ScyllaDB, it
    /// is a CONFIG error. Drivers do not retry those at any node, so the partition's owner is not loaded again.
    pub fn for_client(&self, knows_rate_limits: bool) -> Option<CqlError> {
        match self {
            CqlError::RateLimited { message, .. } if !knows_rate_limits => {
                Some(CqlError::Config(message.clone()))
            }
            _ => None,
        }
    }

    /// Returns the error with these warnings. Without warnings, the error is unchanged.
    pub fn warned(self, warnings: Vec<String>) -> CqlError {
        match warnings.is_empty() {
            true => self,
            false => CqlError::Warned {
                error: Box::new(self),
                warnings,
            },
        }
    }

    /// Splits the error from its warnings.
    pub fn split(self) -> (CqlError, Vec<String>) {
        match self {
            CqlError::Warned { error, warnings } => (*error, warnings),
            error => (error, Vec::new()),
        }
    }

    /// Returns an Invalid error, which is the most common kind.
    pub fn invalid(message: impl Into<String>) -> CqlError {
        CqlError::Invalid(message.into())
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
