use super::*;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn op(token: i64, key: &'static str, operand: &'static str) -> Op {
    Op {
        token,
        key: Bytes::from_static(key.as_bytes()),
        operand: Bytes::from_static(operand.as_bytes()),
    }
}

fn sample() -> Vec<u8> {
    let mut frame = vec![0; FRAME_HEADER_LEN];
    encode_record(7, &[op(-1, "k1", "abc"), op(2, "key", "")], &mut frame);
    FrameHeader::finish(&mut frame, 3, 1_700_000_000_000, 64);
    frame
}

#[test]
fn checksum_is_castagnoli() {
    assert_eq!(crc32c(b"123456789"), 0xe306_9283);
}

#[test]
fn segment_header_bytes() {
    let header = SegmentHeader {
        number: 5,
        previous_number: 4,
        previous_end: 4096,
        file_len: 1 << 20,
    };
    let bytes = header.encode();
    assert_eq!(SegmentHeader::decode(&bytes), Ok(header));
    assert_eq!(
        hex(&bytes[..60]),
        "484c4e534c4f470a\
         02000000\
         00000000\
         0500000000000000\
         0400000000000000\
         0010000000000000\
         0000100000000000\
         000000000000000000000000"
    );
    assert_eq!(hex(&bytes[60..]), hex(&crc32c(&bytes[..60]).to_le_bytes()));
}

#[test]
fn a_segment_of_version_1_does_not_tell_its_size() {
    let header = SegmentHeader {
        number: 5,
        previous_number: 4,
        previous_end: 4096,
        file_len: 0,
    };
    let mut bytes = header.encode();
    bytes[8] = 1;
    let sum = crc32c(&bytes[..60]);
    bytes[60..].copy_from_slice(&sum.to_le_bytes());
    assert_eq!(SegmentHeader::decode(&bytes), Ok(header));
}

#[test]
fn newer_log_is_refused() {
    let mut bytes = SegmentHeader {
        number: 1,
        previous_number: 0,
        previous_end: 0,
        file_len: 0,
    }
    .encode();
    bytes[8] = 3;
    let sum = crc32c(&bytes[..60]);
    bytes[60..].copy_from_slice(&sum.to_le_bytes());
    assert_eq!(SegmentHeader::decode(&bytes), Err(HeaderError::NewerVersion(3)));
}

#[test]
fn frame_bytes() {
    let frame = sample();
    assert_eq!(
        hex(&frame),
        "484c5246\
         860e40f0\
         34000000\
         00000000\
         0300000000000000\
         0068e5cf8b010000\
         4000000000000000\
         0700000000000000\
         02000000\
         ffffffffffffffff\
         02000000\
         03000000\
         6b31\
         616263\
         0200000000000000\
         03000000\
         00000000\
         6b6579"
    );
}

#[test]
fn frame_round_trip() {
    let frame = sample();
    let (header, body) = FrameHeader::decode(&frame, 3).unwrap();
    assert_eq!(header.body_len, frame.len() - FRAME_HEADER_LEN);
    assert_eq!(
        (header.segment, header.time_ms, header.durable_offset),
        (3, 1_700_000_000_000, 64)
    );
    let records = decode_records(Bytes::copy_from_slice(body)).unwrap();
    assert_eq!(
        records,
        vec![Record {
            lsn: 7,
            ops: vec![op(-1, "k1", "abc"), op(2, "key", "")],
        }]
    );
    assert!(
        FrameHeader::decode(&frame, 4).is_none(),
        "a frame of another segment"
    );
}

#[test]
fn any_damage_is_noticed() {
    let frame = sample();
    for at in 0..frame.len() {
        for bit in 0..8 {
            let mut damaged = frame.clone();
            damaged[at] ^= 1 << bit;
            assert!(FrameHeader::decode(&damaged, 3).is_none(), "byte {at}, bit {bit}");
        }
        assert!(FrameHeader::decode(&frame[..at], 3).is_none(), "cut at {at}");
    }
}

#[test]
fn malformed_records_are_refused_without_panic() {
    let frame = sample();
    let body = Bytes::copy_from_slice(&frame[FRAME_HEADER_LEN..]);
    for at in 1..body.len() {
        assert!(decode_records(body.slice(..at)).is_none(), "cut at {at}");
    }
    let mut huge = body.to_vec();
    huge[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(decode_records(Bytes::from(huge)).is_none());
}
