//! Compressors of chunks (`io.compress.{LZ4,Snappy,Deflate,Zstd,Noop}Compressor`).

use flate2::{Decompress, FlushDecompress, Status};

/// A compressor, by the name of its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compressor {
    /// An LZ4 block after the decompressed length in 4 bytes, little-endian.
    Lz4,
    /// Snappy without frames.
    Snappy,
    /// Zlib.
    Deflate,
    /// A Zstandard frame.
    Zstd,
    /// Chunks without compression.
    Noop,
}

impl Compressor {
    /// Returns the compressor of a class, with or without its package. `None` if the class is unknown.
    pub(super) fn from_class(class: &str) -> Option<Compressor> {
        let short = class.rsplit('.').next().unwrap_or(class);
        Some(match short {
            "LZ4Compressor" => Compressor::Lz4,
            "SnappyCompressor" => Compressor::Snappy,
            "DeflateCompressor" => Compressor::Deflate,
            "ZstdCompressor" => Compressor::Zstd,
            "NoopCompressor" => Compressor::Noop,
            _ => return None,
        })
    }

    /// Decompresses a chunk into a buffer that has exactly the expected length.
    ///
    /// # Errors
    /// The reason why the chunk isn't a compressed form of that many bytes.
    pub(super) fn decompress(self, chunk: &[u8], out: &mut [u8]) -> Result<(), String> {
        let expected = out.len();
        let found = match self {
            Compressor::Lz4 => decompress_lz4(chunk, out)?,
            Compressor::Snappy => snap::raw::Decoder::new()
                .decompress(chunk, out)
                .map_err(|error| error.to_string())?,
            Compressor::Deflate => decompress_deflate(chunk, out)?,
            Compressor::Zstd => {
                zstd::bulk::decompress_to_buffer(chunk, out).map_err(|error| error.to_string())?
            }
            Compressor::Noop => {
                let content = chunk.get(..expected).unwrap_or(chunk);
                let (start, _) = out.split_at_mut(content.len());
                start.copy_from_slice(content);
                chunk.len()
            }
        };
        match found == expected {
            true => Ok(()),
            false => Err(format!(
                "it has {found} bytes decompressed; {expected} are expected"
            )),
        }
    }
}

fn decompress_lz4(chunk: &[u8], out: &mut [u8]) -> Result<usize, String> {
    let (len, block) = chunk
        .split_first_chunk::<4>()
        .ok_or("it is shorter than its length field of 4 bytes")?;
    let len = u32::from_le_bytes(*len) as usize;
    if len != out.len() {
        return Ok(len);
    }
    lz4_flex::block::decompress_into(block, out).map_err(|error| error.to_string())
}

fn decompress_deflate(chunk: &[u8], out: &mut [u8]) -> Result<usize, String> {
    let mut stream = Decompress::new(true);
    let status = stream
        .decompress(chunk, out, FlushDecompress::Finish)
        .map_err(|error| error.to_string())?;
    match status {
        Status::StreamEnd => usize::try_from(stream.total_out()).map_err(|error| error.to_string()),
        Status::Ok | Status::BufError => Err(format!(
            "its stream goes on after {} bytes decompressed",
            stream.total_out()
        )),
    }
}

#[cfg(test)]
#[path = "compressor_tests.rs"]
mod tests;
