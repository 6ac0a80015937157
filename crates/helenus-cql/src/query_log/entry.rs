//! An entry of the log, which records a successful request.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};

use crate::error::CqlError;
use crate::frame::request::BatchKind;
use crate::frame::{
    BoundValue, ProtocolVersion, QueryParameters, Reader, decode_values, encode_values, put_bytes,
    put_long_string,
};

const SINGLE: u8 = 0;
const BATCH: u8 = 1;
/// Encoding of an absent timestamp.
const NO_TIMESTAMP: i64 = i64::MIN;

/// A successful request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The time at which the request began, in milliseconds since 1970.
    pub start_ms: i64,
    pub protocol_version: ProtocolVersion,
    /// The timestamp that the node generated for the writes of a request without one, in microseconds since 1970.
    pub generated_timestamp_us: Option<i64>,
    /// The node's time at which the request began, in seconds since 1970.
    pub generated_now_s: i64,
    /// The keyspace in use. `None` if there was none.
    pub keyspace: Option<String>,
    /// The parameters of the request, including the values of a single query.
    pub parameters: QueryParameters,
    pub statements: Statements,
}

/// The statements of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Statements {
    /// The text of a QUERY, or of the prepared statement of an EXECUTE.
    Single(Arc<str>),
    Batch(BatchKind, Vec<LoggedStatement>),
}

/// A statement of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedStatement {
    pub text: Arc<str>,
    pub values: Vec<BoundValue>,
}

impl Entry {
    /// Returns the client's timestamp, or else the one that the node generated.
    pub fn timestamp_us(&self) -> Option<i64> {
        self.parameters.timestamp_us.or(self.generated_timestamp_us)
    }

    /// Appends the entry as a payload.
    pub(super) fn encode(&self, out: &mut BytesMut) {
        out.put_u8(match self.statements {
            Statements::Single(_) => SINGLE,
            Statements::Batch(..) => BATCH,
        });
        out.put_i64(self.start_ms);
        out.put_u8(self.protocol_version.number());
        out.put_i64(self.generated_timestamp_us.unwrap_or(NO_TIMESTAMP));
        out.put_i64(self.generated_now_s);
        put_bytes(out, self.keyspace.as_deref().map(str::as_bytes));
        self.encode_parameters(out);
        match &self.statements {
            Statements::Single(text) => put_long_string(out, text),
            Statements::Batch(kind, statements) => encode_batch(*kind, statements, out),
        }
    }

    fn encode_parameters(&self, out: &mut BytesMut) {
        let start = out.len();
        out.put_u32(0);
        self.parameters.encode(self.protocol_version, out);
        let len = u32::try_from(out.len() - start - 4).unwrap_or(u32::MAX);
        if let Some(field) = out.get_mut(start..start + 4) {
            field.copy_from_slice(&len.to_be_bytes());
        }
    }

    /// Reads a payload.
    ///
    /// # Errors
    /// The payload is not an entry.
    pub fn decode(payload: Bytes) -> Result<Entry, CqlError> {
        let mut reader = Reader::new(payload);
        let kind = reader.u8()?;
        let start_ms = reader.i64()?;
        let number = reader.u8()?;
        let protocol_version = ProtocolVersion::from_number(number)
            .ok_or_else(|| CqlError::Protocol(format!("Unknown protocol version {number}")))?;
        let generated_timestamp_us = Some(reader.i64()?).filter(|timestamp| *timestamp != NO_TIMESTAMP);
        let generated_now_s = reader.i64()?;
        let keyspace = reader.bytes()?.map(utf8).transpose()?;
        let parameters_len = reader.u32()?;
        let mut parameters = Reader::new(reader.take(parameters_len as usize)?);
        Ok(Entry {
            start_ms,
            protocol_version,
            generated_timestamp_us,
            generated_now_s,
            keyspace,
            parameters: QueryParameters::decode(&mut parameters, protocol_version)?,
            statements: match kind {
                SINGLE => Statements::Single(reader.long_string()?.into()),
                BATCH => decode_batch(&mut reader, protocol_version)?,
                _ => return Err(CqlError::Protocol(format!("Unknown kind {kind} of entry"))),
            },
        })
    }
}

/// Appends a batch. A text that several statements share is written once, since the statements of a batch are often one prepared statement.
/// Texts are compared by their address, so that long ones are not read for each statement.
fn encode_batch(kind: BatchKind, statements: &[LoggedStatement], out: &mut BytesMut) {
    let statements = statements.get(..usize::from(u16::MAX)).unwrap_or(statements);
    let mut known: HashMap<*const u8, u16> = HashMap::new();
    let mut texts = Vec::new();
    let mut places = Vec::with_capacity(statements.len());
    for LoggedStatement { text, .. } in statements {
        let place = known.entry(text.as_ptr()).or_insert_with(|| {
            texts.push(text);
            (texts.len() - 1) as u16
        });
        places.push(*place);
    }
    out.put_u8(kind as u8);
    out.put_u16(texts.len() as u16);
    for text in texts {
        put_long_string(out, text);
    }
    out.put_u16(statements.len() as u16);
    for (statement, place) in statements.iter().zip(places) {
        out.put_u16(place);
        encode_values(&statement.values, out);
    }
}

fn decode_batch(reader: &mut Reader, version: ProtocolVersion) -> Result<Statements, CqlError> {
    let kind = BatchKind::from_code(reader.u8()?)?;
    let texts = (0..reader.count(4)?)
        .map(|_| Ok(reader.long_string()?.into()))
        .collect::<Result<Vec<Arc<str>>, CqlError>>()?;
    let mut statements = Vec::new();
    for _ in 0..reader.count(4)? {
        let place = reader.u16()?;
        let text = texts
            .get(usize::from(place))
            .ok_or_else(|| CqlError::Protocol(format!("There is no text {place}")))?;
        statements.push(LoggedStatement {
            text: text.clone(),
            values: decode_values(reader, version)?,
        });
    }
    Ok(Statements::Batch(kind, statements))
}

fn utf8(bytes: Bytes) -> Result<String, CqlError> {
    String::from_utf8(bytes.into()).map_err(|_| CqlError::Protocol("Cannot decode string as UTF8".to_owned()))
}
