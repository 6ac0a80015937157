//! Fuzzes the decoding of an SSTable's Statistics.db. Versions before `na` have no checksums, which hide the parts from the fuzzer.
#![no_main]

use bytes::Bytes;
use helenus_sstable::{Statistics, Version};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let [version, file @ ..] = input else {
        return;
    };
    let version = Version::ALL[usize::from(*version) % Version::ALL.len()];
    if let Ok(statistics) = Statistics::decode(version, &Bytes::copy_from_slice(file)) {
        drop(statistics.summary());
    }
});
