//! SSTables that tests write, and their merge read back as items of the blobs.

use std::collections::BTreeMap;

use helenus_row::{Cell as PackedCell, ColumnData, ColumnId};
use helenus_sstable::test_writer::TestTable;
use helenus_sstable::{BoundKind, Cell, CellKind, DeletionTime, Event, Partition, Version};

use super::*;
use crate::table::KnownTable;
use crate::table_name::TableName;

pub(super) const T: i64 = 1_500_000_000_000_000;
pub(super) const S: i64 = 1_500_000_000;

pub(super) fn table(version: Version) -> TestTable {
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

pub(super) fn int(value: i32) -> Bytes {
    Bytes::copy_from_slice(&value.to_be_bytes())
}

pub(super) fn start(key: &str) -> Event {
    Event::Partition(Partition {
        key: Bytes::copy_from_slice(key.as_bytes()),
        deletion: None,
    })
}

pub(super) fn time(offset: i64) -> DeletionTime {
    DeletionTime {
        timestamp_us: T + offset,
        local_deletion_s: S + offset,
    }
}

pub(super) fn cell(table: &TestTable, column: &str, path: Option<i32>, at: i64, value: i32) -> Cell {
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

pub(super) fn row(clustering: i32, cells: Vec<Cell>) -> Event {
    Event::Row(Row {
        clustering: vec![Some(int(clustering))],
        cells,
        ..Row::default()
    })
}

pub(super) fn marker(kind: BoundKind, clustering: i32, end: Option<i64>, begin: Option<i64>) -> Event {
    Event::RangeTombstoneMarker(RangeTombstoneMarker {
        kind,
        prefix: vec![Some(int(clustering))],
        end: end.map(time),
        start: begin.map(time),
    })
}

/// Sorts whole partitions by their tokens, as they lie in a file.
pub(super) fn file(partitions: Vec<Vec<Event>>) -> Vec<Event> {
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

pub(super) fn open(
    files: &[(&TestTable, Vec<Event>)],
    options: MergeOptions,
    known: KnownTable<'_>,
) -> Merge {
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

pub(super) fn items(mut merge: Merge) -> Vec<TransferItem> {
    let mut items = Vec::new();
    while let Some(item) = merge.next_item().unwrap() {
        items.push(item);
    }
    items
}

pub(super) fn merged(files: &[(&TestTable, Vec<Event>)]) -> Vec<TransferItem> {
    items(open(files, MergeOptions::default(), KnownTable::default()))
}

/// Returns the clustering and the unpacked row of each row item.
pub(super) fn rows_of(items: &[TransferItem]) -> Vec<(i32, helenus_row::Row)> {
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

pub(super) fn simple(row: &helenus_row::Row, id: u32) -> Option<&PackedCell> {
    row.columns.iter().find_map(|(found, data)| match data {
        ColumnData::Simple(cell) if *found == ColumnId(id) => Some(cell),
        _ => None,
    })
}
