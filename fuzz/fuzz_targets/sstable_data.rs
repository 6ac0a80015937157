//! Fuzzes the decoding of an SSTable's Data.db. The input has a version, the length of a serialization header, the header and the data.
//! Bytes arrive in pieces of a length that the input chooses.
#![no_main]

use std::sync::Arc;

use bytes::Bytes;
use helenus_sstable::{Decoder, Event, Limits, SerializationHeader, Step, Version, counter};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let [version, header_len, piece, rest @ ..] = input else {
        return;
    };
    let version = Version::ALL[usize::from(*version) % Version::ALL.len()];
    let Some((header, data)) = rest.split_at_checked(usize::from(*header_len)) else {
        return;
    };
    let Ok(header) = SerializationHeader::decode(version, &Bytes::copy_from_slice(header)) else {
        return;
    };
    let mut decoder = Decoder::new(Arc::new(header), Limits::default());
    let mut pieces = data.chunks(usize::from(*piece).max(1));
    while let Ok(step) = decoder.step() {
        match step {
            Step::Event(Event::Row(row)) => {
                for cell in &row.cells {
                    drop(counter::decode_context(&cell.value));
                }
            }
            Step::Event(_) => {}
            Step::End => return,
            Step::NeedBytes => match pieces.next() {
                Some(bytes) => decoder.push(bytes),
                None => decoder.finish(),
            },
        }
    }
});
