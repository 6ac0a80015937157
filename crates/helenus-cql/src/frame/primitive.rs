//! The notations of the protocol (spec v5, section 3): `[string]`, `[bytes]`, `[value]`, `[inet]` and so on.

use std::net::{IpAddr, SocketAddr};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use uuid::Uuid;

use super::CustomPayload;
use super::version::ProtocolVersion;
use crate::error::{Consistency, CqlError};

/// A value bound to a marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BoundValue {
    Set(Bytes),
    Null,
    /// No value: the column is not changed (v4 and later).
    Unset,
}

fn short_read() -> CqlError {
    CqlError::Protocol("Not enough bytes in the message body".to_owned())
}

fn short_string(length_bytes: usize) -> CqlError {
    CqlError::Protocol(format!(
        "Not enough bytes to read an UTF8 serialized string preceded by its {length_bytes} bytes length"
    ))
}

/// Reads the notations from a body. Returned bytes share the body's memory.
#[derive(Clone, Debug)]
pub struct Reader {
    bytes: Bytes,
}

impl Reader {
    pub fn new(bytes: Bytes) -> Reader {
        Reader { bytes }
    }

    pub fn remaining(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the bytes that have not been read.
    pub fn into_rest(self) -> Bytes {
        self.bytes
    }

    pub fn take(&mut self, len: usize) -> Result<Bytes, CqlError> {
        if len > self.bytes.len() {
            return Err(short_read());
        }
        Ok(self.bytes.split_to(len))
    }

    pub fn u8(&mut self) -> Result<u8, CqlError> {
        self.bytes.try_get_u8().map_err(|_| short_read())
    }

    pub fn u16(&mut self) -> Result<u16, CqlError> {
        self.bytes.try_get_u16().map_err(|_| short_read())
    }

    pub fn i32(&mut self) -> Result<i32, CqlError> {
        self.bytes.try_get_i32().map_err(|_| short_read())
    }

    pub fn u32(&mut self) -> Result<u32, CqlError> {
        self.bytes.try_get_u32().map_err(|_| short_read())
    }

    pub fn i64(&mut self) -> Result<i64, CqlError> {
        self.bytes.try_get_i64().map_err(|_| short_read())
    }

    /// Reads a count of items that take at least `least_len` bytes each. A count that exceeds the remaining bytes is refused before memory
    /// is allocated.
    pub fn count(&mut self, least_len: usize) -> Result<usize, CqlError> {
        let count = usize::from(self.u16()?);
        self.check_count(count, least_len)
    }

    /// Reads a four-byte count, as [`Reader::count`].
    pub fn long_count(&mut self, least_len: usize) -> Result<usize, CqlError> {
        let count = usize::try_from(self.i32()?).map_err(|_| short_read())?;
        self.check_count(count, least_len)
    }

    fn check_count(&self, count: usize, least_len: usize) -> Result<usize, CqlError> {
        if count.saturating_mul(least_len) > self.bytes.len() {
            return Err(short_read());
        }
        Ok(count)
    }

    fn utf8(&mut self, len: usize, length_bytes: usize) -> Result<String, CqlError> {
        let bytes = self.take(len).map_err(|_| short_string(length_bytes))?;
        match std::str::from_utf8(&bytes) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err(CqlError::Protocol("Cannot decode string as UTF8".to_owned())),
        }
    }

    /// Reads a `[string]`.
    pub fn string(&mut self) -> Result<String, CqlError> {
        let len = self.u16().map_err(|_| short_string(2))?;
        self.utf8(usize::from(len), 2)
    }

    /// Reads a `[long string]`.
    pub fn long_string(&mut self) -> Result<String, CqlError> {
        let len = self.i32().map_err(|_| short_string(4))?;
        let len = usize::try_from(len).map_err(|_| short_string(4))?;
        self.utf8(len, 4)
    }

    /// Reads `[bytes]`. Any negative length is null.
    pub fn bytes(&mut self) -> Result<Option<Bytes>, CqlError> {
        match usize::try_from(self.i32()?) {
            Ok(len) => self.take(len).map(Some),
            Err(_) => Ok(None),
        }
    }

    /// Reads `[short bytes]`.
    pub fn short_bytes(&mut self) -> Result<Bytes, CqlError> {
        let too_short = || {
            CqlError::Protocol(
                "Not enough bytes to read a byte array preceded by its 2 bytes length".to_owned(),
            )
        };
        let len = self.u16().map_err(|_| too_short())?;
        self.take(usize::from(len)).map_err(|_| too_short())
    }

    /// Reads a `[value]`: bytes, null, and from v4 on also unset.
    pub fn value(&mut self, version: ProtocolVersion) -> Result<BoundValue, CqlError> {
        let len = self.i32()?;
        match usize::try_from(len) {
            Ok(len) => self.take(len).map(BoundValue::Set),
            Err(_) if len == -1 || version < ProtocolVersion::V4 => Ok(BoundValue::Null),
            Err(_) if len == -2 => Ok(BoundValue::Unset),
            Err(_) => Err(CqlError::Protocol(format!("Invalid ByteBuf length {len}"))),
        }
    }

    /// Reads a `[string list]`.
    pub fn string_list(&mut self) -> Result<Vec<String>, CqlError> {
        let count = self.count(2)?;
        (0..count).map(|_| self.string()).collect()
    }

    /// Reads a `[string map]`, in the order sent.
    pub fn string_map(&mut self) -> Result<Vec<(String, String)>, CqlError> {
        let count = self.count(4)?;
        (0..count).map(|_| Ok((self.string()?, self.string()?))).collect()
    }

