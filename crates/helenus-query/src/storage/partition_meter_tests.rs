use std::sync::Arc;

use bytes::Bytes;
use helenus_row::{Cell, ColumnId, RowBuilder, TableId, archive, key};
use parking_lot::Mutex;

use super::{MeasuredPartition, PartitionThresholds};

const TABLE: TableId = TableId(7);

fn row(partition: &[u8], clustering: &[u8]) -> Bytes {
    key::row_key(TABLE, 1, partition, clustering)
}

/// Returns the reports for these entries.
fn reported(
    bytes: Option<u64>,
    tombstones: Option<u64>,
    entries: &[(Bytes, Bytes)],
) -> Vec<MeasuredPartition> {
    let thresholds = Arc::new(PartitionThresholds::default());
    let found = Arc::new(Mutex::new(Vec::new()));
    let sink = found.clone();
    thresholds.report_to(move |partition| sink.lock().push(partition.clone()));
    thresholds.set(bytes, tombstones);
    let mut meter = thresholds.meter().expect("a threshold");
    for (key, value) in entries {
        meter.add(key, value);
    }
    meter.end();
    let found = found.lock();
    found.clone()
}

#[test]
fn partitions_beyond_the_size_are_reported_each_by_itself() {
    let value = Bytes::from(vec![0; 100]);
    let entries: Vec<(Bytes, Bytes)> = [
        (b"a", b"1"),
        (b"a", b"2"),
        (b"b", b"1"),
        (b"c", b"1"),
        (b"c", b"2"),
    ]
    .iter()
    .map(|(partition, clustering)| (row(*partition, *clustering), value.clone()))
    .collect();
    let of_two: u64 = 2 * (entries[0].0.len() + value.len()) as u64;
    let found = reported(Some(of_two - 1), None, &entries);
    let sizes: Vec<(u64, bool)> = found
        .iter()
        .map(|partition| (partition.bytes, entries[0].0.starts_with(&partition.prefix)))
        .collect();
    assert_eq!(sizes, [(of_two, true), (of_two, false)]);
    assert!(reported(Some(of_two), None, &entries).is_empty());
}

#[test]
fn tombstones_are_counted_by_partition() {
    let mut dead = RowBuilder::new();
    dead.cell(ColumnId(1), Cell::tombstone(1, 1));
    dead.cell(ColumnId(2), Cell::tombstone(1, 1));
    let entries = [
        (row(b"a", b"1"), dead.build()),
        (row(b"a", b"2"), dead.build()),
        (row(b"b", b"1"), dead.build()),
    ];
    let found = reported(None, Some(3), &entries);
    let counts: Vec<u64> = found.iter().map(|partition| partition.tombstones).collect();
    assert_eq!(counts, [4]);
}

#[test]
fn copies_of_tombstones_in_the_archive_are_not_the_partitions() {
    let mut dead = RowBuilder::new();
    dead.cell(ColumnId(1), Cell::tombstone(1, 1));
    let archived = archive::archive_key(&row(b"a", b"1")).expect("a key");
    assert!(reported(None, Some(0), &[(archived, dead.build())]).is_empty());
}

#[test]
fn without_thresholds_nothing_is_measured() {
    let thresholds = Arc::new(PartitionThresholds::default());
    assert!(thresholds.meter().is_none());
    thresholds.set(Some(1), None);
    assert!(thresholds.meter().is_some());
    thresholds.set(None, None);
    assert!(thresholds.meter().is_none());
}
