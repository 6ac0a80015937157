//! Comparisons of rows and streams, with deletions, elements and times of expiry.

use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::types::CqlType;
use helenus_row::{Cell, ColumnId, Deletion, Expiry, KeyLayout, Liveness, RowBuilder};
use helenus_sstable::ColumnKind;

use super::*;
use crate::table::{TableColumn, TableLayout};
use crate::table_name::TableName;

const NOW_S: i64 = 1_000;

fn int(value: i32) -> Bytes {
    Bytes::copy_from_slice(&value.to_be_bytes())
}

fn layout() -> TableLayout {
    let column = |name: &str, ty: CqlType| TableColumn {
        name: name.to_owned(),
        kind: ColumnKind::Regular,
        ty,
        dropped_us: None,
        is_hidden: false,
    };
    TableLayout {
        name: TableName::new("ks", "t"),
        keys: KeyLayout::new(Vec::new()),
        columns: vec![column("v", CqlType::INT)],
        left_out: Vec::new(),
        is_counter: false,
        has_liveness: true,
        has_hidden_rows: false,
    }
}

fn kinds(builder: &RowBuilder, covering_us: Option<i64>, target: Option<TargetCell>) -> (Vec<Kind>, Outcome) {
    let covering = covering_us.map(|timestamp_us| Deletion {
        timestamp_us,
        local_deletion_s: 0,
    });
    let source = SourceCells::new(&layout(), Some(builder.row()), covering);
    let mut cells = TargetCells::default();
    if let Some(cell) = target {
        let place = Place {
            column: ColumnId(0),
            path: None,
        };
        cells.cells.insert(place, cell);
    }
    let outcome = compare_row(&source, Some(&cells), NOW_S);
    (
        outcome
            .differences
            .iter()
            .map(|difference| difference.kind)
            .collect(),
        outcome,
    )
}

fn found(value: i32, written_us: i64, expires_at_s: Option<i64>) -> Option<TargetCell> {
    Some(TargetCell {
        value: int(value),
        written_us: Some(written_us),
        expires_at_s,
    })
}

fn live(value: i32, written_us: i64) -> RowBuilder {
    let mut builder = RowBuilder::new();
    builder.cell(ColumnId(0), Cell::live(written_us, int(value)));
    builder
}

#[test]
fn values_and_write_times_are_compared() {
    assert_eq!(kinds(&live(1, 10), None, found(1, 10, None)).0, []);
    assert_eq!(kinds(&live(1, 10), None, found(2, 10, None)).0, [Kind::Value]);
    assert_eq!(kinds(&live(1, 10), None, found(1, 9, None)).0, [Kind::WriteTime]);
    assert_eq!(kinds(&live(1, 10), None, None).0, [Kind::Missing]);
    let (differences, outcome) = kinds(&live(1, 10), None, found(2, 11, None));
    assert_eq!((differences, outcome.newer), (vec![], 1));
}

#[test]
fn expiry_has_a_tolerance() {
    let mut builder = RowBuilder::new();
    let expiry = Expiry {
        ttl_s: 500,
        expires_at_s: 1_400,
    };
    builder.cell(ColumnId(0), Cell::expiring(10, expiry, int(1)));
    assert_eq!(kinds(&builder, None, found(1, 10, Some(1_403))).0, []);
    assert_eq!(kinds(&builder, None, found(1, 10, Some(1_410))).0, [Kind::Expiry]);
    assert_eq!(kinds(&builder, None, found(1, 10, None)).0, [Kind::Expiry]);
}

#[test]
fn cell_that_ends_now_may_be_missing() {
    let mut builder = RowBuilder::new();
    let expiry = Expiry {
        ttl_s: 500,
        expires_at_s: NOW_S + 2,
    };
    builder.cell(ColumnId(0), Cell::expiring(10, expiry, int(1)));
    assert_eq!(kinds(&builder, None, None).0, []);
}

#[test]
fn deleted_cells_must_not_live_on() {
    let mut tombstone = RowBuilder::new();
    tombstone.cell(ColumnId(0), Cell::tombstone(10, 0));
    assert_eq!(kinds(&tombstone, None, found(1, 10, None)).0, [Kind::Resurrected]);
    assert_eq!(kinds(&tombstone, None, found(1, 11, None)).1.only_in_target, 1);
    let empty = RowBuilder::new();
    assert_eq!(kinds(&empty, Some(10), found(1, 9, None)).0, [Kind::Resurrected]);
    assert_eq!(kinds(&empty, None, found(1, 9, None)).1.oldest_extra_us, Some(9));
}

#[test]
fn live_row_must_exist() {
    let mut builder = RowBuilder::new();
    builder.liveness(Liveness {
        timestamp_us: 10,
        expiry: None,
    });
    let source = SourceCells::new(&layout(), Some(builder.row()), None);
    let outcome = compare_row(&source, None, NOW_S);
    assert_eq!(
        outcome.differences.first().map(|found| found.kind),
        Some(Kind::MissingRow)
    );
    let covering = Some(Deletion {
        timestamp_us: 10,
        local_deletion_s: 0,
    });
    let source = SourceCells::new(&layout(), Some(builder.row()), covering);
    assert_eq!(compare_row(&source, None, NOW_S), Outcome::default());
}

#[test]
fn hidden_cell_only_makes_the_row() {
    let mut layout = layout();
    layout.columns[0].is_hidden = true;
    let compare = |builder: &RowBuilder, target: Option<&TargetCells>| {
        let source = SourceCells::new(&layout, Some(builder.row()), None);
        let outcome = compare_row(&source, target, NOW_S);
        outcome
            .differences
            .iter()
            .map(|found| found.kind)
            .collect::<Vec<_>>()
    };
    assert_eq!(compare(&live(1, 10), Some(&TargetCells::default())), []);
    assert_eq!(compare(&live(1, 10), None), [Kind::MissingRow]);
    let mut deleted = RowBuilder::new();
    deleted.cell(ColumnId(0), Cell::tombstone(10, 0));
    assert_eq!(compare(&deleted, None), []);
}

#[test]
fn lists_are_compared_by_element_and_order() {
    let list = CqlType::List {
        element: Arc::new(CqlType::INT),
        frozen: false,
    };
    let mut layout = layout();
    layout.columns[0].ty = list.clone();
    let mut builder = RowBuilder::new();
    for (path, value) in [(1_u128, 1), (2, 2), (3, 2)] {
        let path = Bytes::copy_from_slice(&(path << 96 | 0x1000_u128 << 64).to_be_bytes());
        builder.complex_cell(ColumnId(0), path, Cell::live(10, int(value)));
    }
    let source = SourceCells::new(&layout, Some(builder.row()), None);
    let kinds = |values: &[i32]| {
        let value = helenus_cql::value::pack_list(values.iter().map(|value| int(*value)));
        let times = helenus_cql::value::pack_list(
            values
                .iter()
                .map(|_| Bytes::copy_from_slice(&10_i64.to_be_bytes())),
        );
        let mut target = TargetCells::default();
        target
            .add(ColumnId(0), &list, &value, Some(&times), None, NOW_S)
            .unwrap();
        let outcome = compare_row(&source, Some(&target), NOW_S);
        outcome
            .differences
            .iter()
            .map(|difference| difference.kind)
            .collect::<Vec<_>>()
    };
    assert_eq!(kinds(&[1, 2, 2]), []);
    assert_eq!(kinds(&[1, 2]), [Kind::Missing]);
    assert_eq!(kinds(&[2, 1, 2]), [Kind::Order]);
}