    /// Reads a `[string multimap]`, in the order sent.
    pub fn string_multimap(&mut self) -> Result<Vec<(String, Vec<String>)>, CqlError> {
        let count = self.count(4)?;
        (0..count)
            .map(|_| Ok((self.string()?, self.string_list()?)))
            .collect()
    }

    /// Reads a `[bytes map]`, in the order sent.
    pub fn bytes_map(&mut self) -> Result<CustomPayload, CqlError> {
        let count = self.count(6)?;
        (0..count).map(|_| Ok((self.string()?, self.bytes()?))).collect()
    }

    /// Reads a `[uuid]`.
    pub fn uuid(&mut self) -> Result<Uuid, CqlError> {
        let bytes = self.take(16)?;
        Uuid::from_slice(&bytes).map_err(|_| short_read())
    }

    /// Reads an `[inetaddr]`.
    pub fn inet_addr(&mut self) -> Result<IpAddr, CqlError> {
        let len = self.u8()?;
        let bytes = self.take(usize::from(len))?;
        if let Ok(v4) = <[u8; 4]>::try_from(bytes.as_ref()) {
            return Ok(IpAddr::from(v4));
        }
        if let Ok(v6) = <[u8; 16]>::try_from(bytes.as_ref()) {
            return Ok(IpAddr::from(v6));
        }
        Err(CqlError::Protocol(
            "Invalid IP address while deserializing inet address".to_owned(),
        ))
    }

    /// Reads an `[inet]`.
    pub fn inet(&mut self) -> Result<SocketAddr, CqlError> {
        let address = self.inet_addr()?;
        let port = u16::try_from(self.i32()?)
            .map_err(|_| CqlError::Protocol("Invalid port while deserializing inet address".to_owned()))?;
        Ok(SocketAddr::new(address, port))
    }

    /// Reads a `[consistency]`.
    pub fn consistency(&mut self) -> Result<Consistency, CqlError> {
        let code = self.u16()?;
        Consistency::from_code(code)
            .ok_or_else(|| CqlError::Protocol(format!("Unknown code {code} for a consistency level")))
    }
}

/// Returns the longest valid prefix of at most `max` bytes, which fits the length field of a notation.
fn clip(text: &str, max: usize) -> &str {
    if text.len() <= max {
        return text;
    }
    let mut end = max;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

fn count_u16(count: usize) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}

pub(crate) fn len_i32(len: usize) -> i32 {
    i32::try_from(len).unwrap_or(i32::MAX)
}

/// Appends a `[string]`. Texts over 65,535 bytes are cut, which only error messages can be.
pub(crate) fn put_string(out: &mut BytesMut, text: &str) {
    let text = clip(text, usize::from(u16::MAX));
    out.put_u16(count_u16(text.len()));
    out.put_slice(text.as_bytes());
}

pub(crate) fn put_long_string(out: &mut BytesMut, text: &str) {
    out.put_i32(len_i32(text.len()));
    out.put_slice(text.as_bytes());
}

pub(crate) fn put_bytes(out: &mut BytesMut, bytes: Option<&[u8]>) {
    match bytes {
        Some(bytes) => {
            out.put_i32(len_i32(bytes.len()));
            out.put_slice(bytes);
        }
        None => out.put_i32(-1),
    }
}

pub(crate) fn put_short_bytes(out: &mut BytesMut, bytes: &[u8]) {
    let len = count_u16(bytes.len());
    out.put_u16(len);
    out.put_slice(bytes.get(..usize::from(len)).unwrap_or_default());
}

pub(crate) fn put_value(out: &mut BytesMut, value: &BoundValue) {
    match value {
        BoundValue::Set(bytes) => put_bytes(out, Some(bytes)),
        BoundValue::Null => out.put_i32(-1),
        BoundValue::Unset => out.put_i32(-2),
    }
}

pub(crate) fn put_string_list<S: AsRef<str>>(out: &mut BytesMut, list: &[S]) {
    let count = count_u16(list.len());
    out.put_u16(count);
    for text in list.iter().take(usize::from(count)) {
        put_string(out, text.as_ref());
    }
}

pub(crate) fn put_string_map<S: AsRef<str>>(out: &mut BytesMut, map: &[(S, S)]) {
    out.put_u16(count_u16(map.len()));
    for (key, value) in map {
        put_string(out, key.as_ref());
        put_string(out, value.as_ref());
    }
}

pub(crate) fn put_string_multimap(out: &mut BytesMut, map: &[(String, Vec<String>)]) {
    out.put_u16(count_u16(map.len()));
    for (key, values) in map {
        put_string(out, key);
        put_string_list(out, values);
    }
}

pub(crate) fn put_bytes_map(out: &mut BytesMut, map: &CustomPayload) {
    out.put_u16(count_u16(map.len()));
    for (key, value) in map {
        put_string(out, key);
        put_bytes(out, value.as_deref());
    }
}

pub(crate) fn put_inet_addr(out: &mut BytesMut, address: IpAddr) {
    match address {
        IpAddr::V4(v4) => {
            out.put_u8(4);
            out.put_slice(&v4.octets());
        }
        IpAddr::V6(v6) => {
            out.put_u8(16);
            out.put_slice(&v6.octets());
        }
    }
}

pub(crate) fn put_inet(out: &mut BytesMut, address: SocketAddr) {
    put_inet_addr(out, address.ip());
    out.put_i32(i32::from(address.port()));
}

pub(crate) fn put_consistency(out: &mut BytesMut, consistency: Consistency) {
    out.put_u16(consistency as u16);
}
