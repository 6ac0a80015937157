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
    /// The version of the protocol in which the client sent the parameters.
    pub version: ProtocolVersion,
    pub consistency: Consistency,
    pub values: BoundValues,
    /// True if the client knows the metadata of the result and requests that it is omitted.
    pub skip_metadata: bool,
    /// Maximum rows of a page. If it is `None` or not positive, all rows are in one page.
    pub page_size: Option<i32>,
    /// Paging state from the response with the previous page. `None` for the first page.
    pub paging_state: Option<Bytes>,
    pub serial_consistency: Option<Consistency>,
    /// The client's timestamp of writes, in microseconds since 1970.
    pub timestamp_us: Option<i64>,
    /// The keyspace in which names are resolved, instead of the connection's (v5).
    pub keyspace: Option<String>,
    /// The current time in seconds since 1970, instead of the server's clock (v5, which sends 32 bits of it).
    pub now_s: Option<i64>,
}

/// The values bound to a statement's markers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BoundValues {
    #[default]
    None,
    Positional(Vec<BoundValue>),
    Named(Vec<(String, BoundValue)>),
}

impl BoundValues {
    /// Returns the number of values.
    pub fn len(&self) -> usize {
        match self {
            BoundValues::None => 0,
            BoundValues::Positional(values) => values.len(),
            BoundValues::Named(values) => values.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the values without their names.
    pub fn iter(&self) -> impl Iterator<Item = &BoundValue> {
        let (positional, named): (&[BoundValue], &[(String, BoundValue)]) = match self {
            BoundValues::None => (&[], &[]),
            BoundValues::Positional(values) => (values, &[]),
            BoundValues::Named(values) => (&[], values),
        };
        positional.iter().chain(named.iter().map(|(_, value)| value))
    }

    fn encode(&self, out: &mut BytesMut) {
        match self {
            BoundValues::None => {}
            BoundValues::Positional(values) => encode_values(values, out),
            BoundValues::Named(values) => {
                put_count(values.len(), out);
                for (name, value) in values {
                    put_string(out, name);
                    put_value(out, value);
                }
            }
        }
    }
}

impl From<Vec<BoundValue>> for BoundValues {
    fn from(values: Vec<BoundValue>) -> BoundValues {
        match values.is_empty() {
            true => BoundValues::None,
            false => BoundValues::Positional(values),
        }
    }
}

impl QueryParameters {
    pub(crate) fn decode(reader: &mut Reader, version: ProtocolVersion) -> Result<QueryParameters, CqlError> {
        let mut parameters = QueryParameters {
            version,
            consistency: reader.consistency()?,
            ..QueryParameters::default()
        };
        let flags = match version {
            ProtocolVersion::V3 | ProtocolVersion::V4 => u32::from(reader.u8()?),
            ProtocolVersion::V5 | ProtocolVersion::V6 => reader.u32()?,
        };
        let has = |flag| flags & flag != 0;
        if has(VALUES) && has(NAMES_FOR_VALUES) {
            parameters.values = BoundValues::Named(decode_named_values(reader, version)?);
        } else if has(VALUES) {
            parameters.values = decode_values(reader, version)?.into();
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
            parameters.timestamp_us = Some(decode_timestamp(reader)?);
        }
        if has(KEYSPACE) {
            parameters.keyspace = Some(reader.string()?);
        }
        if has(NOW_IN_SECONDS) {
            parameters.now_s = Some(reader.i32()?.into());
        }
        Ok(parameters)
    }

    fn flags(&self, version: ProtocolVersion) -> u32 {
        let flag = |present: bool, flag| if present { flag } else { 0 };
        let v5 = version >= ProtocolVersion::V5;
        let is_named = matches!(self.values, BoundValues::Named(_));
        flag(!self.values.is_empty(), VALUES)
            | flag(self.skip_metadata, SKIP_METADATA)
            | flag(self.page_size.is_some(), PAGE_SIZE)
            | flag(self.paging_state.is_some(), PAGING_STATE)
            | flag(self.serial_consistency.is_some(), SERIAL_CONSISTENCY)
            | flag(self.timestamp_us.is_some(), DEFAULT_TIMESTAMP)
            | flag(!self.values.is_empty() && is_named, NAMES_FOR_VALUES)
            | flag(v5 && self.keyspace.is_some(), KEYSPACE)
            | flag(v5 && self.now_s.is_some(), NOW_IN_SECONDS)
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
            self.values.encode(out);
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
        if let Some(timestamp_us) = self.timestamp_us {
            out.put_i64(timestamp_us);
        }
        if let Some(keyspace) = self.keyspace.as_ref().filter(|_| flags & KEYSPACE != 0) {
            put_string(out, keyspace);
        }
        if let Some(now_s) = self.now_s.filter(|_| flags & NOW_IN_SECONDS != 0) {
            let bounded = now_s.clamp(i32::MIN.into(), i32::MAX.into());
            out.put_i32(bounded as i32);
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
) -> Result<Vec<(String, BoundValue)>, CqlError> {
    let count = reader.count(6)?;
    let mut values = Vec::with_capacity(count);
    for _ in 0..count {
        values.push((reader.string()?, reader.value(version)?));
    }
    Ok(values)
}

fn put_count(count: usize, out: &mut BytesMut) {
    out.put_u16(u16::try_from(count).unwrap_or(u16::MAX));
}

pub(crate) fn encode_values(values: &[BoundValue], out: &mut BytesMut) {
    put_count(values.len(), out);
    values.iter().for_each(|value| put_value(out, value));
}
