use helenus_row::transfer::TransferReader;
use helenus_row::{Cell as PackedCell, ColumnData};
use helenus_sstable::{
    BoundKind, CellKind, ComplexDeletion, Event, Expiry, Liveness, Partition, RowDeletion, Version,
};

use super::fixture::*;
use super::*;
use crate::batch::Batches;
use crate::table::KnownTable;

#[test]
fn versions_of_rows_are_merged_across_files_and_formats() {
    let (old, new) = (table(Version::Me), table(Version::Da));
    let first = file(vec![
        vec![
            start("a"),
            row(1, vec![cell(&old, "v", None, 1, 10)]),
            row(3, vec![cell(&old, "v", None, 9, 30)]),
        ],
        vec![start("b"), row(1, vec![cell(&old, "v", None, 1, 1)])],
    ]);
    let second = file(vec![vec![
        start("a"),
        row(1, vec![cell(&new, "v", None, 2, 11)]),
        row(2, vec![cell(&new, "v", None, 1, 20)]),
        row(3, vec![cell(&new, "v", None, 8, 31)]),
    ]]);
    let items = merged(&[(&old, first), (&new, second)]);
    let keys: Vec<&TransferItem> = items
        .iter()
        .filter(|item| matches!(item, TransferItem::Partition(_)))
        .collect();
    assert_eq!(keys.len(), 2);
    let values: Vec<(i32, Bytes)> = rows_of(&items)
        .iter()
        .map(|(clustering, row)| (*clustering, simple(row, 1).unwrap().value.clone()))
        .collect();
    let mut of_a = vec![(1, int(11)), (2, int(20)), (3, int(30))];
    match helenus_row::murmur3_token(b"a") < helenus_row::murmur3_token(b"b") {
        true => of_a.push((1, int(1))),
        false => of_a.insert(0, (1, int(1))),
    }
    assert_eq!(values, of_a);
}

#[test]
fn everything_of_a_row_is_converted() {
    let table = table(Version::Nb);
    let expiry = Expiry {
        ttl_s: 60,
        expires_at_s: S + 60,
    };
    let map = Arc::clone(&cell(&table, "m", Some(0), 0, 0).column);
    let mut expiring = cell(&table, "v", None, 5, 1);
    expiring.kind = CellKind::Expiring(expiry);
    let mut deleted = cell(&table, "m", Some(2), 6, 0);
    deleted.kind = CellKind::Deleted {
        local_deletion_s: S + 6,
    };
    deleted.value = Bytes::new();
    let full = Row {
        clustering: vec![Some(int(1))],
        liveness: Some(Liveness {
            timestamp_us: T + 5,
            expiry: Some(expiry),
        }),
        deletion: Some(RowDeletion {
            time: time(2),
            is_shadowable: false,
        }),
        complex_deletions: vec![ComplexDeletion {
            column: map,
            time: time(4),
        }],
        cells: vec![expiring, cell(&table, "m", Some(1), 7, 8), deleted],
    };
    let fixed = Event::StaticRow(Row {
        cells: vec![cell(&table, "s", None, 1, 77)],
        ..Row::default()
    });
    let merge = open(
        &[(&table, file(vec![vec![start("k"), fixed, Event::Row(full)]]))],
        MergeOptions::default(),
        KnownTable::default(),
    );
    let items = items(merge);
    let TransferItem::StaticRow(fixed) = &items[1] else {
        panic!("{items:?}");
    };
    let fixed = helenus_row::Row::decode(fixed).unwrap();
    assert_eq!(simple(&fixed, 0), Some(&PackedCell::live(T + 1, int(77))));
    let rows = rows_of(&items);
    let row = &rows[0].1;
    let packed_expiry = helenus_row::Expiry {
        ttl_s: 60,
        expires_at_s: S + 60,
    };
    assert_eq!(row.liveness.unwrap().expiry, Some(packed_expiry));
    assert_eq!(row.deletion, Some(deletion_of(time(2))));
    assert_eq!(
        simple(row, 1),
        Some(&PackedCell::expiring(T + 5, packed_expiry, int(1)))
    );
    let ColumnData::Complex(map) = &row.columns[1].1 else {
        panic!("{row:?}");
    };
    assert_eq!(map.deletion, Some(deletion_of(time(4))));
    assert_eq!(
        map.cells,
        [
            (int(1), PackedCell::live(T + 7, int(8))),
            (int(2), PackedCell::tombstone(T + 6, S + 6))
        ]
    );
}

