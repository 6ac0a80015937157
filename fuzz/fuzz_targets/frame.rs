//! Fuzzes the decoding of bytes from a connection. The first byte chooses the version and the compression.
#![no_main]

use bytes::BytesMut;
use helenus_cql::frame::{
    Compression, Decoder, Direction, ProtocolVersion, RequestMessage, Response, ResponseMessage, response::QueryResult,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((&choice, bytes)) = input.split_first() else { return };
    let Some(version) = ProtocolVersion::from_number(3 + choice % 3) else {
        return;
    };
    let compression = match choice / 3 % 3 {
        0 => None,
        1 => Some(Compression::Lz4),
        _ => Some(Compression::Snappy),
    };
    for direction in [Direction::Request, Direction::Response] {
        let mut decoder = Decoder::new(direction, 1 << 20);
        if choice & 0x80 != 0 {
            decoder.start(version, compression);
        }
        let mut buffer = BytesMut::from(bytes);
        while let Ok(Some(envelope)) = decoder.decode(&mut buffer) {
            match direction {
                Direction::Request => drop(RequestMessage::decode(envelope)),
                Direction::Response => {
                    if let Ok(message) = ResponseMessage::decode(envelope)
                        && let Response::Result(QueryResult::Rows(rows)) = message.response
                    {
                        rows.content.iter().for_each(drop);
                    }
                }
            }
        }
    }
});
