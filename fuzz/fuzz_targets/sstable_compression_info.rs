//! Fuzzes the decoding of an SSTable's CompressionInfo.db, and the decompression of its chunks in a file of random bytes.
#![no_main]

use bytes::Bytes;
use helenus_sstable::{CompressionInfo, Version};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let [version, len, rest @ ..] = input else {
        return;
    };
    let version = Version::ALL[usize::from(*version) % Version::ALL.len()];
    let Some((file, data)) = rest.split_at_checked(usize::from(*len)) else {
        return;
    };
    let Ok(info) = CompressionInfo::decode(version, &Bytes::copy_from_slice(file)) else {
        return;
    };
    let mut out = Vec::new();
    for index in 0..info.chunks() {
        let Ok(Some(chunk)) = info.chunk(index, data.len() as u64) else {
            return;
        };
        let start = chunk.offset as usize;
        let content = &data[start..start + chunk.stored_len - 4];
        // The checksum is made right, because the fuzzer can't guess it.
        let stored = [content, &crc32fast::hash(content).to_be_bytes()].concat();
        drop(info.decompress(&chunk, &stored, &mut out));
    }
});
