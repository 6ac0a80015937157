//! Merges of SSTables that a test writes, read back as items of the blobs.

use std::collections::BTreeMap;

use helenus_row::transfer::TransferReader;
use helenus_row::{Cell as PackedCell, CellKind as PackedKind, ColumnData, ColumnId};
use helenus_sstable::counter::{Shard, ShardKind};
use helenus_sstable::test_writer::{TestTable, counter_context};
use helenus_sstable::{
    BoundKind, Cell, CellKind, ComplexDeletion, DeletionTime, Event, Expiry, Liveness, Partition,
    RowDeletion, Version,
};

use super::*;
use crate::batch::Batches;
use crate::schema::{ColumnRole, ColumnShape, TableShape};
use crate::table::KnownTable;
use crate::table_name::TableName;

const T: i64 = 1_500_000_000_000_000;
const S: i64 = 1_500_000_000;

fn table(version: Version) -> TestTable {
    TestTable {
        min_timestamp_us: T,
        min_local_deletion_s: S,
        static_columns: vec![("s".to_owned(), "Int32Type")],
        regular_columns: vec![
            ("v".to_owned(), "Int32Type"),
            ("m".to_owned(), "MapType(Int32Type,Int32Type)"),
        ],
        ..TestTable::new(version)
    }
}

fn int(value: i32) -> Bytes {
    Bytes::copy_from_slice(&value.to_be_bytes())
}

fn start(key: &str) -> Event {
    Event::Partition(Partition {
        key: Bytes::copy_from_slice(key.as_bytes()),
        deletion: None,
    })
}

fn time(offset: i64) -> DeletionTime {
    DeletionTime {
        timestamp_us: T + offset,
        local_deletion_s: S + offset,
    }
}

fn cell(table: &TestTable, column: &str, path: Option<i32>, at: i64, value: i32) -> Cell {
    let header = table.header();
    let mut columns = header.static_columns.iter().chain(&header.regular_columns);
    let column = columns.find(|known| &*known.name == column.as_bytes()).unwrap();
    Cell {
        column: Arc::clone(column),
        path: path.map(int),
        timestamp_us: T + at,
        kind: CellKind::Live,
        value: int(value),
    }
}

fn row(clustering: i32, cells: Vec<Cell>) -> Event {
    Event::Row(Row {
        clustering: vec![Some(int(clustering))],
        cells,
        ..Row::default()
    })
}

fn marker(kind: BoundKind, clustering: i32, end: Option<i64>, begin: Option<i64>) -> Event {
    Event::RangeTombstoneMarker(RangeTombstoneMarker {
        kind,
        prefix: vec![Some(int(clustering))],
        end: end.map(time),
        start: begin.map(time),
    })
}

/// Sorts whole partitions by their tokens, as they lie in a file.
fn file(partitions: Vec<Vec<Event>>) -> Vec<Event> {
    let mut sorted: BTreeMap<i64, Vec<Event>> = BTreeMap::new();
    for mut events in partitions {
        let Some(Event::Partition(partition)) = events.first() else {
            panic!("a partition is expected");
        };
        let token = helenus_row::murmur3_token(&partition.key);
        events.push(Event::PartitionEnd);
        sorted.insert(token, events);
    }
    sorted.into_values().flatten().collect()
}

fn open(files: &[(&TestTable, Vec<Event>)], options: MergeOptions, known: KnownTable<'_>) -> Merge {
    let mut sstables: Vec<SsTable> = files
        .iter()
        .map(|(table, events)| table.open(table.folder(events)).unwrap())
        .collect();
    let layout = TableLayout::new(&TableName::new("ks", "t"), &mut sstables, known).unwrap();
    let has_positions = sstables.len() > 1;
    let inputs = sstables
        .iter()
        .enumerate()
        .map(|(number, sstable)| {
            let file = format!("file {number}");
            Input::open(&layout, sstable, file, 1000, has_positions, &options).unwrap()
        })
        .collect();
    Merge::of_inputs(Arc::new(layout), inputs, options).unwrap()
}

fn items(mut merge: Merge) -> Vec<TransferItem> {
    let mut items = Vec::new();
    while let Some(item) = merge.next_item().unwrap() {
        items.push(item);
    }
    items
}

fn merged(files: &[(&TestTable, Vec<Event>)]) -> Vec<TransferItem> {
    items(open(files, MergeOptions::default(), KnownTable::default()))
}

/// Returns the clustering and the unpacked row of each row item.
fn rows_of(items: &[TransferItem]) -> Vec<(i32, helenus_row::Row)> {
    items
        .iter()
        .filter_map(|item| match item {
            TransferItem::Row { clustering, row } => {
                let clustering = i32::from_be_bytes((*clustering[0]).try_into().unwrap());
                Some((clustering, helenus_row::Row::decode(row).unwrap()))
            }
            _ => None,
        })
        .collect()
}

