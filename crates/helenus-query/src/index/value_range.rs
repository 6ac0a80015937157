//! Ranges of values in indexes whose entries are in the order of the values.

use std::ops::Bound;

use bytes::Bytes;
use helenus_cql::ast::Operator;
use helenus_row::{ByteRange, key};

use super::entries::entry_key;
use crate::schema::Index;

/// A range of the keys of entries (`index::entries::placed_value`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ValueRange {
    start: Bound<Bytes>,
    end: Bound<Bytes>,
}

impl ValueRange {
    /// Returns the range of all values.
    pub fn all() -> ValueRange {
        ValueRange {
            start: Bound::Unbounded,
            end: Bound::Unbounded,
        }
    }

    /// Returns the range of a single value.
    pub fn exactly(value: Bytes) -> ValueRange {
        ValueRange {
            start: Bound::Included(value.clone()),
            end: Bound::Included(value),
        }
    }

    /// Returns the range of values that `operator bound` accepts. `None` if the operator does not define a range.
    pub fn beyond(operator: Operator, bound: Bytes) -> Option<ValueRange> {
        let (start, end) = match operator {
            Operator::Gt => (Bound::Excluded(bound), Bound::Unbounded),
            Operator::Gte => (Bound::Included(bound), Bound::Unbounded),
            Operator::Lt => (Bound::Unbounded, Bound::Excluded(bound)),
            Operator::Lte => (Bound::Unbounded, Bound::Included(bound)),
            _ => return None,
        };
        Some(ValueRange { start, end })
    }

    /// Returns the range of values with a prefix, for values in the order of their bytes.
    pub fn beginning_with(prefix: &Bytes) -> ValueRange {
        ValueRange {
            start: Bound::Included(prefix.clone()),
            end: key::successor(prefix).map_or(Bound::Unbounded, Bound::Excluded),
        }
    }

    /// Narrows the range to its intersection with another one.
    pub fn narrow(&mut self, other: ValueRange) {
        let is_excluded = |bound: &Bound<Bytes>| matches!(bound, Bound::Excluded(_));
        if let Some(start) = value(&other.start)
            && value(&self.start)
                .is_none_or(|known| (start, is_excluded(&other.start)) > (known, is_excluded(&self.start)))
        {
            self.start = other.start;
        }
        if let Some(end) = value(&other.end)
            && value(&self.end)
                .is_none_or(|known| (end, !is_excluded(&other.end)) < (known, !is_excluded(&self.end)))
        {
            self.end = other.end;
        }
    }

    pub fn contains(&self, value: &Bytes) -> bool {
        std::ops::RangeBounds::contains(&(self.start.clone(), self.end.clone()), value)
    }

    /// Returns the token of the lower bound.
    pub fn first_token(&self, index: &Index) -> i64 {
        value(&self.start).map_or(i64::MIN + 1, |start| entry_key(index, start.clone()).token)
    }

    /// Returns the token of the upper bound.
    pub fn last_token(&self, index: &Index) -> i64 {
        value(&self.end).map_or(i64::MAX, |end| entry_key(index, end.clone()).token)
    }

    /// Returns the range of keys in the index's hidden table.
    pub fn keys(&self, index: &Index) -> ByteRange {
        let number = index.table.number;
        let table = key::table_range(number);
        let of = |value: &Bytes| {
            let partition = entry_key(index, value.clone());
            key::partition_range(number, partition.token, &partition.bytes)
        };
        let start = match &self.start {
            Bound::Included(value) => Some(of(value).start),
            Bound::Excluded(value) => of(value).end,
            Bound::Unbounded => Some(table.start.clone()),
        };
        let end = match &self.end {
            Bound::Included(value) => of(value).end,
            Bound::Excluded(value) => Some(of(value).start),
            Bound::Unbounded => table.end.clone(),
        };
        ByteRange {
            start: start.or(table.end).unwrap_or(table.start),
            end,
        }
    }
}

fn value(bound: &Bound<Bytes>) -> Option<&Bytes> {
    match bound {
        Bound::Included(value) | Bound::Excluded(value) => Some(value),
        Bound::Unbounded => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(operator: Operator, bound: &'static [u8]) -> ValueRange {
        ValueRange::beyond(operator, Bytes::from_static(bound)).unwrap()
    }

    fn within(bounds: &[(Operator, &'static [u8])]) -> Vec<u8> {
        let mut whole = range(bounds[0].0, bounds[0].1);
        for (operator, bound) in &bounds[1..] {
            whole.narrow(range(*operator, bound));
        }
        let is_in = |byte: &u8| whole.contains(&Bytes::copy_from_slice(&[*byte]));
        (0..10).filter(is_in).collect()
    }

    #[test]
    fn ranges_are_narrowed_from_both_ends() {
        use Operator::{Gt, Gte, Lt, Lte};
        assert_eq!(within(&[(Gt, &[7])]), [8, 9]);
        assert_eq!(within(&[(Gt, &[2]), (Lte, &[4])]), [3, 4]);
        assert_eq!(within(&[(Lt, &[3]), (Lte, &[3])]), [0, 1, 2]);
        assert_eq!(within(&[(Lte, &[3]), (Lt, &[3])]), [0, 1, 2]);
        assert_eq!(within(&[(Gte, &[8]), (Gt, &[8]), (Gte, &[1])]), [9]);
        assert!(within(&[(Gt, &[5]), (Lt, &[5])]).is_empty());
        assert!(ValueRange::beyond(Operator::Eq, Bytes::new()).is_none());
    }

    #[test]
    fn all_values_and_single_ones_are_ranges() {
        let mut range = ValueRange::all();
        assert!(range.contains(&Bytes::new()) && range.contains(&Bytes::from_static(b"\xff")));
        range.narrow(ValueRange::exactly(Bytes::from_static(b"b")));
        let contains = |value: &'static [u8]| range.contains(&Bytes::from_static(value));
        assert!(contains(b"b") && !contains(b"a") && !contains(b"ba"));
    }

    #[test]
    fn beginnings_are_ranges() {
        let holds = |prefix: &'static [u8], value: &'static [u8]| {
            ValueRange::beginning_with(&Bytes::from_static(prefix)).contains(&Bytes::from_static(value))
        };
        assert!(holds(b"ab", b"ab") && holds(b"ab", b"ab\xff\xff") && holds(b"\xff", b"\xff\xff"));
        assert!(!holds(b"ab", b"a") && !holds(b"ab", b"ac") && !holds(b"\xff", b"\xfe"));
    }
}
