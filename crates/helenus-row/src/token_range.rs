//! Ranges of Murmur3 tokens.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A closed range of Murmur3 tokens. Documents of stores and clusters contain its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TokenRange {
    pub first: i64,
    pub last: i64,
}

impl TokenRange {
    pub const RING: TokenRange = TokenRange {
        first: i64::MIN,
        last: i64::MAX,
    };

    /// Returns the range of one token.
    pub const fn of(token: i64) -> TokenRange {
        TokenRange {
            first: token,
            last: token,
        }
    }

    pub fn contains(&self, token: i64) -> bool {
        (self.first..=self.last).contains(&token)
    }

    /// Returns the number of tokens in the range.
    pub fn width(&self) -> u128 {
        (i128::from(self.last) - i128::from(self.first) + 1).max(0) as u128
    }

    /// Returns the range's share of the ring, from 0 to 1.
    pub fn share(&self) -> f64 {
        self.width() as f64 / TokenRange::RING.width() as f64
    }

    /// Splits the range before token `at`. `None` if a half would be empty.
    pub fn split_at(&self, at: i64) -> Option<[TokenRange; 2]> {
        let (first, last) = (self.first, self.last);
        (first < at && at <= last)
            .then(|| [TokenRange { first, last: at - 1 }, TokenRange { first: at, last }])
    }

    /// Returns the token before which a split leaves two equal halves. `None` if there is only one token.
    pub fn middle(&self) -> Option<i64> {
        let middle = i128::from(self.first) + (self.width() / 2) as i128;
        (self.first < self.last).then_some(middle as i64)
    }

    /// Splits the whole ring into `count` ranges of equal size. The last range gets the rest.
    pub fn split_ring(count: usize) -> Vec<TokenRange> {
        let count = count.max(1) as i128;
        let width = (1i128 << 64) / count;
        let start = |index: i128| i128::from(i64::MIN) + width * index;
        (0..count)
            .map(|index| TokenRange {
                first: start(index) as i64,
                last: if index + 1 == count {
                    i64::MAX
                } else {
                    (start(index + 1) - 1) as i64
                },
            })
            .collect()
    }
}

impl fmt::Display for TokenRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}, {}]", self.first, self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::TokenRange;

    #[test]
    fn the_ring_is_cut_without_gap_or_overlap() {
        for count in [1, 2, 3, 7, 16, 1000] {
            let ranges = TokenRange::split_ring(count);
            assert_eq!(ranges.len(), count);
            assert_eq!((ranges[0].first, ranges[count - 1].last), (i64::MIN, i64::MAX));
            assert!(ranges.windows(2).all(|pair| pair[0].last + 1 == pair[1].first));
        }
    }

    #[test]
    fn a_range_is_cut_in_the_middle_until_one_token_is_left() {
        let [left, right] = TokenRange::RING
            .split_at(TokenRange::RING.middle().unwrap())
            .unwrap();
        assert_eq!((left.last, right.first), (-1, 0));
        let two = TokenRange { first: 4, last: 5 };
        let [left, right] = two.split_at(two.middle().unwrap()).unwrap();
        assert_eq!((left.width(), right.width()), (1, 1));
        assert_eq!(left.middle(), None);
        assert_eq!(two.split_at(4), None);
        assert_eq!(two.split_at(6), None);
    }
}
