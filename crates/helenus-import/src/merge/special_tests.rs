//! Counters, compact tables, dropped columns and overflowed TTLs.

use helenus_row::{Cell as PackedCell, CellKind as PackedKind};
use helenus_sstable::counter::{Shard, ShardKind};
use helenus_sstable::test_writer::{TestTable, counter_context};
use helenus_sstable::{BoundKind, CellKind, Event, Expiry, Liveness, RowDeletion, Version};

use super::fixture::*;
use super::*;
use crate::schema::{ColumnRole, ColumnShape, TableShape};
use crate::table::KnownTable;
use crate::table_name::TableName;

#[test]
fn overflowed_ttls_have_expired() {
    let table = TestTable {
        min_local_deletion_s: -100,
        ..table(Version::Md)
    };
    let mut overflowed = cell(&table, "v", None, 1, 1);
    overflowed.kind = CellKind::Expiring(Expiry {
        ttl_s: 60,
        expires_at_s: -50,
    });
    let items = merged(&[(&table, file(vec![vec![start("k"), row(1, vec![overflowed])]]))]);
    let expected = helenus_row::Expiry {
        ttl_s: 60,
        expires_at_s: 0,
    };
    let rows = rows_of(&items);
    assert_eq!(
        simple(&rows[0].1, 1),
        Some(&PackedCell::expiring(T + 1, expected, int(1)))
    );
}

#[test]
fn rows_of_compact_tables_have_no_liveness() {
    let table = TestTable {
        regular_columns: vec![("value".to_owned(), "Int32Type")],
        min_timestamp_us: T,
        ..TestTable::new(Version::Me)
    };
    let create = "CREATE TABLE ks.t (k text, c int, value int, PRIMARY KEY (k, c)) WITH COMPACT STORAGE";
    let schema = crate::schema::SourceSchema::read(&[crate::schema::script::SchemaText {
        path: "schema.cql".into(),
        text: create.to_owned(),
    }])
    .unwrap();
    let shape = schema.shape(&TableName::new("ks", "t")).unwrap().unwrap();
    let live = Row {
        clustering: vec![Some(int(1))],
        liveness: Some(Liveness {
            timestamp_us: T + 1,
            expiry: None,
        }),
        cells: vec![cell(&table, "value", None, 1, 7)],
        ..Row::default()
    };
    // A row that lacks its last clustering column.
    let mut short = live.clone();
    short.clustering = vec![None];
    let events = file(vec![vec![start("k"), Event::Row(short), Event::Row(live)]]);
    let known = KnownTable {
        target: None,
        source: Some(&shape),
    };
    let items = items(open(&[(&table, events)], MergeOptions::default(), known));
    let packed: Vec<(usize, bool)> = items
        .iter()
        .filter_map(|item| match item {
            TransferItem::Row { clustering, row } => {
                let row = helenus_row::Row::decode(row).unwrap();
                Some((clustering.len(), row.liveness.is_some()))
            }
            _ => None,
        })
        .collect();
    assert_eq!(packed, [(0, false), (1, false)]);
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
fn covered_cells_are_not_sent() {
    let table = table(Version::Nb);
    let deleted = Event::Partition(helenus_sstable::Partition {
        key: "k".into(),
        deletion: Some(time(3)),
    });
    let one = file(vec![vec![
        deleted,
        row(1, vec![cell(&table, "v", None, 3, 1)]),
        row(2, vec![cell(&table, "v", None, 4, 2)]),
    ]]);
    let two = file(vec![vec![
        start("k"),
        row(1, vec![cell(&table, "v", None, 2, 0)]),
        marker(BoundKind::InclusiveStart, 2, None, Some(5)),
        row(
            3,
            vec![cell(&table, "v", None, 6, 3), cell(&table, "m", Some(1), 5, 1)],
        ),
        marker(BoundKind::InclusiveEnd, 4, Some(5), None),
        row(5, vec![cell(&table, "v", None, 4, 5)]),
    ]]);
    let mut merge = open(
        &[(&table, one), (&table, two)],
        MergeOptions::default(),
        KnownTable::default(),
    );
    let mut items = Vec::new();
    while let Some(item) = merge.next_item().unwrap() {
        items.push(item);
    }
    let rows = rows_of(&items);
    let clusterings: Vec<i32> = rows.iter().map(|(clustering, _)| *clustering).collect();
    assert_eq!(clusterings, [3, 5]);
    assert_eq!(rows[0].1.columns.len(), 1, "the covered element is left out");
    assert_eq!(
        (merge.statistics().shadowed, merge.statistics().tombstones),
        (4, 2)
    );
}
