//! The header of a forwarded request.
//!
//! ```text
//! version of the protocol u8 | opcode u8 | flags u16 | version of the schema u64 | token i64
//! | timestamp in µs i64 | time in s i64 | keyspace [string] | id of the result's columns, 16 bytes
//! | texts: count u16, each: u8, keyspace [string] if that is 1, text [long string]
//! | share: modifications i32, each: keys i32, each [bytes]
//! | body
//! ```
//!
//! The parts from the timestamp on are there if their flag is set.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};

use crate::error::CqlError;
use crate::frame::opcode::Opcode;
use crate::frame::primitive::{Reader, len_i32, put_bytes, put_long_string, put_string};
use crate::frame::version::ProtocolVersion;

const TRACED: u16 = 0x0001;
const MASKS: u16 = 0x0002;
const FOR_CLIENT: u16 = 0x0004;
const TIMESTAMP: u16 = 0x0008;
const NOW: u16 = 0x0010;
const KEYSPACE: u16 = 0x0020;
const RESULT_ID: u16 = 0x0040;
const TEXTS: u16 = 0x0080;
const SHARE: u16 = 0x0100;
const KNOWN_FLAGS: u16 = 0x01FF;

/// Bytes of the parts that every header has.
const FIXED_LEN: usize = 20;

/// The partitions of each of a request's modifications that one node executes.
pub type Share = Arc<[Vec<Bytes>]>;

/// The header of a forwarded request: the facts that the owner needs and that the client's body lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardedRequest<'a> {
    /// The version of the client's protocol.
    pub version: ProtocolVersion,
    /// The kind of the body: QUERY, EXECUTE or BATCH.
    pub opcode: Opcode,
    /// True if the client requests a trace.
    pub is_traced: bool,
    /// True if masked columns are shown masked. The first node has checked the role's permissions.
    pub masks: bool,
    /// True if the result goes to the client as it is encoded. False if the first node reads it.
    pub is_for_client: bool,
    /// The version of the schema that the first node has. The owner's must not be older.
    pub schema_version: u64,
    /// The token by which the owner was chosen.
    pub token: i64,
    /// The timestamp of writes that the first node has chosen for all parts of a request, in microseconds since 1970.
    pub timestamp_us: Option<i64>,
    /// The time of the request that the first node has chosen, in seconds since 1970.
    pub now_s: Option<i64>,
    /// The keyspace of unqualified names. `None` if the client has not chosen one, or the body names it.
    pub keyspace: Option<Cow<'a, str>>,
    /// The id of the result's columns that a client before v5 knows. `None` if it does not request to omit them.
    pub result_id: Option<[u8; 16]>,
    /// The prepared statements of the body, for an owner that does not know their ids.
    pub texts: Vec<PreparedText<'a>>,
    /// The partitions that the owner modifies. `None` if it runs the whole request.
    pub share: Option<Share>,
}

/// The text of a prepared statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreparedText<'a> {
    /// The keyspace in which the statement was prepared.
    pub keyspace: Option<Cow<'a, str>>,
    pub text: Cow<'a, str>,
}

