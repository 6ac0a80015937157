//! Fuzzes the decoding of messages between nodes: forwarded requests and their answers, with the bodies behind their headers.
#![no_main]

use bytes::{Bytes, BytesMut};
use helenus_cql::frame::envelope::{Envelope, Flags, Header};
use helenus_cql::frame::forwarded::{ForwardedAnswer, ForwardedRequest};
use helenus_cql::frame::{Opcode, ProtocolVersion, RequestMessage, ResponseMessage};
use libfuzzer_sys::fuzz_target;

fn envelope(version: ProtocolVersion, opcode: Opcode, body: Bytes) -> Envelope {
    let header = Header {
        version,
        flags: Flags::default(),
        stream: 0,
        opcode,
    };
    Envelope { header, body }
}

fuzz_target!(|input: &[u8]| {
    let bytes = Bytes::copy_from_slice(input);
    if let Ok((header, body)) = ForwardedRequest::decode(bytes.clone()) {
        let mut again = BytesMut::new();
        header.encode(&mut again);
        assert_eq!(
            ForwardedRequest::decode(again.freeze()),
            Ok((header.clone(), Bytes::new()))
        );
        drop(RequestMessage::decode(envelope(
            header.version,
            header.opcode,
            body,
        )));
    }
    if let Ok((answer, body)) = ForwardedAnswer::decode(bytes) {
        let mut again = BytesMut::new();
        answer.encode(&mut again);
        assert_eq!(
            ForwardedAnswer::decode(again.freeze()).map(|(answer, _)| answer),
            Ok(answer)
        );
        for opcode in [Opcode::Result, Opcode::Error] {
            drop(ResponseMessage::decode(envelope(
                ProtocolVersion::V5,
                opcode,
                body.clone(),
            )));
        }
    }
});
