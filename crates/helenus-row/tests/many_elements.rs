//! Shows that elements of a collection can be added together, in any order.

use bytes::Bytes;
use helenus_row::{Cell, ColumnId, RowBuilder};

/// Returns cells in no order of paths. Many paths occur twice, and sometimes the first cell wins, sometimes the second.
fn cells() -> Vec<(Bytes, Cell)> {
    let cell = |number: u32| {
        let path = (number * 7919 % 61).to_be_bytes();
        let timestamp_us = i64::from(number * 31 % 17);
        let value = Bytes::copy_from_slice(&number.to_be_bytes());
        (Bytes::copy_from_slice(&path), Cell::live(timestamp_us, value))
    };
    (0..200).map(cell).collect()
}

#[test]
fn many_elements_are_the_same_as_one_by_one() {
    let column = ColumnId(3);
    let (first, second) = (cells(), cells().split_off(90));
    let mut one_by_one = RowBuilder::new();
    for (path, cell) in first.iter().chain(&second).cloned() {
        one_by_one.complex_cell(column, path, cell);
    }
    let mut together = RowBuilder::new();
    together
        .complex_cells(column, first)
        .complex_cells(column, second);
    assert_eq!(together.row(), one_by_one.row());
}