fn simple(row: &helenus_row::Row, id: u32) -> Option<&PackedCell> {
    row.columns.iter().find_map(|(found, data)| match data {
        ColumnData::Simple(cell) if *found == ColumnId(id) => Some(cell),
        _ => None,
    })
}

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
fn dropped_columns_are_left_out_and_counted() {
    let table = table(Version::Nb);
    let column = |ty: &str| ColumnShape {
        role: ColumnRole::Regular,
        ty: helenus_sstable::ColumnType::parse(ty).unwrap().ty,
        is_descending: false,
    };
    let mut shape = TableShape::default();
    shape.columns.insert("v".to_owned(), column("Int32Type"));
    let key = |role| ColumnShape {
        role,
        ..column("UTF8Type")
    };
    shape
        .columns
        .insert("k".to_owned(), key(ColumnRole::PartitionKey(0)));
    shape.columns.insert(
        "c".to_owned(),
        ColumnShape {
            role: ColumnRole::Clustering(0),
            ..column("Int32Type")
        },
    );
    shape.dropped.insert("v".to_owned(), T + 5);
    let events = file(vec![vec![
        start("k"),
        row(
            1,
            vec![cell(&table, "v", None, 5, 1), cell(&table, "m", Some(1), 9, 1)],
        ),
        row(2, vec![cell(&table, "v", None, 6, 2)]),
    ]]);
    let known = KnownTable {
        target: Some(&shape),
        source: None,
    };
    let mut merge = open(&[(&table, events)], MergeOptions::default(), known);
    assert_eq!(merge.layout.statement(), "INSERT INTO ks.t (v) ROWS ?");
    let mut items = Vec::new();
    while let Some(item) = merge.next_item().unwrap() {
        items.push(item);
    }
    let rows = rows_of(&items);
    assert_eq!(rows.len(), 1, "a row of dropped cells alone isn't sent");
    assert_eq!(simple(&rows[0].1, 0), Some(&PackedCell::live(T + 6, int(2))));
    assert_eq!(merge.statistics().cells_before_drop, 1);
    let left_out: Vec<(&str, u64)> = merge
        .layout
        .left_out
        .iter()
        .map(|column| column.name.as_str())
        .zip(merge.statistics().left_out.iter().copied())
        .collect();
    assert_eq!(left_out, [("s", 0), ("m", 1)]);
}

#[test]
fn shards_of_all_replicas_make_one_total() {
    let table = TestTable {
        min_timestamp_us: T,
        min_local_deletion_s: S,
        regular_columns: vec![("n".to_owned(), "CounterColumnType")],
        ..TestTable::new(Version::Nb)
    };
    let counter = |clustering: i32, at: i64, shards: &[(u8, i64, i64)]| {
        let shards: Vec<Shard> = shards
            .iter()
            .map(|(id, clock, count)| Shard {
                id: [*id; 16],
                clock: *clock,
                count: *count,
                kind: ShardKind::Global,
            })
            .collect();
        let mut cell = cell(&table, "n", None, at, 0);
        cell.value = counter_context(&shards).into();
        row(clustering, vec![cell])
    };
    let deleted = Event::Row(Row {
        clustering: vec![Some(int(2))],
        deletion: Some(RowDeletion {
            time: time(5),
            is_shadowable: false,
        }),
        ..Row::default()
    });
    let one = file(vec![vec![
        start("k"),
        counter(1, 1, &[(1, 1, 10), (2, 5, 100)]),
        counter(2, 4, &[(1, 1, 1)]),
        counter(3, 1, &[(1, 1, 1)]),
    ]]);
    let two = file(vec![vec![
        start("k"),
        counter(1, 3, &[(1, 2, 20), (2, 4, 90)]),
        deleted,
        marker(BoundKind::InclusiveStart, 3, None, Some(2)),
        counter(3, 7, &[(2, 1, 5)]),
        marker(BoundKind::InclusiveEnd, 3, Some(2), None),
    ]]);
    let totals = |options: MergeOptions| {
        let merge = open(
            &[(&table, one.clone()), (&table, two.clone())],
            options,
            KnownTable::default(),
        );
        rows_of(&items(merge))
            .into_iter()
            .map(|(clustering, row)| (clustering, simple(&row, 0).cloned()))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        totals(MergeOptions::default()),
        [
            (1, Some(PackedCell::counter(T + 3, 120))),
            (2, None),
            (3, Some(PackedCell::counter(T + 7, 5)))
        ]
    );
    let replaced = totals(MergeOptions {
        counters_at_us: Some(T + 1000),
        ..MergeOptions::default()
    });
    assert_eq!(replaced[0], (1, Some(PackedCell::counter(T + 1000, 120))));
    assert!(
        replaced
            .iter()
            .flat_map(|(_, cell)| cell)
            .all(|cell| cell.kind == PackedKind::Counter)
    );
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
