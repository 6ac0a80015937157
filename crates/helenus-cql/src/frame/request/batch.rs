//! BATCH: runs several modifications together.

use bytes::{BufMut, Bytes, BytesMut};

use crate::error::CqlError;
use crate::frame::primitive::{BoundValue, Reader, put_long_string, put_short_bytes};
use crate::frame::query_parameters::{QueryParameters, decode_values, encode_values};
use crate::frame::version::ProtocolVersion;

/// The kind of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum BatchKind {
    #[default]
    Logged = 0,
    Unlogged = 1,
    Counter = 2,
}

impl BatchKind {
    pub(crate) fn from_code(code: u8) -> Result<BatchKind, CqlError> {
        match code {
            0 => Ok(BatchKind::Logged),
            1 => Ok(BatchKind::Unlogged),
            2 => Ok(BatchKind::Counter),
            _ => Err(CqlError::Protocol(format!(
                "Invalid BATCH message type {}",
                code.cast_signed()
            ))),
        }
    }
}

/// A statement, given as text or as the id of a prepared statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatementRef {
    Query(String),
    Prepared(Bytes),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchStatement {
    pub statement: StatementRef,
    pub values: Vec<BoundValue>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    pub kind: BatchKind,
    pub statements: Vec<BatchStatement>,
    /// The parameters, without values: each statement has its own.
    pub parameters: QueryParameters,
}

impl Batch {
    pub(crate) fn decode(reader: &mut Reader, version: ProtocolVersion) -> Result<Batch, CqlError> {
        let kind = BatchKind::from_code(reader.u8()?)?;
        // A statement takes at least five bytes: its kind, the length of its id and the count of its values. The count of statements is not
        // checked beforehand, so that the error is that of the first invalid byte.
        let count = reader.u16()?;
        let mut statements = Vec::with_capacity(usize::from(count).min(reader.remaining() / 5));
        for _ in 0..count {
            let statement = match reader.u8()? {
                0 => StatementRef::Query(reader.long_string()?),
                1 => StatementRef::Prepared(reader.short_bytes()?),
                code => {
                    return Err(CqlError::Protocol(format!(
                        "Invalid query kind in BATCH messages. Must be 0 or 1 but got {}",
                        code.cast_signed()
                    )));
                }
            };
            statements.push(BatchStatement {
                statement,
                values: decode_values(reader, version)?,
            });
        }
        Ok(Batch {
            kind,
            statements,
            parameters: QueryParameters::decode(reader, version)?,
        })
    }

    pub(crate) fn encode(&self, version: ProtocolVersion, out: &mut BytesMut) {
        out.put_u8(self.kind as u8);
        let count = u16::try_from(self.statements.len()).unwrap_or(u16::MAX);
        out.put_u16(count);
        for statement in self.statements.iter().take(usize::from(count)) {
            match &statement.statement {
                StatementRef::Query(query) => {
                    out.put_u8(0);
                    put_long_string(out, query);
                }
                StatementRef::Prepared(id) => {
                    out.put_u8(1);
                    put_short_bytes(out, id);
                }
            }
            encode_values(&statement.values, out);
        }
        self.parameters.encode(version, out);
    }
}
