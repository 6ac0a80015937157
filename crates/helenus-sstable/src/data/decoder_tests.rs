use bytes::Bytes;

use super::super::deletion::DeletionTime;
use super::super::event::{Cell, CellKind, Expiry, Liveness, RangeTombstoneMarker, Row};
use super::*;
use crate::clustering::BoundKind;
use crate::test_writer::TestTable;
use crate::version::Version;

const EPOCH_US: i64 = 1_442_880_000_000_000;
const EPOCH_S: i64 = 1_442_880_000;

/// Decodes bytes that arrive in pieces.
fn decode_pieces(
    table: &TestTable,
    data: &[u8],
    piece: usize,
    limits: Limits,
) -> Result<Vec<Event>, SstableError> {
    let mut decoder = Decoder::new(Arc::new(table.header()), limits);
    let mut pieces = data.chunks(piece);
    let mut events = Vec::new();
    loop {
        match decoder.step()? {
            Step::Event(event) => events.push(event),
            Step::End => return Ok(events),
            Step::NeedBytes => match pieces.next() {
                Some(bytes) => decoder.push(bytes),
                None => decoder.finish(),
            },
        }
    }
}

fn decode(table: &TestTable, data: &[u8]) -> Result<Vec<Event>, SstableError> {
    decode_pieces(table, data, 7, Limits::default())
}

fn row(table: &TestTable, clustering: &'static [u8]) -> (Row, Cell) {
    let row = Row {
        clustering: vec![Some(Bytes::from_static(clustering))],
        ..Row::default()
    };
    let cell = Cell {
        column: Arc::clone(&table.header().regular_columns[0]),
        path: None,
        timestamp_us: EPOCH_US + 42,
        kind: CellKind::Live,
        value: Bytes::from_static(&[0, 0, 0, 7]),
    };
    (row, cell)
}

const LEGACY_LIVE: &[u8] = &[0x7f, 0xff, 0xff, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0];
/// A row with clustering 5, a timestamp of 42 µs and the value 7 with the row's timestamp.
const ROW: &[u8] = &[0x24, 0x00, 0, 0, 0, 5, 0x07, 0x12, 0x2a, 0x08, 0, 0, 0, 7];

fn partition(live: &[u8], items: &[&[u8]]) -> Vec<u8> {
    [&[0, 1, b'k'][..], live, items.concat().as_slice(), &[0x01][..]].concat()
}

/// Derived by hand from `UnfilteredSerializer`, `Clustering.Serializer`, `Cell.Serializer` and `DeletionTime.Serializer`.
#[test]
fn live_row_has_cassandras_bytes() {
    for version in Version::ALL {
        let table = TestTable::new(version);
        let live = if version < Version::Oa {
            LEGACY_LIVE
        } else {
            &[0x80]
        };
        let (mut expected, cell) = row(&table, &[0, 0, 0, 5]);
        expected.liveness = Some(Liveness {
            timestamp_us: EPOCH_US + 42,
            expiry: None,
        });
        expected.cells.push(cell);
        let key = Bytes::from_static(b"k");
        let expected = [
            Event::Partition(Partition { key, deletion: None }),
            Event::Row(expected),
            Event::PartitionEnd,
        ];
        assert_eq!(
            decode(&table, &partition(live, &[ROW])).unwrap(),
            expected,
            "{version}"
        );
        assert_eq!(table.data_bytes(&expected).len(), partition(live, &[ROW]).len());
    }
}

#[test]
fn tombstones_and_ttls_have_cassandras_bytes() {
    let table = TestTable::new(Version::Nb);
    // A deleted cell without row liveness: flags 05, timestamp 1 µs, local deletion time 2 s.
    let deleted = &[0x20, 0x00, 0, 0, 0, 5, 0x04, 0x00, 0x05, 0x01, 0x02];
    // A row with TTL 9 s that expires after 128 s, and a cell that shares timestamp and TTL: flags 0x1a.
    let expiring = &[
        0x2c, 0x00, 0, 0, 0, 6, 0x0a, 0x00, 0x2a, 0x09, 0x80, 0x80, 0x1a, 0, 0, 0, 7,
    ];
    let events = decode(&table, &partition(LEGACY_LIVE, &[deleted, expiring])).unwrap();
    let (mut first, mut cell) = row(&table, &[0, 0, 0, 5]);
    cell.timestamp_us = EPOCH_US + 1;
    cell.kind = CellKind::Deleted {
        local_deletion_s: EPOCH_S + 2,
    };
    cell.value = Bytes::new();
    first.cells.push(cell);
    assert_eq!(events[1], Event::Row(first));
    let (mut second, mut cell) = row(&table, &[0, 0, 0, 6]);
    let expiry = Expiry {
        ttl_s: 9,
        expires_at_s: EPOCH_S + 128,
    };
    second.liveness = Some(Liveness {
        timestamp_us: EPOCH_US + 42,
        expiry: Some(expiry),
    });
    cell.kind = CellKind::Expiring(expiry);
    second.cells.push(cell);
    assert_eq!(events[2], Event::Row(second));
}

