//! Variable-length integers in packed values: LEB128, signed ones zigzagged, and a reader that never reads past the end.

use crate::error::RowError;

pub(crate) fn put_unsigned(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value as u8 & 0x7f) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub(crate) fn put_signed(out: &mut Vec<u8>, value: i64) {
    put_unsigned(out, ((value << 1) ^ (value >> 63)) as u64);
}

/// Appends the length, then the bytes.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_unsigned(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Reads fields from the front of a slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(rest: &'a [u8]) -> Reader<'a> {
        Reader { rest }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    #[inline]
    pub(crate) fn byte(&mut self) -> Result<u8, RowError> {
        let (&first, rest) = self.rest.split_first().ok_or(RowError::Truncated)?;
        self.rest = rest;
        Ok(first)
    }

    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], RowError> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(RowError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    #[inline]
    pub(crate) fn unsigned(&mut self) -> Result<u64, RowError> {
        let first = self.byte()?;
        if first < 0x80 {
            return Ok(u64::from(first));
        }
        let mut value = u64::from(first & 0x7f);
        let mut shift = 7;
        loop {
            let byte = self.byte()?;
            if shift == 63 && byte > 1 {
                return Err(RowError::Corrupt("integer of more than 64 bits"));
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
            shift += 7;
        }
    }

    #[inline]
    pub(crate) fn signed(&mut self) -> Result<i64, RowError> {
        let zigzag = self.unsigned()?;
        Ok((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64))
    }

    #[inline]
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], RowError> {
        let len = self.unsigned()?;
        self.take(usize::try_from(len).map_err(|_| RowError::Truncated)?)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, RowError> {
        u32::try_from(self.unsigned()?).map_err(|_| RowError::Corrupt("integer of more than 32 bits"))
    }
}
