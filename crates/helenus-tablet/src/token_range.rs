//! Ranges of Murmur3 tokens.

use serde::{Deserialize, Serialize};

/// A closed range of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenRange {
    pub first: i64,
    pub last: i64,
}

impl TokenRange {
    pub fn contains(&self, token: i64) -> bool {
        (self.first..=self.last).contains(&token)
    }

    /// Cuts the whole ring into `count` ranges of equal size.
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
