//! ERROR (spec v5, section 9; Cassandra's `ErrorMessage`).
//!
//! Older versions don't have every error: their clients receive the nearest error that they know.

use std::borrow::Cow;

use bytes::{BufMut, BytesMut};

use crate::error::{Consistency, CqlError, Failure, LimitedOperation, RATE_LIMITED_CODE, WriteType};
use crate::frame::primitive::{
    Reader, put_consistency, put_inet_addr, put_short_bytes, put_string, put_string_list,
};
use crate::frame::version::ProtocolVersion;

/// Returns the error in a form that a client of that version knows.
fn for_version(error: &CqlError, version: ProtocolVersion) -> Cow<'_, CqlError> {
    let timed_out = |received: i32| format!("Operation timed out - received only {received} responses.");
    match error {
        CqlError::CasWriteUnknown {
            consistency,
            received,
            block_for,
            ..
        } if version < ProtocolVersion::V5 => Cow::Owned(CqlError::WriteTimeout {
            message: timed_out(*received),
            consistency: *consistency,
            received: *received,
            block_for: *block_for,
            write_type: WriteType::Cas,
        }),
        CqlError::ReadFailure {
            consistency,
            received,
            block_for,
            data_present,
            ..
        } if version < ProtocolVersion::V4 => Cow::Owned(CqlError::ReadTimeout {
            message: timed_out(*received),
            consistency: *consistency,
            received: *received,
            block_for: *block_for,
            data_present: *data_present,
        }),
        CqlError::WriteFailure {
            consistency,
            received,
            block_for,
            write_type,
            ..
        } if version < ProtocolVersion::V4 => Cow::Owned(CqlError::WriteTimeout {
            message: timed_out(*received),
            consistency: *consistency,
            received: *received,
            block_for: *block_for,
            write_type: *write_type,
        }),
        CqlError::FunctionFailure { message, .. } if version < ProtocolVersion::V4 => {
            Cow::Owned(CqlError::Invalid(format!("ERROR FUNCTION_FAILURE: {message}")))
        }
        CqlError::Warned { error, .. } => for_version(error, version),
        other => Cow::Borrowed(other),
    }
}

pub(super) fn encode_error(error: &CqlError, version: ProtocolVersion, out: &mut BytesMut) {
    let error = for_version(error, version);
    out.put_i32(error.code());
    match &*error {
        CqlError::Unprepared(_) | CqlError::Warned { .. } => put_string(out, &error.to_string()),
        CqlError::Server(message)
        | CqlError::Protocol(message)
        | CqlError::BadCredentials(message)
        | CqlError::Overloaded(message)
        | CqlError::IsBootstrapping(message)
        | CqlError::Truncate(message)
        | CqlError::Syntax(message)
        | CqlError::Unauthorized(message)
        | CqlError::Invalid(message)
        | CqlError::Config(message)
        | CqlError::Unavailable { message, .. }
        | CqlError::WriteTimeout { message, .. }
        | CqlError::ReadTimeout { message, .. }
        | CqlError::ReadFailure { message, .. }
        | CqlError::FunctionFailure { message, .. }
        | CqlError::WriteFailure { message, .. }
        | CqlError::CasWriteUnknown { message, .. }
        | CqlError::RateLimited { message, .. }
        | CqlError::AlreadyExists { message, .. } => put_string(out, message),
    }
    encode_details(&error, version, out);
}

fn put_counts(out: &mut BytesMut, consistency: Consistency, first: i32, second: i32) {
    put_consistency(out, consistency);
    out.put_i32(first);
    out.put_i32(second);
}

fn put_failures(out: &mut BytesMut, failures: &[Failure], version: ProtocolVersion) {
    out.put_i32(i32::try_from(failures.len()).unwrap_or(i32::MAX));
    if version >= ProtocolVersion::V5 {
        for failure in failures {
            put_inet_addr(out, failure.endpoint);
            out.put_u16(failure.code);
        }
    }
}

