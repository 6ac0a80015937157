//! Compression of bodies in v3 and v4, and of segments in v5.
//!
//! A body in lz4 starts with its uncompressed length in four bytes, big-endian, followed by a raw block. A body in snappy is a raw block
//! that contains its length (Cassandra's `transport.Compressor`).

use bytes::{Buf, BufMut, BytesMut};

use super::envelope::MAX_BODY_LEN;
use crate::error::CqlError;

/// An algorithm that STARTUP may request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    Lz4,
    Snappy,
}

impl Compression {
    pub fn name(self) -> &'static str {
        match self {
            Compression::Lz4 => "lz4",
            Compression::Snappy => "snappy",
        }
    }

    pub fn from_name(name: &str) -> Option<Compression> {
        if name.eq_ignore_ascii_case("lz4") {
            Some(Compression::Lz4)
        } else if name.eq_ignore_ascii_case("snappy") {
            Some(Compression::Snappy)
        } else {
            None
        }
    }

    /// Appends the body compressed.
    pub fn compress(self, body: &[u8], out: &mut BytesMut) -> Result<(), CqlError> {
        match self {
            Compression::Lz4 => {
                let len = u32::try_from(body.len()).map_err(|_| too_long(MAX_BODY_LEN))?;
                out.put_u32(len);
                lz4_block(body, out)
            }
            Compression::Snappy => {
                let start = out.len();
                out.resize(start + snap::raw::max_compress_len(body.len()), 0);
                let target = out.get_mut(start..).unwrap_or_default();
                let written = snap::raw::Encoder::new()
                    .compress(body, target)
                    .map_err(|error| CqlError::Server(format!("Failed to compress: {error}")))?;
                out.truncate(start + written);
                Ok(())
            }
        }
    }

    /// Returns the uncompressed length that the body declares.
    ///
    /// # Errors
    /// If the body declares none.
    pub fn decompressed_len(self, mut body: &[u8]) -> Result<usize, CqlError> {
        match self {
            Compression::Lz4 => body.try_get_u32().map(|len| len as usize).ok(),
            Compression::Snappy => snap::raw::decompress_len(body).ok(),
        }
        .ok_or_else(|| corrupt(self.name()))
    }

    /// Returns the uncompressed body. A length above `max_len` bytes is refused, and so is one that is impossible for the block.
    pub fn decompress(self, body: &[u8], max_len: usize) -> Result<BytesMut, CqlError> {
        let len = self.decompressed_len(body)?;
        match self {
            Compression::Lz4 => lz4_unblock(body.get(4..).unwrap_or_default(), len, max_len),
            Compression::Snappy => {
                check_len(len, body.len(), max_len)?;
                let mut out = BytesMut::zeroed(len);
                let written = snap::raw::Decoder::new()
                    .decompress(body, &mut out)
                    .map_err(|_| corrupt("snappy"))?;
                out.truncate(written);
                Ok(out)
            }
        }
    }
}

fn too_long(max_len: usize) -> CqlError {
    CqlError::Protocol(format!(
        "Compressed body exceeds maximum allowed length {max_len}."
    ))
}

fn corrupt(algorithm: &str) -> CqlError {
    CqlError::Protocol(format!("Corrupt {algorithm} body"))
}

/// Checks a declared length. A byte of a block expands to at most 255 bytes, so a longer length is refused before memory is allocated.
fn check_len(len: usize, block_len: usize, max_len: usize) -> Result<(), CqlError> {
    if len > max_len {
        return Err(too_long(max_len));
    }
    if len > block_len.saturating_mul(256).saturating_add(64) {
        return Err(CqlError::Protocol(
            "Corrupt compressed body: its length can't be true".to_owned(),
        ));
    }
    Ok(())
}

/// Appends a raw lz4 block.
pub(crate) fn lz4_block(input: &[u8], out: &mut BytesMut) -> Result<(), CqlError> {
    let start = out.len();
    out.resize(start + lz4_flex::block::get_maximum_output_size(input.len()), 0);
    let target = out.get_mut(start..).unwrap_or_default();
    let written = lz4_flex::block::compress_into(input, target)
        .map_err(|error| CqlError::Server(format!("Failed to compress: {error}")))?;
    out.truncate(start + written);
    Ok(())
}

/// Returns the content of a raw lz4 block, whose length must be `len`.
pub(crate) fn lz4_unblock(block: &[u8], len: usize, max_len: usize) -> Result<BytesMut, CqlError> {
    check_len(len, block.len(), max_len)?;
    let mut out = BytesMut::zeroed(len);
    if len == 0 {
        return Ok(out);
    }
    let written = lz4_flex::block::decompress_into(block, &mut out).map_err(|_| corrupt("lz4"))?;
    if written != len {
        return Err(corrupt("lz4"));
    }
    Ok(out)
}
