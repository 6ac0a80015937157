//! Rows as both sides answer them, and their differences.

use bytes::Bytes;

/// Tolerance of times of expiry, in seconds. They are computed from a TTL in whole seconds and the time of the answer.
const ENDS_TOLERANCE_S: i64 = 3;

/// The place of a row in the order of its table, which is the same in all clusters with Murmur3.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub token: i64,
    pub partition: Bytes,
    /// The encoded clustering. `None` for a partition that has only static columns.
    pub clustering: Option<Bytes>,
}

/// A row of one side.
#[derive(Clone, Debug)]
pub struct TableRow {
    pub place: Place,
    /// The values of the primary key.
    pub key: Vec<Option<Bytes>>,
    /// The cells in the order of the compared columns.
    pub cells: Vec<Cell>,
}

/// A cell of one side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    pub value: Option<Bytes>,
    /// The write time as the server answered it. `None` if it is not compared.
    pub written: Option<Bytes>,
    /// The time of expiry in seconds since 1970. `None` if the cell does not expire.
    pub ends_s: Option<i64>,
}

impl Cell {
    /// Returns true if the cells have the same value, write time and time of expiry.
    pub fn agrees_with(&self, other: &Cell) -> bool {
        let ends = match (self.ends_s, other.ends_s) {
            (Some(left_s), Some(right_s)) => left_s.abs_diff(right_s) <= ENDS_TOLERANCE_S.unsigned_abs(),
            (left, right) => left == right,
        };
        self.value == other.value && self.written == other.written && ends
    }
}

/// A difference of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    OnlyInA,
    OnlyInB,
    /// The positions of the columns whose cells differ.
    Cells(Vec<usize>),
}

impl Difference {
    /// Compares the row of both sides. `None` if it is equal.
    pub fn of(a: Option<&TableRow>, b: Option<&TableRow>) -> Option<Difference> {
        match (a, b) {
            (None, None) => None,
            (Some(_), None) => Some(Difference::OnlyInA),
            (None, Some(_)) => Some(Difference::OnlyInB),
            (Some(a), Some(b)) => {
                let cells = a.cells.iter().zip(&b.cells).enumerate();
                let differing: Vec<usize> = cells
                    .filter(|(_, (a, b))| !a.agrees_with(b))
                    .map(|(position, _)| position)
                    .collect();
                (!differing.is_empty()).then_some(Difference::Cells(differing))
            }
        }
    }
}
