//! The bytes of Data.db: chunks, their compression and their checksums.

mod chunks;
mod compression_info;
mod compressor;
mod crc;

pub(crate) use chunks::ChunkReader;
pub(crate) use compression_info::COMPRESSION_INFO_BYTES_MAX;
pub use compression_info::{Chunk, CompressionInfo};
pub use compressor::Compressor;
pub(crate) use crc::ChunkChecksums;
