//! Write times and remaining times to live of selected values (Cassandra's `ColumnTimestamps`).

use std::ops::Range;

use bytes::Bytes;
use helenus_cql::ast::CellAttribute;

use crate::rows::CellView;

/// The write times or times to live of a selected value: of one cell, or of each element.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CellTimes {
    /// No cell exists.
    None,
    Single(Option<i64>),
    Multiple(Vec<Option<i64>>),
}

/// Returns the write time or time to live of a cell. `None` if the cell does not expire.
pub(crate) fn of_cell(attribute: CellAttribute, cell: &CellView) -> Option<i64> {
    match attribute {
        CellAttribute::Ttl => cell.ttl_s.map(i64::from),
        CellAttribute::WriteTime | CellAttribute::MaxWriteTime => Some(cell.timestamp_us),
    }
}

impl CellTimes {
    /// Returns the time of one element. All elements of a value that is stored as one cell have its time.
    pub fn get(self, index: usize) -> CellTimes {
        match self {
            CellTimes::Multiple(stamps) => match stamps.get(index) {
                Some(stamp) => CellTimes::Single(*stamp),
                None => CellTimes::None,
            },
            other => other,
        }
    }

    /// Returns the times of a range of elements.
    pub fn slice(self, range: Range<usize>) -> CellTimes {
        match self {
            _ if range.is_empty() => CellTimes::None,
            CellTimes::Multiple(stamps) => match stamps.get(range) {
                Some(stamps) => CellTimes::Multiple(stamps.to_vec()),
                None => CellTimes::None,
            },
            other => other,
        }
    }

    /// Returns the greatest time.
    pub fn max(self) -> CellTimes {
        match self {
            CellTimes::Multiple(stamps) => match stamps.into_iter().max() {
                Some(stamp) => CellTimes::Single(stamp),
                None => CellTimes::None,
            },
            other => other,
        }
    }

    /// Returns the serialized value of the selector.
    pub fn encode(self, attribute: CellAttribute) -> Option<Bytes> {
        let encode = |stamp: i64| match attribute {
            CellAttribute::Ttl => {
                Bytes::copy_from_slice(&i32::try_from(stamp).unwrap_or(i32::MAX).to_be_bytes())
            }
            CellAttribute::WriteTime | CellAttribute::MaxWriteTime => {
                Bytes::copy_from_slice(&stamp.to_be_bytes())
            }
        };
        match self {
            CellTimes::None => None,
            CellTimes::Single(stamp) => stamp.map(encode),
            CellTimes::Multiple(stamps) if stamps.is_empty() => None,
            CellTimes::Multiple(stamps) => {
                Some(encode_list(stamps.into_iter().map(|stamp| stamp.map(encode))))
            }
        }
    }
}

/// Returns a list that may contain nulls. A list of a column can't.
fn encode_list(elements: impl ExactSizeIterator<Item = Option<Bytes>>) -> Bytes {
    let mut out = (elements.len() as i32).to_be_bytes().to_vec();
    for element in elements {
        match element {
            Some(element) => {
                out.extend_from_slice(&(element.len() as i32).to_be_bytes());
                out.extend_from_slice(&element);
            }
            None => out.extend_from_slice(&(-1i32).to_be_bytes()),
        }
    }
    out.into()
}
