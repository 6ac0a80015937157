use helenus_cql::value::uuid::{from_ticks, ticks_at_micros};
use helenus_cql::value::{pack_map, pack_set};
use helenus_import::schema::{ColumnRole, ColumnShape, TableShape};
use helenus_row::row::{CellKind, ColumnData, Row};

use super::*;

const WRITTEN_US: i64 = 1_600_000_000_000_000;
const NOW_S: i64 = 1_700_000_000;

fn plan() -> TablePlan {
    let column = |role, ty| ColumnShape {
        role,
        ty,
        is_descending: false,
    };
    let columns = [
        ("p", column(ColumnRole::PartitionKey(0), CqlType::INT)),
        ("c", column(ColumnRole::Clustering(0), CqlType::INT)),
        (
            "l",
            column(ColumnRole::Regular, CqlType::list(CqlType::INT, false)),
        ),
        ("v", column(ColumnRole::Regular, CqlType::INT)),
        ("s", column(ColumnRole::Static, CqlType::INT)),
    ];
    let shape = TableShape {
        columns: columns.map(|(name, column)| (name.to_owned(), column)).into(),
        ..TableShape::default()
    };
    TablePlan::new(&helenus_import::TableName::new("ks", "t"), &shape, 86_400, 0)
}

fn number(value: i32) -> Option<Bytes> {
    Some(Bytes::copy_from_slice(&value.to_be_bytes()))
}

/// Returns a row of the log. `cells` are those of the columns l, v and s: values and flags.
fn logged(
    sequence: i32,
    operation: u8,
    ttl_s: Option<i64>,
    c: Option<i32>,
    cells: [Option<Bytes>; 7],
) -> LogRow {
    let time = from_ticks(ticks_at_micros(WRITTEN_US), 0x8000_0000_0000_0001);
    let head = [
        Some(Bytes::copy_from_slice(&time.to_be_bytes())),
        number(sequence),
        Some(Bytes::copy_from_slice(&[operation])),
        Some(Bytes::copy_from_slice(&WRITTEN_US.to_be_bytes())),
        ttl_s.map(|ttl_s| Bytes::copy_from_slice(&ttl_s.to_be_bytes())),
        number(7),
        c.and_then(number),
    ];
    LogRow::decode(&plan(), head.into_iter().chain(cells).collect()).unwrap()
}

fn change(row: LogRow) -> TransferItem {
    Changes::default()
        .change(&plan(), row, NOW_S)
        .unwrap()
        .unwrap()
        .item
}

fn truth() -> Option<Bytes> {
    Some(Bytes::from_static(&[1]))
}

#[test]
fn insert_has_liveness_and_expires() {
    let row = logged(
        0,
        INSERT,
        Some(60),
        Some(1),
        [None, None, None, number(5), None, None, None],
    );
    let TransferItem::Row { clustering, row } = change(row) else {
        panic!()
    };
    assert_eq!(clustering, [number(1).unwrap()]);
    let row = Row::decode(&row).unwrap();
    let expires_at_s = WRITTEN_US / 1_000_000 + 60;
    let liveness = row.liveness.unwrap();
    assert_eq!(liveness.timestamp_us, WRITTEN_US);
    assert_eq!(liveness.expiry.unwrap().expires_at_s, expires_at_s);
    let [(ColumnId(1), ColumnData::Simple(cell))] = row.columns.as_slice() else {
        panic!()
    };
    assert!(matches!(cell.kind, CellKind::Expiring(expiry) if expiry.expires_at_s == expires_at_s));
}

#[test]
fn overwritten_list_keeps_the_ids_of_its_elements() {
    let (one, two) = ([1; 16], [2; 16]);
    let value = pack_map(&CqlType::BLOB, [(one, 10_i32.to_be_bytes())]);
    let gone = pack_set(&CqlType::BLOB, [two]);
    let row = logged(
        0,
        UPDATE,
        None,
        Some(1),
        [Some(value), truth(), Some(gone), None, None, None, None],
    );
    let TransferItem::Row { row, .. } = change(row) else {
        panic!()
    };
    let row = Row::decode(&row).unwrap();
    assert_eq!(row.liveness, None);
    let [(ColumnId(0), ColumnData::Complex(list))] = row.columns.as_slice() else {
        panic!()
    };
    assert_eq!(list.deletion.unwrap().timestamp_us, WRITTEN_US - 1);
    let paths: Vec<&[u8]> = list.cells.iter().map(|(path, _)| path.as_ref()).collect();
    assert_eq!(paths, [&one[..], &two[..]]);
    assert!(matches!(list.cells[1].1.kind, CellKind::Tombstone { .. }));
}

#[test]
fn row_without_clustering_is_static() {
    let row = logged(
        0,
        UPDATE,
        None,
        None,
        [None, None, None, None, None, None, truth()],
    );
    let TransferItem::StaticRow(row) = change(row) else {
        panic!()
    };
    let row = Row::decode(&row).unwrap();
    assert!(matches!(
        row.columns.as_slice(),
        [(ColumnId(2), ColumnData::Simple(cell))] if matches!(cell.kind, CellKind::Tombstone { .. })
    ));
}

#[test]
fn range_needs_both_of_its_rows() {
    let none = || [const { None }; 7];
    let mut changes = Changes::default();
    let start = logged(0, RANGE_START_EXCLUSIVE, None, Some(1), none());
    assert_eq!(changes.change(&plan(), start, NOW_S).unwrap(), None);
    assert!(changes.is_open());
    let end = logged(1, RANGE_END_INCLUSIVE, None, None, none());
    let found = changes.change(&plan(), end, NOW_S).unwrap().unwrap();
    let TransferItem::RangeDeletion { start, end, deletion } = found.item else {
        panic!()
    };
    assert_eq!((start.values.len(), start.is_inclusive), (1, false));
    assert_eq!((end.values.len(), end.is_inclusive), (0, true));
    assert_eq!(deletion.timestamp_us, WRITTEN_US);
    let alone = logged(1, RANGE_END_INCLUSIVE, None, None, none());
    assert!(changes.change(&plan(), alone, NOW_S).is_err());
}

#[test]
fn images_are_no_changes() {
    for operation in IMAGES {
        let row = logged(
            0,
            operation,
            None,
            Some(1),
            [None, None, None, number(1), None, None, None],
        );
        assert_eq!(Changes::default().change(&plan(), row, NOW_S).unwrap(), None);
    }
}
