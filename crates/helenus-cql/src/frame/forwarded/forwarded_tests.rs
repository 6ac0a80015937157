use std::borrow::Cow;

use bytes::{Bytes, BytesMut};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;
use crate::frame::{Opcode, ProtocolVersion};

fn header() -> ForwardedRequest<'static> {
    ForwardedRequest {
        version: ProtocolVersion::V4,
        opcode: Opcode::Execute,
        is_traced: false,
        masks: false,
        is_for_client: false,
        schema_version: 7,
        token: -2,
        timestamp_us: None,
        now_s: None,
        keyspace: None,
        result_id: None,
        texts: Vec::new(),
        share: None,
    }
}

fn encoded(header: &ForwardedRequest<'_>, body: &[u8]) -> Bytes {
    let mut out = BytesMut::new();
    header.encode(&mut out);
    out.extend_from_slice(body);
    out.freeze()
}

const FIXED: [u8; 20] = [
    4, 0x0A, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFE,
];

#[test]
fn a_plain_request_has_twenty_bytes_before_its_body() {
    let bytes = encoded(&header(), b"body");
    assert_eq!(bytes[..20], FIXED);
    assert_eq!(bytes[20..], b"body"[..]);
}

#[test]
fn a_whole_header_has_its_parts_in_order() {
    let full = ForwardedRequest {
        is_traced: true,
        masks: true,
        is_for_client: true,
        timestamp_us: Some(1),
        now_s: Some(2),
        keyspace: Some("ks".into()),
        result_id: Some([9; 16]),
        texts: vec![
            PreparedText {
                keyspace: Some("k".into()),
                text: "t".into(),
            },
            PreparedText {
                keyspace: None,
                text: "".into(),
            },
        ],
        share: Some([vec![Bytes::from_static(b"a")], Vec::new()].into()),
        ..header()
    };
    let mut expected = FIXED.to_vec();
    expected[2..4].copy_from_slice(&[1, 0xFF]);
    expected.extend([0, 0, 0, 0, 0, 0, 0, 1]);
    expected.extend([0, 0, 0, 0, 0, 0, 0, 2]);
    expected.extend([0, 2, b'k', b's']);
    expected.extend([9; 16]);
    expected.extend([0, 2, 1, 0, 1, b'k', 0, 0, 0, 1, b't', 0, 0, 0, 0, 0]);
    expected.extend([0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1, b'a', 0, 0, 0, 0]);
    assert_eq!(encoded(&full, b""), expected);
    assert_eq!(
        ForwardedRequest::decode(expected.into()),
        Ok((full, Bytes::new()))
    );
}

#[test]
fn an_answer_has_one_byte_before_its_body() {
    let flags = |answer: ForwardedAnswer| {
        let mut out = BytesMut::new();
        answer.encode(&mut out);
        out.to_vec()
    };
    for (kind, byte) in [
        (AnswerKind::Result, 0),
        (AnswerKind::NotOwned, 1),
        (AnswerKind::Unprepared, 2),
        (AnswerKind::Error, 4),
    ] {
        assert_eq!(flags(ForwardedAnswer::of(kind)), [byte]);
    }
    let reported = ForwardedAnswer {
        is_applied: Some(true),
        warnings: vec!["w".to_owned()],
        steps: vec![ForwardedStep {
            activity: "s".to_owned(),
            elapsed_us: 3,
        }],
        ..ForwardedAnswer::of(AnswerKind::Result)
    };
    let mut expected = vec![0x78, 0, 1, 0, 1, b'w', 0, 0, 0, 1];
    expected.extend([0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 1, b's']);
    assert_eq!(flags(reported), expected);
}

#[test]
fn unknown_bytes_are_refused() {
    for (at, byte) in [(0, 2), (1, 0x05), (2, 0x80)] {
        let mut bytes = FIXED.to_vec();
        bytes[at] = byte;
        assert!(ForwardedRequest::decode(bytes.into()).is_err(), "{at}");
    }
    for byte in [3, 0x80, 0x20] {
        assert!(ForwardedAnswer::decode(vec![byte].into()).is_err(), "{byte}");
    }
}

fn text() -> impl Strategy<Value = Cow<'static, str>> {
    ".{0,9}".prop_map(Cow::Owned)
}

fn any_header() -> impl Strategy<Value = ForwardedRequest<'static>> {
    let version = proptest::sample::select(ProtocolVersion::ALL.to_vec());
    let opcode = proptest::sample::select(vec![Opcode::Query, Opcode::Execute, Opcode::Batch]);
    let prepared = (option::of(text()), text()).prop_map(|(keyspace, text)| PreparedText { keyspace, text });
    let keys = vec(vec(any::<u8>(), 0..5).prop_map(Bytes::from), 0..3);
    let share = option::of(vec(keys, 0..3).prop_map(Share::from));
    let numbers = (
        any::<u64>(),
        any::<i64>(),
        option::of(any::<i64>()),
        option::of(any::<i64>()),
    );
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    let rest = (
        option::of(text()),
        option::of(any::<[u8; 16]>()),
        vec(prepared, 0..3),
        share,
    );
    (version, opcode, flags, numbers, rest).prop_map(|(version, opcode, flags, numbers, rest)| {
        let (is_traced, masks, is_for_client) = flags;
        let (schema_version, token, timestamp_us, now_s) = numbers;
        let (keyspace, result_id, texts, share) = rest;
        ForwardedRequest {
            version,
            opcode,
            is_traced,
            masks,
            is_for_client,
            schema_version,
            token,
            timestamp_us,
            now_s,
            keyspace,
            result_id,
            texts,
            share,
        }
    })
}

fn any_answer() -> impl Strategy<Value = ForwardedAnswer> {
    let kind = proptest::sample::select(vec![
        AnswerKind::Result,
        AnswerKind::Error,
        AnswerKind::NotOwned,
        AnswerKind::Unprepared,
    ]);
    let step =
        (any::<i64>(), ".{0,9}").prop_map(|(elapsed_us, activity)| ForwardedStep { activity, elapsed_us });
    (
        kind,
        option::of(any::<bool>()),
        vec(".{0,9}", 0..3),
        vec(step, 0..3),
    )
        .prop_map(|(kind, is_applied, warnings, steps)| ForwardedAnswer {
            kind,
            is_applied,
            warnings,
            steps,
        })
}

proptest! {
    #[test]
    fn requests_come_as_they_were_sent(header in any_header(), body in vec(any::<u8>(), 0..9)) {
        let decoded = ForwardedRequest::decode(encoded(&header, &body)).unwrap();
        prop_assert_eq!(decoded, (header, Bytes::from(body)));
    }

    #[test]
    fn answers_come_as_they_were_sent(answer in any_answer(), body in vec(any::<u8>(), 0..9)) {
        let mut out = BytesMut::new();
        answer.encode(&mut out);
        out.extend_from_slice(&body);
        let decoded = ForwardedAnswer::decode(out.freeze()).unwrap();
        prop_assert_eq!(decoded, (answer, Bytes::from(body)));
    }

    #[test]
    fn torn_requests_are_refused_or_shorter(header in any_header(), cut in any::<prop::sample::Index>()) {
        let whole = encoded(&header, b"");
        let torn = whole.slice(..cut.index(whole.len()));
        prop_assert!(ForwardedRequest::decode(torn).is_err());
    }
}
