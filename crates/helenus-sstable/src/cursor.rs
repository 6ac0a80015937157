//! Reads fields from the front of a slice, without panics and without allocation.

use std::borrow::Cow;

use crate::error::{ErrorKind, SstableError};

/// Reads fields of a component. Every method names the field, so that errors can.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
    file: &'static str,
    /// Offset in the file of the first byte.
    start: u64,
    /// Number of bytes at the beginning.
    len: usize,
    /// Maximum number of bytes that fields may take in total.
    limit: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8], file: &'static str, start: u64) -> Cursor<'a> {
        Cursor {
            rest: bytes,
            file,
            start,
            len: bytes.len(),
            limit: usize::MAX,
        }
    }

    /// Creates a cursor over an item of which more bytes may follow. Items over `limit` bytes are refused before they are complete.
    pub(crate) fn limited(bytes: &'a [u8], file: &'static str, start: u64, limit: usize) -> Cursor<'a> {
        Cursor {
            limit,
            ..Cursor::new(bytes, file, start)
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Returns the number of bytes read.
    pub(crate) fn consumed(&self) -> usize {
        self.len - self.rest.len()
    }

    /// Returns the offset of the next byte in the file.
    pub(crate) fn position(&self) -> u64 {
        self.start.saturating_add(self.consumed() as u64)
    }

    /// Returns the error of bytes that Cassandra doesn't write at this place.
    pub(crate) fn corrupt(&self, problem: impl Into<Cow<'static, str>>) -> SstableError {
        SstableError::new(ErrorKind::Corrupt, self.file, self.position(), problem)
    }

    pub(crate) fn error(&self, kind: ErrorKind, problem: impl Into<Cow<'static, str>>) -> SstableError {
        SstableError::new(kind, self.file, self.position(), problem)
    }

    fn short(&self, len: usize, field: &'static str) -> SstableError {
        let needed = self.consumed().saturating_add(len);
        if needed > self.limit {
            let problem = format!(
                "{field}: the item has {needed} bytes or more; the limit is {}",
                self.limit
            );
            return self.error(ErrorKind::Limit, problem);
        }
        let missing = len.saturating_sub(self.rest.len());
        let problem = format!("{field}: {len} bytes are expected, and the last {missing} are missing");
        SstableError {
            needed,
            ..self.error(ErrorKind::Truncated, problem)
        }
    }

    pub(crate) fn take(&mut self, len: usize, field: &'static str) -> Result<&'a [u8], SstableError> {
        let (taken, rest) = self
            .rest
            .split_at_checked(len)
            .ok_or_else(|| self.short(len, field))?;
        self.rest = rest;
        Ok(taken)
    }

    /// Takes the last bytes of an item, and refuses an item over the limit even if it is complete.
    pub(crate) fn take_limited(&mut self, len: usize, field: &'static str) -> Result<&'a [u8], SstableError> {
        match self.consumed().saturating_add(len) <= self.limit {
            true => self.take(len, field),
            false => Err(self.short(len, field)),
        }
    }

    /// Takes bytes as a cursor of their own, whose end is the end of the item.
    pub(crate) fn sub_cursor(&mut self, len: usize, field: &'static str) -> Result<Cursor<'a>, SstableError> {
        let start = self.position();
        Ok(Cursor::new(self.take_limited(len, field)?, self.file, start))
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], SstableError> {
        let (taken, rest) = self
            .rest
            .split_first_chunk::<N>()
            .ok_or_else(|| self.short(N, field))?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(crate) fn u8(&mut self, field: &'static str) -> Result<u8, SstableError> {
        let [byte] = self.array(field)?;
        Ok(byte)
    }

    pub(crate) fn u16(&mut self, field: &'static str) -> Result<u16, SstableError> {
        self.array(field).map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self, field: &'static str) -> Result<u32, SstableError> {
        self.array(field).map(u32::from_be_bytes)
    }

    pub(crate) fn i32(&mut self, field: &'static str) -> Result<i32, SstableError> {
        self.array(field).map(i32::from_be_bytes)
    }

    pub(crate) fn i64(&mut self, field: &'static str) -> Result<i64, SstableError> {
        self.array(field).map(i64::from_be_bytes)
    }

    pub(crate) fn f64(&mut self, field: &'static str) -> Result<f64, SstableError> {
        self.array(field).map(f64::from_be_bytes)
    }

    pub(crate) fn u128(&mut self, field: &'static str) -> Result<u128, SstableError> {
        self.array(field).map(u128::from_be_bytes)
    }

    /// Reads a boolean as Java's `DataInput.readBoolean` does: every byte but 0 is true.
    pub(crate) fn bool(&mut self, field: &'static str) -> Result<bool, SstableError> {
        Ok(self.u8(field)? != 0)
    }

    /// Reads an unsigned integer of 1 to 9 bytes (`utils.vint.VIntCoding`). The number of leading ones of the first byte is the number of
    /// bytes that follow. The other bits of the first byte are the highest ones of the value.
    pub(crate) fn vint(&mut self, field: &'static str) -> Result<u64, SstableError> {
        let (&first, after) = self.rest.split_first().ok_or_else(|| self.short(1, field))?;
        if first < 0x80 {
            self.rest = after;
            return Ok(u64::from(first));
        }
        let extra = first.leading_ones();
        let (more, rest) = after
            .split_at_checked(extra as usize)
            .ok_or_else(|| self.short(extra as usize + 1, field))?;
        let mask = 0xff_u32 >> extra;
        let head = u64::from(u32::from(first) & mask);
        self.rest = rest;
        Ok(more
            .iter()
            .fold(head, |value, byte| value << 8 | u64::from(*byte)))
    }

    /// Reads a length that has the form of a vint. Lengths above Java's `int` are refused, as they are by Cassandra.
    pub(crate) fn vint_len(&mut self, field: &'static str) -> Result<usize, SstableError> {
        let before = self.clone();
        let len = self.vint(field)?;
        i32::try_from(len)
            .ok()
            .and_then(|len| usize::try_from(len).ok())
            .ok_or_else(|| before.corrupt(format!("{field}: the length {len} exceeds 2147483647 bytes")))
    }

    /// Reads bytes that have a vint with their length before them (`ByteBufferUtil.readWithVIntLength`).
    pub(crate) fn vint_bytes(&mut self, field: &'static str) -> Result<&'a [u8], SstableError> {
        let len = self.vint_len(field)?;
        self.take(len, field)
    }

    /// Reads bytes that have two bytes with their length before them (`ByteBufferUtil.readWithShortLength`).
    pub(crate) fn short_bytes(&mut self, field: &'static str) -> Result<&'a [u8], SstableError> {
        let len = self.u16(field)?;
        self.take(usize::from(len), field)
    }

    /// Reads a text of `DataInput.readUTF`. Its modified encoding differs from UTF-8 only in characters that no class name or option has.
    pub(crate) fn utf(&mut self, field: &'static str) -> Result<&'a str, SstableError> {
        let before = self.clone();
        let bytes = self.short_bytes(field)?;
        std::str::from_utf8(bytes)
            .map_err(|_| before.corrupt(format!("{field}: a text in UTF-8 is expected")))
    }
}

#[cfg(test)]
#[path = "cursor_tests.rs"]
mod tests;