fn encode_details(error: &CqlError, version: ProtocolVersion, out: &mut BytesMut) {
    match error {
        CqlError::Server(_)
        | CqlError::Protocol(_)
        | CqlError::BadCredentials(_)
        | CqlError::Overloaded(_)
        | CqlError::IsBootstrapping(_)
        | CqlError::Truncate(_)
        | CqlError::Syntax(_)
        | CqlError::Unauthorized(_)
        | CqlError::Invalid(_)
        | CqlError::Config(_)
        | CqlError::Warned { .. } => {}
        CqlError::Unavailable {
            consistency,
            required,
            alive,
            ..
        } => {
            put_counts(out, *consistency, *required, *alive);
        }
        CqlError::WriteTimeout {
            consistency,
            received,
            block_for,
            write_type,
            ..
        } => {
            put_counts(out, *consistency, *received, *block_for);
            put_string(out, write_type.name());
            // The number of contentions, which v5 requires, is not known here.
            if *write_type == WriteType::Cas && version >= ProtocolVersion::V5 {
                out.put_u16(0);
            }
        }
        CqlError::ReadTimeout {
            consistency,
            received,
            block_for,
            data_present,
            ..
        } => {
            put_counts(out, *consistency, *received, *block_for);
            out.put_u8(u8::from(*data_present));
        }
        CqlError::ReadFailure {
            consistency,
            received,
            block_for,
            failures,
            data_present,
            ..
        } => {
            put_counts(out, *consistency, *received, *block_for);
            put_failures(out, failures, version);
            out.put_u8(u8::from(*data_present));
        }
        CqlError::FunctionFailure {
            keyspace,
            function,
            arg_types,
            ..
        } => {
            put_string(out, keyspace);
            put_string(out, function);
            put_string_list(out, arg_types);
        }
        CqlError::WriteFailure {
            consistency,
            received,
            block_for,
            failures,
            write_type,
            ..
        } => {
            put_counts(out, *consistency, *received, *block_for);
            put_failures(out, failures, version);
            put_string(out, write_type.name());
        }
        CqlError::CasWriteUnknown {
            consistency,
            received,
            block_for,
            ..
        } => {
            put_counts(out, *consistency, *received, *block_for);
        }
        CqlError::RateLimited { operation, .. } => {
            out.put_u8(match operation {
                LimitedOperation::Read => 0,
                LimitedOperation::Write => 1,
            });
            // The field says that the partition's owner refused the request, not the coordinator.
            out.put_u8(0);
        }
        CqlError::AlreadyExists { keyspace, table, .. } => {
            put_string(out, keyspace);
            put_string(out, table);
        }
        CqlError::Unprepared(id) => put_short_bytes(out, id),
    }
}

fn write_type(reader: &mut Reader) -> Result<WriteType, CqlError> {
    let name = reader.string()?;
    let all = [
        WriteType::Simple,
        WriteType::Batch,
        WriteType::UnloggedBatch,
        WriteType::Counter,
        WriteType::BatchLog,
        WriteType::Cas,
        WriteType::View,
        WriteType::Cdc,
    ];
    all.into_iter()
        .find(|kind| kind.name() == name)
        .ok_or_else(|| CqlError::Protocol(format!("Invalid value '{name}' for WriteType")))
}

fn failures(reader: &mut Reader, version: ProtocolVersion) -> Result<Vec<Failure>, CqlError> {
    if version < ProtocolVersion::V5 {
        reader.i32()?;
        return Ok(Vec::new());
    }
    let count = reader.long_count(7)?;
    (0..count)
        .map(|_| {
            Ok(Failure {
                endpoint: reader.inet_addr()?,
                code: reader.u16()?,
            })
        })
        .collect()
}

/// Reads an error. v4 reports the number of failed replicas but not their addresses, so that the list is empty.
pub(super) fn decode_error(reader: &mut Reader, version: ProtocolVersion) -> Result<CqlError, CqlError> {
    let code = reader.i32()?;
    let message = reader.string()?;
    Ok(match code {
        0x000A => CqlError::Protocol(message),
        0x0100 => CqlError::BadCredentials(message),
        0x1000 => CqlError::Unavailable {
            message,
            consistency: reader.consistency()?,
            required: reader.i32()?,
            alive: reader.i32()?,
        },
        0x1001 => CqlError::Overloaded(message),
        0x1002 => CqlError::IsBootstrapping(message),
        0x1003 => CqlError::Truncate(message),
        0x1100 => CqlError::WriteTimeout {
            message,
            consistency: reader.consistency()?,
            received: reader.i32()?,
            block_for: reader.i32()?,
            write_type: write_type(reader)?,
        },
        0x1200 => CqlError::ReadTimeout {
            message,
            consistency: reader.consistency()?,
            received: reader.i32()?,
            block_for: reader.i32()?,
            data_present: reader.u8()? != 0,
        },
        0x1300 => CqlError::ReadFailure {
            message,
            consistency: reader.consistency()?,
            received: reader.i32()?,
            block_for: reader.i32()?,
            failures: failures(reader, version)?,
            data_present: reader.u8()? != 0,
        },
        0x1400 => CqlError::FunctionFailure {
            message,
            keyspace: reader.string()?,
            function: reader.string()?,
            arg_types: reader.string_list()?,
        },
        0x1500 => CqlError::WriteFailure {
            message,
            consistency: reader.consistency()?,
            received: reader.i32()?,
            block_for: reader.i32()?,
            failures: failures(reader, version)?,
            write_type: write_type(reader)?,
        },
        0x1700 => CqlError::CasWriteUnknown {
            message,
            consistency: reader.consistency()?,
            received: reader.i32()?,
            block_for: reader.i32()?,
        },
        0x2000 => CqlError::Syntax(message),
        0x2100 => CqlError::Unauthorized(message),
        0x2200 => CqlError::Invalid(message),
        0x2300 => CqlError::Config(message),
        0x2400 => CqlError::AlreadyExists {
            message,
            keyspace: reader.string()?,
            table: reader.string()?,
        },
        0x2500 => CqlError::Unprepared(reader.short_bytes()?.to_vec()),
        RATE_LIMITED_CODE => {
            let operation = match reader.u8()? {
                0 => LimitedOperation::Read,
                _ => LimitedOperation::Write,
            };
            reader.u8()?;
            CqlError::RateLimited { message, operation }
        }
        // The code is 0x0000, or one that only a newer server has.
        _ => CqlError::Server(message),
    })
}