impl ForwardedRequest<'_> {
    fn flags(&self) -> u16 {
        let flag = |present: bool, flag| if present { flag } else { 0 };
        flag(self.is_traced, TRACED)
            | flag(self.masks, MASKS)
            | flag(self.is_for_client, FOR_CLIENT)
            | flag(self.timestamp_us.is_some(), TIMESTAMP)
            | flag(self.now_s.is_some(), NOW)
            | flag(self.keyspace.is_some(), KEYSPACE)
            | flag(self.result_id.is_some(), RESULT_ID)
            | flag(!self.texts.is_empty(), TEXTS)
            | flag(self.share.is_some(), SHARE)
    }

    /// Appends the header. The body comes behind it.
    pub fn encode(&self, out: &mut BytesMut) {
        out.reserve(FIXED_LEN);
        out.put_u8(self.version.number());
        out.put_u8(self.opcode as u8);
        out.put_u16(self.flags());
        out.put_u64(self.schema_version);
        out.put_i64(self.token);
        if let Some(timestamp_us) = self.timestamp_us {
            out.put_i64(timestamp_us);
        }
        if let Some(now_s) = self.now_s {
            out.put_i64(now_s);
        }
        if let Some(keyspace) = &self.keyspace {
            put_string(out, keyspace);
        }
        if let Some(id) = &self.result_id {
            out.put_slice(id);
        }
        if !self.texts.is_empty() {
            encode_texts(&self.texts, out);
        }
        if let Some(share) = &self.share {
            encode_share(share, out);
        }
    }

    /// Reads the header. Returns it with the body.
    ///
    /// # Errors
    /// [`CqlError::Protocol`] if the bytes are not such a header.
    pub fn decode(message: Bytes) -> Result<(ForwardedRequest<'static>, Bytes), CqlError> {
        let reader = &mut Reader::new(message);
        let version = ProtocolVersion::from_number(reader.u8()?).ok_or_else(|| invalid("version"))?;
        let opcode = match Opcode::from_code(reader.u8()?) {
            Some(opcode @ (Opcode::Query | Opcode::Execute | Opcode::Batch)) => opcode,
            _ => return Err(invalid("opcode")),
        };
        let flags = reader.u16()?;
        if flags & !KNOWN_FLAGS != 0 {
            return Err(invalid("flag"));
        }
        let has = |flag| flags & flag != 0;
        let header = ForwardedRequest {
            version,
            opcode,
            is_traced: has(TRACED),
            masks: has(MASKS),
            is_for_client: has(FOR_CLIENT),
            schema_version: reader.i64()?.cast_unsigned(),
            token: reader.i64()?,
            timestamp_us: has(TIMESTAMP).then(|| reader.i64()).transpose()?,
            now_s: has(NOW).then(|| reader.i64()).transpose()?,
            keyspace: has(KEYSPACE)
                .then(|| reader.string())
                .transpose()?
                .map(Cow::Owned),
            result_id: has(RESULT_ID).then(|| decode_id(reader)).transpose()?,
            texts: match has(TEXTS) {
                true => decode_texts(reader)?,
                false => Vec::new(),
            },
            share: has(SHARE).then(|| decode_share(reader)).transpose()?,
        };
        Ok((header, reader.clone().into_rest()))
    }
}

fn invalid(part: &str) -> CqlError {
    CqlError::Protocol(format!("A forwarded request has an unknown {part}"))
}

fn decode_id(reader: &mut Reader) -> Result<[u8; 16], CqlError> {
    let id = reader.take(16)?;
    id.as_ref().try_into().map_err(|_| invalid("id"))
}

fn encode_texts(texts: &[PreparedText<'_>], out: &mut BytesMut) {
    out.put_u16(u16::try_from(texts.len()).unwrap_or(u16::MAX));
    for PreparedText { keyspace, text } in texts.iter().take(usize::from(u16::MAX)) {
        out.put_u8(u8::from(keyspace.is_some()));
        if let Some(keyspace) = keyspace {
            put_string(out, keyspace);
        }
        put_long_string(out, text);
    }
}

fn decode_texts(reader: &mut Reader) -> Result<Vec<PreparedText<'static>>, CqlError> {
    let count = reader.count(5)?;
    let mut texts = Vec::with_capacity(count);
    for _ in 0..count {
        let keyspace = match reader.u8()? {
            0 => None,
            _ => Some(Cow::Owned(reader.string()?)),
        };
        let text = Cow::Owned(reader.long_string()?);
        texts.push(PreparedText { keyspace, text });
    }
    Ok(texts)
}

fn encode_share(share: &Share, out: &mut BytesMut) {
    out.put_i32(len_i32(share.len()));
    for keys in share.iter() {
        out.put_i32(len_i32(keys.len()));
        keys.iter().for_each(|key| put_bytes(out, Some(key)));
    }
}

fn decode_share(reader: &mut Reader) -> Result<Share, CqlError> {
    let mut share = Vec::new();
    for _ in 0..reader.long_count(4)? {
        let mut keys = Vec::new();
        for _ in 0..reader.long_count(4)? {
            keys.push(reader.bytes()?.ok_or_else(|| invalid("key"))?);
        }
        share.push(keys);
    }
    Ok(share.into())
}