#[test]
fn range_tombstones_have_cassandras_bytes() {
    let table = TestTable::new(Version::Oa);
    let start = &[0x02, 0x01, 0x00, 0x01, 0x00, 0, 0, 0, 5, 0x03, 0x00, 0x05, 0x06];
    let boundary = &[
        0x02, 0x02, 0x00, 0x01, 0x00, 0, 0, 0, 6, 0x05, 0x0d, 0x05, 0x06, 0x07, 0x08,
    ];
    let end = &[0x02, 0x06, 0x00, 0x00, 0x03, 0x0f, 0x07, 0x08];
    // A partition deletion since oa: the timestamp, then seconds without sign.
    let deleted = &[0, 0, 0, 0, 0, 0, 0, 3, 0xff, 0xff, 0xff, 0xfe];
    let events = decode(&table, &partition(deleted, &[start, boundary, end])).unwrap();
    let time = |timestamp: i64, seconds: i64| {
        Some(DeletionTime {
            timestamp_us: EPOCH_US + timestamp,
            local_deletion_s: EPOCH_S + seconds,
        })
    };
    let marker = |kind, prefix: Option<&'static [u8]>, end, start| {
        let prefix = prefix
            .into_iter()
            .map(|value| Some(Bytes::from_static(value)))
            .collect();
        Event::RangeTombstoneMarker(RangeTombstoneMarker {
            kind,
            prefix,
            end,
            start,
        })
    };
    let expected = [
        Event::Partition(Partition {
            key: Bytes::from_static(b"k"),
            deletion: Some(DeletionTime {
                timestamp_us: 3,
                local_deletion_s: 0xffff_fffe,
            }),
        }),
        marker(BoundKind::InclusiveStart, Some(&[0, 0, 0, 5]), None, time(5, 6)),
        marker(
            BoundKind::ExclusiveEndInclusiveStart,
            Some(&[0, 0, 0, 6]),
            time(5, 6),
            time(7, 8),
        ),
        marker(BoundKind::InclusiveEnd, None, time(7, 8), None),
        Event::PartitionEnd,
    ];
    assert_eq!(events, expected);
}

#[test]
fn data_cut_inside_a_partition_is_refused() {
    let table = TestTable::new(Version::Nb);
    let data = partition(LEGACY_LIVE, &[ROW, ROW]);
    for len in 1..data.len() {
        let error = decode(&table, &data[..len]).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Truncated, "{len}");
    }
    assert!(decode(&table, &[]).unwrap().is_empty());
}

#[test]
fn wrong_bytes_are_refused_with_their_place() {
    let refused = |version, live: &[u8], item: &[u8]| {
        decode(&TestTable::new(version), &partition(live, &[item])).unwrap_err()
    };
    let patched = |position: usize, byte: u8| {
        let mut row = ROW.to_vec();
        row[position] = byte;
        row
    };
    // Flags of the end and of a row; a static row among rows; unknown cell flags; sizes too small and too large.
    let offset = 15;
    for (row, place) in [
        (patched(0, 0x25), 0),
        ([&[0xa4, 0x01][..], &ROW[1..]].concat(), 0),
        (patched(9, 0x28), 9),
        (patched(6, 0x06), 10),
        (patched(6, 0x08), 14),
    ] {
        let error = refused(Version::Nb, LEGACY_LIVE, &row);
        assert_eq!(
            (error.kind, error.offset),
            (ErrorKind::Corrupt, Some(offset + place)),
            "{error}"
        );
    }
    let error = refused(Version::Oa, &[0x81], ROW);
    assert_eq!((error.kind, error.offset), (ErrorKind::Corrupt, Some(3)));
}

#[test]
fn rows_over_a_limit_are_refused() {
    let table = TestTable::new(Version::Nb);
    let data = partition(LEGACY_LIVE, &[ROW]);
    let refused = |limits| decode_pieces(&table, &data, 3, limits).unwrap_err().kind;
    let bytes = Limits {
        row_bytes_max: ROW.len() - 1,
        ..Limits::default()
    };
    assert_eq!(refused(bytes), ErrorKind::Limit);
    let cells = Limits {
        row_cells_max: 0,
        ..Limits::default()
    };
    assert_eq!(refused(cells), ErrorKind::Limit);
}

#[test]
fn failed_decoder_stays_failed() {
    let mut decoder = Decoder::new(Arc::new(TestTable::new(Version::Oa).header()), Limits::default());
    decoder.push(&[0, 1, b'k', 0x81, 1, 1, 1, 1]);
    assert!(decoder.step().is_err());
    assert!(decoder.step().is_err());
}
