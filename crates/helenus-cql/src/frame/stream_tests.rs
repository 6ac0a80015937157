//! Tests the envelopes that a decoder refuses, and that it reads the following ones.

use bytes::BytesMut;

use super::super::segment::{crc24, crc32};
use super::super::{Direction, Opcode, ProtocolVersion};
use super::Decoder;

#[test]
fn what_follows_a_refused_envelope_is_read() {
    let unknown: &[u8] = b"\x04\0\0\x01\x20\0\0\0\x03abc";
    let large = b"\x04\0\0\x02\x07\0\0\0\x11abcdefghijklmnopq";
    let options = b"\x04\0\0\x03\x05\0\0\0\0";
    let mut decoder = Decoder::new(Direction::Request, 16);
    decoder.start(ProtocolVersion::V4, None);
    let mut input = BytesMut::new();
    let mut read = Vec::new();
    // The bytes arrive one at a time.
    for byte in [unknown, large, options].concat() {
        input.extend_from_slice(&[byte]);
        match decoder.decode(&mut input) {
            Ok(None) => {}
            Ok(Some(envelope)) => {
                read.push(format!("{} {:?}", envelope.header.stream, envelope.header.opcode))
            }
            Err(error) => read.push(format!("{} {}", error.stream, error.error)),
        }
    }
    assert_eq!(
        read,
        [
            "1 Unknown opcode 32",
            "2 Request is too big: length 26 exceeds maximum allowed length 16.",
            "3 Options"
        ]
    );
}

#[test]
fn a_refused_envelope_in_segments() {
    let large = [&b"\x05\0\0\x02\x07\0\0\0\x40"[..], &[0xab; 64]].concat();
    let options = b"\x05\0\0\x03\x05\0\0\0\0";
    let segment = |payload: &[u8], self_contained: u32| {
        let header = payload.len() as u32 | self_contained << 17;
        let mut out = header.to_le_bytes()[..3].to_vec();
        out.extend(&crc24(u64::from(header), 3).to_le_bytes()[..3]);
        out.extend_from_slice(payload);
        out.extend(crc32(payload).to_le_bytes());
        out
    };
    let (first, second) = large.split_at(30);
    let mut input = BytesMut::new();
    for part in [
        segment(first, 0),
        segment(second, 0),
        segment(options, 1),
        // The envelope is longer than its self-contained segment.
        segment(first, 1),
    ] {
        input.extend_from_slice(&part);
    }
    let mut decoder = Decoder::new(Direction::Request, 16);
    decoder.start(ProtocolVersion::V5, None);
    let mut next = || decoder.decode(&mut input);
    let refused = next().unwrap_err();
    assert_eq!(
        (refused.stream, refused.error.to_string().as_str(), refused.len),
        (
            2,
            "CQL Message of size 64 bytes exceeds allowed maximum of 16 bytes",
            Some(73)
        )
    );
    assert_eq!(next().unwrap().unwrap().header.opcode, Opcode::Options);
    assert_eq!(next().unwrap_err().len, Some(73));
    assert_eq!(next().unwrap_err().len, None);
}
