//! Fuzzes the reading of a segment of the full query log. The checksum hides the entries from the fuzzer, so entries are also decoded
//! separately.
#![no_main]

use bytes::{Bytes, BytesMut};
use helenus_cql::query_log::{Entry, encode_record, take_header, take_record};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    if let Ok(entry) = Entry::decode(Bytes::copy_from_slice(input)) {
        drop(encode_record(&entry));
    }
    let mut bytes = BytesMut::from(input);
    if take_header(&mut bytes) == Ok(true) {
        while let Ok(Some(payload)) = take_record(&mut bytes) {
            drop(Entry::decode(payload));
        }
    }
});
