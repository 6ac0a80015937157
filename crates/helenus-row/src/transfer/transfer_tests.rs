//! Shows that blobs come back as they were written, and that torn ones are refused.

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::error::RowError;

fn read(blob: Bytes) -> Result<Vec<TransferItem>, RowError> {
    let mut reader = TransferReader::new(blob)?;
    let mut items = Vec::new();
    while let Some(item) = reader.next()? {
        items.push(item);
    }
    assert_eq!(reader.next(), Ok(None), "the reader stays at its end");
    Ok(items)
}

fn written(items: &[TransferItem]) -> Bytes {
    let mut writer = TransferWriter::new();
    items.iter().for_each(|item| writer.push(item));
    assert_eq!(writer.is_empty(), items.is_empty());
    let len = writer.len();
    let blob = writer.finish();
    assert!(len < blob.len() && blob.len() <= len + 11);
    blob
}

fn bytes() -> impl Strategy<Value = Bytes> {
    prop::collection::vec(any::<u8>(), 0..200).prop_map(Bytes::from)
}

fn values() -> impl Strategy<Value = Vec<Bytes>> {
    prop::collection::vec(bytes(), 0..4)
}

fn bound() -> impl Strategy<Value = TransferBound> {
    (values(), any::<bool>()).prop_map(|(values, is_inclusive)| TransferBound { values, is_inclusive })
}

fn deletion() -> impl Strategy<Value = Deletion> {
    let times = || prop_oneof![any::<i64>(), 0..2_000_000_000i64];
    (times(), times()).prop_map(|(timestamp_us, local_deletion_s)| Deletion {
        timestamp_us,
        local_deletion_s,
    })
}

fn item() -> impl Strategy<Value = TransferItem> {
    prop_oneof![
        bytes().prop_map(TransferItem::Partition),
        deletion().prop_map(TransferItem::PartitionDeletion),
        (bound(), bound(), deletion()).prop_map(|(start, end, deletion)| TransferItem::RangeDeletion {
            start,
            end,
            deletion
        }),
        bytes().prop_map(TransferItem::StaticRow),
        (values(), bytes()).prop_map(|(clustering, row)| TransferItem::Row { clustering, row }),
    ]
}

fn items() -> impl Strategy<Value = Vec<TransferItem>> {
    (bytes(), prop::collection::vec(item(), 0..12)).prop_map(|(key, mut items)| {
        items.insert(0, TransferItem::Partition(key));
        items
    })
}

#[test]
fn blob_has_the_documented_bytes() {
    let deletion = Deletion {
        timestamp_us: -1,
        local_deletion_s: 2,
    };
    let bound = |values: &[&'static [u8]], is_inclusive| TransferBound {
        values: values.iter().map(|value| Bytes::from_static(value)).collect(),
        is_inclusive,
    };
    let blob = written(&[
        TransferItem::Partition(Bytes::from_static(b"key")),
        TransferItem::PartitionDeletion(deletion),
        TransferItem::RangeDeletion {
            start: bound(&[b"c"], false),
            end: bound(&[], true),
            deletion,
        },
        TransferItem::StaticRow(Bytes::from_static(b"s")),
        TransferItem::Row {
            clustering: vec![Bytes::from_static(b"c"), Bytes::new()],
            row: Bytes::from_static(b"row"),
        },
    ]);
    let expected = [
        &b"\x01"[..],
        b"\x01\x03key",
        b"\x02\x01\x04",
        b"\x03\x02\x01\x01c\x00\x01\x04",
        b"\x04\x01s",
        b"\x05\x02\x01c\x00\x03row",
        b"\x00\x05",
    ];
    assert_eq!(blob, expected.concat());
}

#[test]
fn blob_without_items_is_empty() {
    assert_eq!(read(written(&[])), Ok(Vec::new()));
    assert_eq!(read(Bytes::new()), Err(RowError::Truncated));
}

#[test]
fn wrong_blobs_are_refused() {
    for (blob, reason) in [
        (&b"\x02\x00\x00"[..], "unknown version of rows in transfer"),
        (
            b"\x01\x04\x00\x00\x01",
            "row or deletion before the first partition",
        ),
        (b"\x01\x01\x00\x00\x02", "another number of items than at the end"),
        (
            b"\x01\x01\x00\x00\x01\x00",
            "bytes after the end of rows in transfer",
        ),
        (b"\x01\x01\x00\x06", "unknown item in rows in transfer"),
        (b"\x01\x01\x00\x03\x04", "unknown flags of a range deletion"),
    ] {
        assert_eq!(
            read(Bytes::from_static(blob)),
            Err(RowError::Corrupt(reason)),
            "{blob:?}"
        );
    }
}

#[test]
fn lengths_beyond_the_blob_are_refused() {
    // A key, and then a number of values, of 2^63 - 1.
    const LENGTH: &[u8] = b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f";
    for head in [&b"\x01\x01"[..], b"\x01\x01\x00\x05", b"\x01\x01\x00\x03\x00"] {
        let blob = Bytes::from([head, LENGTH, &[0; 100]].concat());
        assert_eq!(read(blob), Err(RowError::Truncated));
    }
    let many = [b"\x01\x01\x00\x05\x80\x80\x04", &[0u8; 70_000][..]].concat();
    assert_eq!(
        read(many.into()),
        Err(RowError::Corrupt("more than 65535 clustering values"))
    );
}

#[test]
fn reader_ends_after_an_error() {
    let mut reader = TransferReader::new(Bytes::from_static(b"\x01\x07")).unwrap();
    assert!(reader.next().is_err());
    assert_eq!(reader.next(), Ok(None));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn blobs_round_trip(items in items()) {
        prop_assert_eq!(read(written(&items)), Ok(items));
    }

    #[test]
    fn every_cut_blob_is_refused(items in items()) {
        let blob = written(&items);
        for end in 0..blob.len() {
            prop_assert!(read(blob.slice(..end)).is_err(), "cut at {}", end);
        }
    }

    #[test]
    fn flipped_blobs_are_refused_or_decode(items in items(), at in any::<prop::sample::Index>(), mask in 1..=255u8) {
        let mut blob = written(&items).to_vec();
        let at = at.index(blob.len());
        blob[at] ^= mask;
        // Bytes that decode are those of the items that they decode to, except for integers that are longer than need be.
        if let Ok(items) = read(blob.clone().into()) {
            prop_assert!(written(&items).len() <= blob.len());
        }
    }

    #[test]
    fn random_bytes_do_not_panic(mut blob in prop::collection::vec(any::<u8>(), 1..300)) {
        blob[0] = VERSION;
        drop(read(blob.into()));
    }
}
