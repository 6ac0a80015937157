//! What a statement can fail with, as the native protocol tells it (spec v5, section 9).
//!
//! Every floor above reports to clients through [`CqlError`]; the map to codes is [`CqlError::code`], exhaustive.

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
    /// Returns the level of that protocol code.
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

/// What kind of write timed out or failed (spec v5, section 9, `<writeType>`).
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

/// What a partition was asked for too often (ScyllaDB's `OperationType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LimitedOperation {
    Read,
    Write,
}

impl LimitedOperation {
    /// As messages call them.
    pub fn name(self) -> &'static str {
        match self {
            LimitedOperation::Read => "reads",
            LimitedOperation::Write => "writes",
        }
    }
}

/// The code of [`CqlError::RateLimited`], which SUPPORTED tells: ScyllaDB's.
pub const RATE_LIMITED_CODE: i32 = 0xF000;

/// An error as a client sees it. Messages use Cassandra's own words where drivers, tools and tests match on them.
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
    /// ScyllaDB's `RATE_LIMIT_ERROR`: a partition is asked for more often than its table allows, and nothing was done. Only clients that
    /// requested the extension are told it ([`CqlError::for_client`]).
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
    /// `table` is empty when it is the keyspace that exists.
    #[error("{message}")]
    AlreadyExists {
        message: String,
        keyspace: String,
        table: String,
    },
    /// A prepared statement that this node doesn't know; carries the id that was asked for.
    #[error("Prepared query with ID {} not found (either the query was not prepared on this host (maybe the host has been restarted?) or you have prepared too many queries and it has been evicted from the internal cache)", hex(.0))]
    Unprepared(Vec<u8>),
    /// An error of a request that had warnings before it failed; made by [`CqlError::warned`].
    #[error("{error}")]
    Warned {
        error: Box<CqlError>,
        warnings: Vec<String>,
    },
}

/// Why a replica failed (spec v5, section 9, `<reasonmap>`).
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

    /// Returns the error for a client that does not know [`CqlError::RateLimited`], if it is that one. As in ScyllaDB a CONFIG error:
    /// drivers do not repeat the request, neither at this node nor at another, which would ask the partition's owner once more.
    pub fn for_client(&self, knows_rate_limits: bool) -> Option<CqlError> {
        match self {
            CqlError::RateLimited { message, .. } if !knows_rate_limits => {
                Some(CqlError::Config(message.clone()))
            }
            _ => None,
        }
    }

    /// Returns the error with warnings that go with it, if there are any.
    pub fn warned(self, warnings: Vec<String>) -> CqlError {
        match warnings.is_empty() {
            true => self,
            false => CqlError::Warned {
                error: Box::new(self),
                warnings,
            },
        }
    }

    /// Returns the error without its warnings, and those.
    pub fn split(self) -> (CqlError, Vec<String>) {
        match self {
            CqlError::Warned { error, warnings } => (*error, warnings),
            error => (error, Vec::new()),
        }
    }

    /// Returns an Invalid error; the commonest by far.
    pub fn invalid(message: impl Into<String>) -> CqlError {
        CqlError::Invalid(message.into())
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
