use bytes::Bytes;
use helenus_cql::types::{UserType, UserTypeField};

use super::*;
use crate::row::{Cell, Expiry, RowBuilder};

fn expiring(timestamp_us: i64, expires_at_s: i64) -> Cell {
    Cell::expiring(
        timestamp_us,
        Expiry {
            ttl_s: 10,
            expires_at_s,
        },
        "v",
    )
}

fn is_alive(builder: &RowBuilder, shadow: Option<i64>, now_s: i64) -> bool {
    let row = RowRef::parse(builder.build()).unwrap();
    let shadow = shadow.map(|timestamp_us| Deletion {
        timestamp_us,
        local_deletion_s: 0,
    });
    live_row(&row, shadow, &CellRules::default(), now_s)
        .unwrap()
        .is_some()
}

#[test]
fn a_row_lives_through_its_liveness_or_any_cell() {
    let mut inserted = RowBuilder::new();
    inserted.liveness(Liveness {
        timestamp_us: 10,
        expiry: Some(Expiry {
            ttl_s: 5,
            expires_at_s: 100,
        }),
    });
    assert!(is_alive(&inserted, None, 99));
    assert!(!is_alive(&inserted, None, 100));
    assert!(!is_alive(&inserted, Some(10), 99));
    assert!(is_alive(&inserted, Some(9), 99));
    let mut updated = RowBuilder::new();
    updated
        .cell(ColumnId(1), expiring(10, 100))
        .cell(ColumnId(2), Cell::tombstone(10, 1));
    assert!(is_alive(&updated, None, 99));
    assert!(!is_alive(&updated, None, 100));
    let mut collection = RowBuilder::new();
    collection.complex_cell(ColumnId(1), Bytes::from_static(b"a"), expiring(10, 100));
    assert!(is_alive(&collection, None, 99));
    assert!(!is_alive(&collection, None, 100));
    assert!(!is_alive(&RowBuilder::new(), None, 0));
}

#[test]
fn tombstones_are_counted_as_in_cassandra() {
    let dead = |builder: &RowBuilder, shadow: Option<i64>| {
        let row = RowRef::parse(builder.build()).unwrap();
        let shadow = shadow.map(|timestamp_us| Deletion {
            timestamp_us,
            local_deletion_s: 0,
        });
        match live_row(&row, shadow, &CellRules::default(), 100).unwrap() {
            Some(live) => live.dead_cells,
            None => tombstones_of_dead(&row, shadow, &CellRules::default(), 100).unwrap(),
        }
    };
    let mut cells = RowBuilder::new();
    cells
        .cell(ColumnId(1), Cell::tombstone(10, 1))
        .cell(ColumnId(2), expiring(10, 100))
        .complex_cell(ColumnId(3), Bytes::from_static(b"a"), Cell::tombstone(10, 1));
    assert_eq!(dead(&cells, None), 3);
    assert_eq!(dead(&cells, Some(10)), 0);
    cells.cell(ColumnId(4), Cell::live(10, "v"));
    assert_eq!(dead(&cells, None), 3);
    let mut deleted = RowBuilder::new();
    deleted.delete_row(Deletion {
        timestamp_us: 10,
        local_deletion_s: 1,
    });
    assert_eq!(dead(&deleted, None), 1);
    deleted.cell(ColumnId(1), Cell::tombstone(9, 1));
    assert_eq!(dead(&deleted, None), 1);
    assert_eq!(dead(&deleted, Some(10)), 0);
    let mut expired = RowBuilder::new();
    expired.liveness(Liveness {
        timestamp_us: 10,
        expiry: Some(Expiry {
            ttl_s: 5,
            expires_at_s: 100,
        }),
    });
    assert_eq!(dead(&expired, None), 1);
}

#[test]
fn a_row_state_passes_the_live_columns_of_one_cell() {
    let mut builder = RowBuilder::new();
    builder
        .cell(ColumnId(1), Cell::live(5, "shadowed"))
        .cell(ColumnId(2), Cell::live(7, "live"))
        .cell(ColumnId(3), Cell::tombstone(7, 1))
        .cell(ColumnId(4), expiring(7, 100))
        .complex_cell(ColumnId(5), Bytes::from_static(b"a"), Cell::live(7, ""))
        .cell(ColumnId(6), Cell::counter(7, 3))
        .cell(ColumnId(7), Cell::live(8, "dropped"));
    let packed = builder.build();
    let shadow = Some(Deletion {
        timestamp_us: 6,
        local_deletion_s: 0,
    });
    let rules = CellRules::new(vec![(ColumnId(7), 8)], Vec::new());
    let seen = |now_s: i64| {
        let mut seen = Vec::new();
        let see = |id: ColumnId, value: &[u8]| seen.push((id.0, value.to_vec()));
        let state = row_state_with(&packed, shadow, &rules, now_s, see).unwrap();
        assert_eq!(state, row_state(&packed, shadow, &rules, now_s).unwrap());
        let row = RowRef::parse(packed.clone()).unwrap();
        let live = live_row(&row, shadow, &rules, now_s).unwrap().unwrap();
        assert_eq!(state.tombstones, live.dead_cells);
        seen
    };
    let total = 3i64.to_be_bytes().to_vec();
    let (live, ttl) = ((2, b"live".to_vec()), (4, b"v".to_vec()));
    assert_eq!(seen(99), [live.clone(), ttl, (6, total.clone())]);
    assert_eq!(seen(100), [live, (6, total)]);
}

