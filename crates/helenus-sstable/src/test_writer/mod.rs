//! Writes SSTables for tests, after the same classes of Cassandra as the readers.

mod data;
mod files;
mod random;

pub use files::{Compression, TestTable};
pub use random::{Random, random_table};

use std::io::Write;

use flate2::write::ZlibEncoder;

use crate::counter::{Shard, ShardKind};
use crate::storage::Compressor;

/// Appends an unsigned integer (`VIntCoding.writeUnsignedVInt`).
pub fn put_vint(out: &mut Vec<u8>, value: u64) {
    let bits = 64 - (value | 1).leading_zeros() as usize;
    let len = bits.div_ceil(7).min(9);
    let bytes = value.to_be_bytes();
    if len == 9 {
        out.push(0xff);
        out.extend(bytes);
        return;
    }
    let ones = !(0xff_u32 >> (len - 1)) as u8;
    let start = out.len();
    out.extend(&bytes[8 - len..]);
    out[start] |= ones;
}

/// Appends the length as a vint, then the bytes.
pub fn put_vint_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_vint(out, bytes.len() as u64);
    out.extend(bytes);
}

/// Appends the length in two bytes, then the bytes.
pub fn put_short_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend(u16::try_from(bytes.len()).unwrap().to_be_bytes());
    out.extend(bytes);
}

pub fn counter_context(shards: &[Shard]) -> Vec<u8> {
    let elements: Vec<u16> = (0_u16..)
        .zip(shards)
        .filter_map(|(index, shard)| match shard.kind {
            ShardKind::Global => Some(index | 0x8000),
            ShardKind::Local => Some(index),
            ShardKind::Remote => None,
        })
        .collect();
    let mut out = u16::try_from(elements.len()).unwrap().to_be_bytes().to_vec();
    for element in elements {
        out.extend(element.to_be_bytes());
    }
    for shard in shards {
        out.extend(shard.id);
        out.extend(shard.clock.to_be_bytes());
        out.extend(shard.count.to_be_bytes());
    }
    out
}

pub fn compress(compressor: Compressor, content: &[u8]) -> Vec<u8> {
    match compressor {
        Compressor::Lz4 => {
            let mut out = u32::try_from(content.len()).unwrap().to_le_bytes().to_vec();
            out.extend(lz4_flex::block::compress(content));
            out
        }
        Compressor::Snappy => snap::raw::Encoder::new().compress_vec(content).unwrap(),
        Compressor::Deflate => {
            let mut encoder = ZlibEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(content).unwrap();
            encoder.finish().unwrap()
        }
        Compressor::Zstd => zstd::bulk::compress(content, 1).unwrap(),
        Compressor::Noop => content.to_vec(),
    }
}
