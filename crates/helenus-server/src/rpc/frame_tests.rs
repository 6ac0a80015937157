use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// Returns the bytes of frames.
fn encoded(frames: &[Frame]) -> BytesMut {
    let mut out = BytesMut::new();
    for frame in frames {
        frame.header.encode(frame.body.len(), &mut out);
        out.extend_from_slice(&frame.body);
    }
    out
}

/// Decodes bytes that arrive in parts of `step` bytes.
fn decoded(bytes: &[u8], step: usize) -> Result<Vec<Frame>, FrameError> {
    let mut decoder = FrameDecoder::default();
    let (mut frames, mut bytes) = (Vec::new(), bytes);
    loop {
        while let Some(frame) = decoder.decode()? {
            frames.push(frame);
        }
        if bytes.is_empty() {
            return Ok(frames);
        }
        let mut room = decoder.room(step);
        let len = step.min(bytes.len()).min(room.remaining_mut());
        let (now, later) = bytes.split_at(len);
        room.put_slice(now);
        bytes = later;
    }
}

fn frame(kind: Kind, body: &[u8]) -> Frame {
    Frame {
        header: Header {
            kind,
            flags: 3,
            id: 0x0403_0201,
            timeout_ms: 10_000,
        },
        body: Bytes::copy_from_slice(body),
    }
}

#[test]
fn bytes_of_a_frame_do_not_change() {
    let golden = b"\x05\0\0\0\x10\x03\x01\x02\x03\x04\x10\x27\0\0hello";
    let frame = frame(Kind::Execute, b"hello");
    assert_eq!(encoded(std::slice::from_ref(&frame)).as_ref(), golden);
    assert_eq!(decoded(golden, 100), Ok(vec![frame]));
}

#[test]
fn numbers_of_kinds_do_not_change() {
    let numbers = KINDS.map(Kind::number);
    let golden = [
        1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 32, 33, 34, 64, 65, 66,
    ];
    assert_eq!(numbers, golden);
    for kind in KINDS {
        assert_eq!(Kind::of_number(kind.number()), Some(kind));
    }
}

#[test]
fn a_torn_frame_is_not_decoded() {
    let bytes = encoded(&[frame(Kind::Get, b"hello")]);
    for len in 0..bytes.len() {
        assert_eq!(decoded(&bytes[..len], 100), Ok(Vec::new()), "{len}");
    }
}

#[test]
fn a_length_beyond_the_maximum_is_refused() {
    let mut bytes = encoded(&[frame(Kind::Get, b"")]);
    let len = MESSAGE_BYTES_MAX as u32 + 1;
    bytes[..4].copy_from_slice(&len.to_le_bytes());
    assert_eq!(decoded(&bytes, 100), Err(FrameError::TooLong(len)));
}

#[test]
fn unknown_kinds_are_skipped_only_with_the_bit() {
    let mut bytes = encoded(&[frame(Kind::Get, b"one"), frame(Kind::Get, b"two")]);
    bytes[4] = 0x7f;
    assert_eq!(decoded(&bytes, 100), Err(FrameError::UnknownKind(0x7f)));
    bytes[4] = 0xff;
    assert_eq!(decoded(&bytes, 100), Ok(vec![frame(Kind::Get, b"two")]));
}

#[test]
fn a_large_body_has_its_own_buffer() {
    let large = vec![7; 3 * LARGE_BODY_LEN];
    let frames = vec![
        frame(Kind::Write, b"before"),
        frame(Kind::Write, &large),
        frame(Kind::Get, b"after"),
    ];
    let bytes = encoded(&frames);
    for step in [1000, LARGE_BODY_LEN, bytes.len()] {
        assert_eq!(decoded(&bytes, step).as_ref(), Ok(&frames), "{step}");
    }
}

fn any_frame() -> impl Strategy<Value = Frame> {
    let header = (0..KINDS.len(), any::<u8>(), any::<u32>(), any::<u32>());
    (header, vec(any::<u8>(), 0..200)).prop_map(|((kind, flags, id, timeout_ms), body)| Frame {
        header: Header {
            kind: KINDS[kind],
            flags,
            id,
            timeout_ms,
        },
        body: Bytes::from(body),
    })
}

proptest! {
    #[test]
    fn frames_are_decoded_as_encoded(frames in vec(any_frame(), 0..10), step in 1..300usize) {
        prop_assert_eq!(decoded(&encoded(&frames), step), Ok(frames));
    }

    #[test]
    fn no_bytes_make_the_decoder_panic(bytes in vec(any::<u8>(), 0..500), step in 1..300usize) {
        let _ = decoded(&bytes, step);
    }
}
