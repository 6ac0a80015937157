//! The merge join of the rows of both sides, which come in the same order.

use anyhow::Result;

use super::row::{Difference, TableRow};

/// Rows in the order of their places.
pub trait Rows {
    /// Returns the next row. `None` at the end.
    fn next_row(&mut self) -> Result<Option<TableRow>>;
}

/// Joins the rows of both sides, and passes each row that differs to `found`. `is_static` returns true for
/// static columns, which are reported once a partition. `found` returns false to end the join.
pub fn join(
    a: &mut impl Rows,
    b: &mut impl Rows,
    is_static: impl Fn(usize) -> bool,
    mut found: impl FnMut(TableRow) -> bool,
) -> Result<()> {
    let (mut left, mut right) = (a.next_row()?, b.next_row()?);
    let mut static_reported = None;
    loop {
        let (of_a, of_b) = match (&left, &right) {
            (None, None) => return Ok(()),
            (Some(one), Some(other)) => (one.place <= other.place, other.place <= one.place),
            (one, other) => (one.is_some(), other.is_some()),
        };
        let mut one = None;
        if of_a {
            one = left.take();
            left = a.next_row()?;
        }
        let mut other = None;
        if of_b {
            other = right.take();
            right = b.next_row()?;
        }
        let Some(difference) = Difference::of(one.as_ref(), other.as_ref()) else {
            continue;
        };
        let Some(row) = one.or(other) else { continue };
        if let Difference::Cells(positions) = &difference
            && positions.iter().all(|position| is_static(*position))
        {
            let partition = Some(row.place.partition.clone());
            if static_reported == partition {
                continue;
            }
            static_reported = partition;
        }
        if !found(row) {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::vec::IntoIter;

    use bytes::Bytes;

    use super::*;
    use crate::compare::row::{Cell, Place};

    struct Given(IntoIter<TableRow>);

    impl Rows for Given {
        fn next_row(&mut self) -> Result<Option<TableRow>> {
            Ok(self.0.next())
        }
    }

    /// Returns a row of a partition with a static cell and another one.
    fn row(token: i64, clustering: u8, cells: [&'static str; 2]) -> TableRow {
        let cell = |value: &'static str| Cell {
            value: Some(Bytes::from_static(value.as_bytes())),
            ..Cell::default()
        };
        TableRow {
            place: Place {
                token,
                partition: Bytes::copy_from_slice(&token.to_be_bytes()),
                clustering: Some(Bytes::copy_from_slice(&[clustering])),
            },
            key: Vec::new(),
            cells: cells.map(cell).to_vec(),
        }
    }

    fn differing(a: Vec<TableRow>, b: Vec<TableRow>) -> Vec<(i64, u8)> {
        let mut found = Vec::new();
        let (mut a, mut b) = (Given(a.into_iter()), Given(b.into_iter()));
        join(
            &mut a,
            &mut b,
            |position| position == 0,
            |row| {
                found.push((row.place.token, row.place.clustering.unwrap()[0]));
                true
            },
        )
        .unwrap();
        found
    }

    #[test]
    fn missing_and_changed_rows_are_found() {
        let all = || {
            vec![
                row(1, 1, ["s", "x"]),
                row(1, 2, ["s", "y"]),
                row(5, 0, ["t", "z"]),
            ]
        };
        assert!(differing(all(), all()).is_empty());
        for missing in 0..3 {
            let mut fewer = all();
            let gone = fewer.remove(missing);
            let expected = [(gone.place.token, gone.place.clustering.unwrap()[0])];
            assert_eq!(differing(all(), fewer.clone()), expected);
            assert_eq!(differing(fewer, all()), expected);
        }
        let changed = vec![
            row(1, 1, ["s", "x"]),
            row(1, 2, ["s", "?"]),
            row(5, 0, ["t", "z"]),
        ];
        assert_eq!(differing(all(), changed), [(1, 2)]);
        assert_eq!(differing(all(), Vec::new()).len(), 3);
    }

    #[test]
    fn static_cells_are_found_once_a_partition() {
        let a = vec![
            row(1, 1, ["s", "x"]),
            row(1, 2, ["s", "y"]),
            row(1, 3, ["s", "z"]),
        ];
        let b = vec![
            row(1, 1, ["t", "x"]),
            row(1, 2, ["t", "y"]),
            row(1, 3, ["t", "?"]),
        ];
        assert_eq!(differing(a, b), [(1, 1), (1, 3)]);
    }
}