#[test]
fn deletions_of_replicas_pass_once() {
    let table = table(Version::Oa);
    let one = |deleted_at: Option<i64>| {
        let mut events = vec![
            Event::Partition(Partition {
                key: "k".into(),
                deletion: deleted_at.map(time),
            }),
            marker(BoundKind::ExclusiveStart, 1, None, Some(5)),
            row(3, vec![cell(&table, "v", None, 9, 3)]),
            marker(BoundKind::InclusiveEndExclusiveStart, 4, Some(5), Some(6)),
            marker(BoundKind::ExclusiveEnd, 8, Some(6), None),
        ];
        events.push(Event::PartitionEnd);
        events
    };
    let merge = open(
        &[
            (&table, one(Some(1))),
            (&table, one(Some(2))),
            (&table, one(None)),
        ],
        MergeOptions::default(),
        KnownTable::default(),
    );
    let items = items(merge);
    let range = |start: i32, end: i32, is_end_inclusive: bool, at: i64| TransferItem::RangeDeletion {
        start: TransferBound {
            values: vec![int(start)],
            is_inclusive: false,
        },
        end: TransferBound {
            values: vec![int(end)],
            is_inclusive: is_end_inclusive,
        },
        deletion: deletion_of(time(at)),
    };
    assert_eq!(items[0], TransferItem::Partition("k".into()));
    assert_eq!(items[1], TransferItem::PartitionDeletion(deletion_of(time(2))));
    assert!(matches!(items[2], TransferItem::Row { .. }));
    assert_eq!(items[3..], [range(1, 4, true, 5), range(4, 8, false, 6)]);
}

#[test]
fn long_partitions_span_batches_and_resume() {
    let table = table(Version::Nb);
    let partitions: Vec<Vec<Event>> = ["a", "b", "c"]
        .into_iter()
        .map(|key| {
            let rows = (0..100).map(|at| row(at, vec![cell(&table, "v", None, 1, at)]));
            [start(key)].into_iter().chain(rows).collect()
        })
        .collect();
    let events = file(partitions);
    let read = |from_token: Option<i64>| {
        let options = MergeOptions {
            from_token,
            ..MergeOptions::default()
        };
        let merge = open(&[(&table, events.clone())], options, KnownTable::default());
        let mut batches = Batches::new(merge, 500);
        let mut all = Vec::new();
        while let Some(batch) = batches.next_batch().unwrap() {
            all.push(batch);
        }
        (all, batches.statistics().clone(), batches.bytes_read())
    };
    let (batches, statistics, bytes_read) = read(None);
    assert!(batches.len() > 6);
    assert_eq!(
        (statistics.partitions, statistics.rows, bytes_read),
        (3, 300, 1000)
    );
    let mut summed = Statistics::default();
    let mut rows = 0;
    for batch in &batches {
        summed += &batch.statistics;
        let mut reader = TransferReader::new(batch.blob.clone()).unwrap();
        assert!(matches!(reader.next(), Ok(Some(TransferItem::Partition(_)))));
        while let Some(item) = reader.next().unwrap() {
            rows += u64::from(matches!(item, TransferItem::Row { .. }));
        }
    }
    assert_eq!((summed, rows), (statistics, 300));
    // Going on at any batch's token sends the rest of its partition and everything after it.
    let middle = &batches[batches.len() / 2];
    let (rest, statistics, _) = read(Some(middle.resume_token));
    assert_eq!(statistics.partitions, 2);
    assert_eq!(
        rest.last().unwrap().resume_token,
        batches.last().unwrap().resume_token
    );
}