fn elements_of(ty: &CqlType, paths: &[(&[u8], Cell)]) -> Vec<Vec<u8>> {
    let mut builder = RowBuilder::new();
    for (path, cell) in paths {
        builder.complex_cell(ColumnId(1), Bytes::copy_from_slice(path), cell.clone());
    }
    let row = RowRef::parse(builder.build()).unwrap();
    let live = live_row(&row, None, &CellRules::default(), 0).unwrap().unwrap();
    let Some(LiveColumn::Complex(elements)) = live.column(ColumnId(1)) else {
        panic!()
    };
    elements
        .clone()
        .in_cql_order(ty)
        .into_iter()
        .map(|(path, _)| path.to_vec())
        .collect()
}

#[test]
fn elements_come_in_the_order_of_their_type() {
    let (minus_one, one) = ((-1i32).to_be_bytes(), 1i32.to_be_bytes());
    let paths = [(&one[..], Cell::live(1, "")), (&minus_one[..], Cell::live(1, ""))];
    let sorted = elements_of(&CqlType::set(CqlType::INT, false), &paths);
    assert_eq!(sorted, [minus_one.to_vec(), one.to_vec()]);
}

#[test]
fn elements_that_compare_as_equal_are_one() {
    let (one, one_point_zero, two) = ([0, 0, 0, 0, 1], [0, 0, 0, 1, 10], [0, 0, 0, 0, 2]);
    let ty = CqlType::set(CqlType::DECIMAL, false);
    let written = [
        (&one[..], Cell::live(1, "")),
        (&one_point_zero[..], Cell::live(2, "")),
        (&two[..], Cell::live(1, "")),
    ];
    assert_eq!(
        elements_of(&ty, &written),
        [one_point_zero.to_vec(), two.to_vec()]
    );
    let deleted = [
        (&one[..], Cell::live(1, "")),
        (&one_point_zero[..], Cell::tombstone(2, 0)),
        (&two[..], Cell::live(1, "")),
    ];
    assert_eq!(elements_of(&ty, &deleted), [two.to_vec()]);
}

#[test]
fn collections_serialize_as_the_protocol_says() {
    let cell = |value: &'static [u8]| CellRef {
        timestamp_us: 1,
        kind: crate::row::CellKind::Live,
        value,
    };
    let map = CqlType::map(CqlType::TEXT, CqlType::TEXT, false);
    assert_eq!(
        *complex_value(&map, &[(b"k", cell(b"vv"))]),
        [0, 0, 0, 1, 0, 0, 0, 1, b'k', 0, 0, 0, 2, b'v', b'v']
    );
    let set = CqlType::set(CqlType::TEXT, false);
    assert_eq!(
        *complex_value(&set, &[(b"k", cell(b""))]),
        [0, 0, 0, 1, 0, 0, 0, 1, b'k']
    );
    let list = CqlType::list(CqlType::TEXT, false);
    assert_eq!(
        *complex_value(&list, &[(&[9; 16], cell(b"x"))]),
        [0, 0, 0, 1, 0, 0, 0, 1, b'x']
    );
    let field = |name: &str| UserTypeField {
        name: name.to_owned(),
        ty: CqlType::TEXT,
    };
    let definition = UserType {
        keyspace: "k".to_owned(),
        name: "t".to_owned(),
        fields: vec![field("a"), field("b"), field("c")],
    };
    let udt = CqlType::Udt {
        definition: definition.into(),
        frozen: false,
    };
    assert_eq!(
        *complex_value(&udt, &[(&[0, 1], cell(b"x"))]),
        [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1, b'x', 0xff, 0xff, 0xff, 0xff]
    );
}

#[test]
fn cells_of_a_dropped_column_are_gone_up_to_its_time() {
    let mut builder = RowBuilder::new();
    builder.cell(ColumnId(1), Cell::live(5, "a"));
    builder.complex_cell(ColumnId(2), Bytes::from_static(b"x"), Cell::live(5, ""));
    builder.complex_cell(ColumnId(2), Bytes::from_static(b"y"), Cell::live(6, ""));
    let row = RowRef::parse(builder.build()).unwrap();
    let columns = |until_us: i64| {
        let dropped = CellRules::new(vec![(ColumnId(2), until_us), (ColumnId(1), until_us)], Vec::new());
        let live = live_row(&row, None, &dropped, 0).unwrap()?;
        let elements = live.columns.iter().map(|(_, column)| match column {
            LiveColumn::Simple(_) => 1,
            LiveColumn::Complex(elements) => elements.iter().count(),
        });
        Some(elements.collect::<Vec<_>>())
    };
    assert_eq!(columns(4), Some(vec![1, 2]));
    assert_eq!(columns(5), Some(vec![1]));
    // Without its last cell, the row is dead.
    assert_eq!(columns(6), None);
}
