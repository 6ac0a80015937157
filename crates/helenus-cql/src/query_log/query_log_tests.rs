use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;
use crate::error::Consistency;
use crate::frame::request::BatchKind;
use crate::frame::{BoundValue, BoundValues, ProtocolVersion, QueryParameters};

fn value() -> impl Strategy<Value = BoundValue> {
    prop_oneof![
        vec(any::<u8>(), 0..40).prop_map(|bytes| BoundValue::Set(bytes.into())),
        Just(BoundValue::Null),
        Just(BoundValue::Unset),
    ]
}

fn parameters() -> impl Strategy<Value = QueryParameters> {
    let values = vec((".{0,5}", value()), 0..4);
    let numbers = (
        option::of(1..100_i32),
        option::of(-9..9_i64),
        option::of(any::<i32>()),
    );
    (
        0..=10_u16,
        values,
        any::<bool>(),
        numbers,
        option::of("[a-z]{1,9}"),
    )
        .prop_map(
            |(level, values, named, (page_size, timestamp_us, now_s), keyspace)| {
                let values = match named && !values.is_empty() {
                    true => BoundValues::Named(values),
                    false => values
                        .into_iter()
                        .map(|(_, value)| value)
                        .collect::<Vec<_>>()
                        .into(),
                };
                QueryParameters {
                    consistency: Consistency::from_code(level).unwrap(),
                    values,
                    page_size,
                    serial_consistency: Some(Consistency::LocalSerial),
                    timestamp_us,
                    keyspace,
                    now_s: now_s.map(i64::from),
                    ..QueryParameters::default()
                }
            },
        )
}

fn statements() -> impl Strategy<Value = Statements> {
    let text = || ".{0,20}|a|b".prop_map(Arc::from);
    let logged = (text(), vec(value(), 0..4)).prop_map(|(text, values)| LoggedStatement { text, values });
    let kind = prop_oneof![
        Just(BatchKind::Logged),
        Just(BatchKind::Unlogged),
        Just(BatchKind::Counter)
    ];
    prop_oneof![
        text().prop_map(Statements::Single),
        (kind, vec(logged, 0..8)).prop_map(|(kind, statements)| Statements::Batch(kind, statements)),
    ]
}

fn entry() -> impl Strategy<Value = Entry> {
    let times = (any::<i64>(), option::of(-9..9_i64), any::<i64>());
    (times, option::of("[a-z]{0,9}"), parameters(), statements()).prop_map(
        |((start_ms, generated_timestamp_us, generated_now_s), keyspace, parameters, statements)| Entry {
            start_ms,
            protocol_version: ProtocolVersion::V5,
            generated_timestamp_us,
            generated_now_s,
            keyspace,
            parameters,
            statements,
        },
    )
}

fn segment(entries: &[Entry]) -> BytesMut {
    let mut segment = BytesMut::from(&SEGMENT_HEADER[..]);
    for entry in entries {
        segment.extend_from_slice(&encode_record(entry).unwrap());
    }
    segment
}

/// Returns every entry before the first unreadable record, and the reason why that record can't be read.
fn read(mut bytes: BytesMut) -> (Vec<Entry>, Option<UnreadableRecord>) {
    let mut entries = Vec::new();
    match take_header(&mut bytes) {
        Ok(true) => {}
        Ok(false) => return (entries, None),
        Err(why) => return (entries, Some(why)),
    }
    loop {
        match take_record(&mut bytes) {
            Ok(Some(payload)) => entries.extend(Entry::decode(payload)),
            Ok(None) => return (entries, None),
            Err(why) => return (entries, Some(why)),
        }
    }
}

proptest! {
    #[test]
    fn entries_come_back_as_they_were(entries in vec(entry(), 0..5)) {
        prop_assert_eq!(read(segment(&entries)), (entries, None));
    }

    #[test]
    fn a_torn_tail_takes_only_the_record_that_it_cuts(entries in vec(entry(), 1..5), cut in any::<prop::sample::Index>()) {
        let whole = segment(&entries);
        let mut torn = whole.clone();
        torn.truncate(cut.index(whole.len()));
        let ends = (0..=entries.len()).map(|count| segment(&entries[..count]).len());
        let kept = ends.filter(|end| *end <= torn.len()).count().saturating_sub(1);
        prop_assert_eq!(read(torn), (entries[..kept].to_vec(), None));
    }

    #[test]
    fn a_changed_byte_is_noticed(entries in vec(entry(), 1..5), at in any::<prop::sample::Index>(), change in 1..=255_u8) {
        let mut damaged = segment(&entries);
        let at = at.index(damaged.len());
        damaged[at] ^= change;
        let (kept, _) = read(damaged);
        prop_assert!(kept.len() < entries.len());
        prop_assert_eq!(&kept[..], &entries[..kept.len()]);
    }

    #[test]
    fn garbage_is_refused_without_a_panic(garbage in vec(any::<u8>(), 0..200)) {
        let _ = Entry::decode(Bytes::from(garbage.clone()));
        let mut bytes = BytesMut::from(&SEGMENT_HEADER[..]);
        bytes.extend_from_slice(&garbage);
        let _ = read(bytes);
    }

    #[test]
    fn a_damaged_entry_is_refused_without_a_panic(entry in entry(), at in any::<prop::sample::Index>(), change in 1..=255_u8) {
        let mut payload = encode_record(&entry).unwrap().slice(8..).to_vec();
        let at = at.index(payload.len());
        payload[at] ^= change;
        let _ = Entry::decode(payload.into());
    }
}

#[test]
fn the_bytes_are_those_that_are_documented() {
    let text: Arc<str> = "a".into();
    let entry = Entry {
        start_ms: 1,
        protocol_version: ProtocolVersion::V4,
        generated_timestamp_us: None,
        generated_now_s: 2,
        keyspace: Some("k".to_owned()),
        parameters: QueryParameters {
            version: ProtocolVersion::V4,
            ..QueryParameters::default()
        },
        statements: Statements::Batch(
            BatchKind::Unlogged,
            vec![
                LoggedStatement {
                    text: text.clone(),
                    values: vec![BoundValue::Null],
                },
                LoggedStatement {
                    text: text.clone(),
                    values: vec![],
                },
            ],
        ),
    };
    let record = encode_record(&entry).unwrap();
    #[rustfmt::skip]
    let payload = [
        1, // batch
        0, 0, 0, 0, 0, 0, 0, 1,
        4,
        0x80, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 2,
        0, 0, 0, 1, b'k',
        0, 0, 0, 3, 0, 1, 0, // ONE, without flags
        1, // UNLOGGED
        0, 1, 0, 0, 0, 1, b'a',
        0, 2, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0,
    ];
    assert_eq!(&record[..4], &(payload.len() as u32).to_be_bytes());
    assert_eq!(&record[8..], &payload);
    assert_eq!(
        &record[4..8],
        &crc32fast::hash(&[&record[..4], &payload].concat()).to_be_bytes()
    );
}

#[test]
fn other_files_are_told_from_segments() {
    let (entries, why) = read(BytesMut::from(&b"user:ann|host:127.0.0.1"[..]));
    assert_eq!((entries.len(), why), (0, Some(UnreadableRecord::NoSegment)));
}
