//! The parameters of QUERY, EXECUTE and BATCH (spec v5, section 4.1.4; Cassandra's `QueryOptions.Codec`).

use bytes::{BufMut, Bytes, BytesMut};

use super::primitive::{BoundValue, Reader, put_bytes, put_consistency, put_string, put_value};
use super::version::ProtocolVersion;
use crate::error::{Consistency, CqlError};

const VALUES: u32 = 0x0001;
const SKIP_METADATA: u32 = 0x0002;
const PAGE_SIZE: u32 = 0x0004;
const PAGING_STATE: u32 = 0x0008;
const SERIAL_CONSISTENCY: u32 = 0x0010;
const DEFAULT_TIMESTAMP: u32 = 0x0020;
const NAMES_FOR_VALUES: u32 = 0x0040;
const KEYSPACE: u32 = 0x0080;
const NOW_IN_SECONDS: u32 = 0x0100;

/// The parameters with which a statement is executed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueryParameters {
    pub consistency: Consistency,
    pub values: Vec<BoundValue>,
    /// The names of the values, one for each. `None` if the values are bound by position.
    pub names: Option<Vec<String>>,
    /// True if the client knows the metadata of the result and requests that it is omitted.
    pub skip_metadata: bool,
    /// Maximum rows of a page. If it is `None` or not positive, all rows are in one page.
    pub page_size: Option<i32>,
    pub paging_state: Option<Bytes>,
    pub serial_consistency: Option<Consistency>,
    /// Microseconds since 1970.
    pub default_timestamp: Option<i64>,
    /// The keyspace in which names are resolved, instead of the connection's (v5).
    pub keyspace: Option<String>,
    /// The current time in seconds since 1970, instead of the server's clock (v5).
    pub now_in_seconds: Option<i32>,
}

impl QueryParameters {
    pub(crate) fn decode(reader: &mut Reader, version: ProtocolVersion) -> Result<QueryParameters, CqlError> {
        let mut parameters = QueryParameters {
            consistency: reader.consistency()?,
            ..QueryParameters::default()
        };
        let flags = match version {
            ProtocolVersion::V3 | ProtocolVersion::V4 => u32::from(reader.u8()?),
            ProtocolVersion::V5 | ProtocolVersion::V6 => reader.u32()?,
        };
        let has = |flag| flags & flag != 0;
        if has(VALUES) && has(NAMES_FOR_VALUES) {
            let (names, values) = decode_named_values(reader, version)?;
            parameters.names = Some(names);
            parameters.values = values;
        } else if has(VALUES) {
            parameters.values = decode_values(reader, version)?;
        }
        parameters.skip_metadata = has(SKIP_METADATA);
        if has(PAGE_SIZE) {
            let page_size = reader.i32()?;
            if page_size == 0 {
                return Err(CqlError::Protocol("The page size cannot be 0".to_owned()));
            }
            parameters.page_size = Some(page_size);
        }
        if has(PAGING_STATE) {
            parameters.paging_state = reader.bytes()?;
        }
        if has(SERIAL_CONSISTENCY) {
            parameters.serial_consistency = Some(reader.consistency()?);
        }
        if has(DEFAULT_TIMESTAMP) {
            parameters.default_timestamp = Some(decode_timestamp(reader)?);
        }
        if has(KEYSPACE) {
            parameters.keyspace = Some(reader.string()?);
        }
        if has(NOW_IN_SECONDS) {
            parameters.now_in_seconds = Some(reader.i32()?);
        }
        Ok(parameters)
    }

    fn flags(&self, version: ProtocolVersion) -> u32 {
        let flag = |present: bool, flag| if present { flag } else { 0 };
        let v5 = version >= ProtocolVersion::V5;
        flag(!self.values.is_empty(), VALUES)
            | flag(self.skip_metadata, SKIP_METADATA)
            | flag(self.page_size.is_some(), PAGE_SIZE)
            | flag(self.paging_state.is_some(), PAGING_STATE)
            | flag(self.serial_consistency.is_some(), SERIAL_CONSISTENCY)
            | flag(self.default_timestamp.is_some(), DEFAULT_TIMESTAMP)
            | flag(!self.values.is_empty() && self.names.is_some(), NAMES_FOR_VALUES)
            | flag(v5 && self.keyspace.is_some(), KEYSPACE)
            | flag(v5 && self.now_in_seconds.is_some(), NOW_IN_SECONDS)
    }

    /// Appends the parameters. Parameters for which the version has no flag are omitted.
    pub(crate) fn encode(&self, version: ProtocolVersion, out: &mut BytesMut) {
        put_consistency(out, self.consistency);
        let flags = self.flags(version);
        match version {
            ProtocolVersion::V3 | ProtocolVersion::V4 => out.put_u8(flags as u8),
            ProtocolVersion::V5 | ProtocolVersion::V6 => out.put_u32(flags),
        }
        if flags & VALUES != 0 {
            encode_values(&self.values, self.names.as_deref(), out);
        }
        if let Some(page_size) = self.page_size {
            out.put_i32(page_size);
        }
        if let Some(paging_state) = &self.paging_state {
            put_bytes(out, Some(paging_state));
        }
        if let Some(serial_consistency) = self.serial_consistency {
            put_consistency(out, serial_consistency);
        }
        if let Some(default_timestamp) = self.default_timestamp {
            out.put_i64(default_timestamp);
        }
        if let Some(keyspace) = self.keyspace.as_ref().filter(|_| flags & KEYSPACE != 0) {
            put_string(out, keyspace);
        }
        if let Some(now) = self.now_in_seconds.filter(|_| flags & NOW_IN_SECONDS != 0) {
            out.put_i32(now);
        }
    }
}

fn decode_timestamp(reader: &mut Reader) -> Result<i64, CqlError> {
    let timestamp = reader.i64()?;
    if timestamp == i64::MIN {
        return Err(CqlError::Protocol(format!(
            "Out of bound timestamp, must be in [{}, {}] (got {timestamp})",
            i64::MIN + 1,
            i64::MAX
        )));
    }
    Ok(timestamp)
}

pub(crate) fn decode_values(
    reader: &mut Reader,
    version: ProtocolVersion,
) -> Result<Vec<BoundValue>, CqlError> {
    let count = reader.count(4)?;
    let mut values = Vec::with_capacity(count);
    for _ in 0..count {
        values.push(reader.value(version)?);
    }
    Ok(values)
}

fn decode_named_values(
    reader: &mut Reader,
    version: ProtocolVersion,
) -> Result<(Vec<String>, Vec<BoundValue>), CqlError> {
    let count = reader.count(6)?;
    let mut names = Vec::with_capacity(count);
    let mut values = Vec::with_capacity(count);
    for _ in 0..count {
        names.push(reader.string()?);
        values.push(reader.value(version)?);
    }
    Ok((names, values))
}

pub(crate) fn encode_values(values: &[BoundValue], names: Option<&[String]>, out: &mut BytesMut) {
    out.put_u16(u16::try_from(values.len()).unwrap_or(u16::MAX));
    for (position, value) in values.iter().enumerate() {
        if let Some(names) = names {
            put_string(out, names.get(position).map_or("", String::as_str));
        }
        put_value(out, value);
    }
}
