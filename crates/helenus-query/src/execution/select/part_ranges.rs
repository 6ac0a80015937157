//! Division of a range of tokens into parts.

use std::collections::HashSet;
use std::ops::Bound;

use helenus_tablet::TokenRange;

use crate::analysis::restrictions::token::TokenBounds;
use crate::storage::ExecutionContext;

/// The division of the tokens among tablets and nodes.
pub(super) struct Ring {
    /// The tablets, in the order of tokens.
    tablets: Vec<TokenRange>,
    /// Number of nodes with tablets.
    pub nodes: usize,
    /// True if other nodes have tablets.
    pub has_peers: bool,
}

impl Ring {
    pub fn of(context: &ExecutionContext) -> Ring {
        let Some(cluster) = context.cluster() else {
            let tablets = context.store.tablets();
            return Ring {
                tablets: tablets.iter().map(|tablet| tablet.token_range()).collect(),
                nodes: 1,
                has_peers: false,
            };
        };
        let (tablets, here) = (cluster.tablets(), cluster.here());
        let owners: HashSet<_> = tablets.iter().filter_map(|tablet| tablet.owner).collect();
        Ring {
            tablets: tablets.iter().map(|tablet| tablet.tokens).collect(),
            nodes: owners.len().max(1),
            has_peers: owners.iter().any(|owner| *owner != here),
        }
    }

    /// Divides the tokens within the bounds, in order. Parts end where tablets end. If there are few tablets, each is divided further.
    pub fn cut(&self, bounds: TokenBounds, parts_min: usize) -> Vec<TokenRange> {
        cut_at(bounds, &self.tablets, parts_min)
    }
}

fn cut_at(bounds: TokenBounds, tablets: &[TokenRange], parts_min: usize) -> Vec<TokenRange> {
    let first = match bounds.start {
        Bound::Unbounded => Some(i64::MIN),
        Bound::Included(token) => Some(token),
        Bound::Excluded(token) => token.checked_add(1),
    };
    let last = match bounds.end {
        Bound::Unbounded => Some(i64::MAX),
        Bound::Included(token) => Some(token),
        Bound::Excluded(token) => token.checked_sub(1),
    };
    let (Some(first), Some(last)) = (first, last) else {
        return Vec::new();
    };
    let each = parts_min.div_ceil(tablets.len().max(1)).max(1) as i128;
    let mut parts = Vec::new();
    let mut next = Some(first);
    // Tokens between two tablets or after the last one will belong to some tablet by the time they are read.
    for end in tablets.iter().map(|tablet| tablet.last).chain([i64::MAX]) {
        let end = end.min(last);
        let Some(start) = next.filter(|start| *start <= end) else {
            continue;
        };
        let (from, width) = (i128::from(start), i128::from(end) - i128::from(start) + 1);
        let at = |part: i128| from + width * part / each;
        let ranges = (0..each).map(|part| (at(part), at(part + 1) - 1));
        let ranges = ranges.filter(|(first, last)| first <= last);
        parts.extend(ranges.map(|(first, last)| TokenRange {
            first: first as i64,
            last: last as i64,
        }));
        next = end.checked_add(1);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(start: Bound<i64>, end: Bound<i64>) -> TokenBounds {
        TokenBounds { start, end }
    }

    /// Checks that the parts cover the tokens of the bounds, in order and without a gap.
    fn check(parts: &[TokenRange], first: i64, last: i64) {
        assert_eq!(parts.first().unwrap().first, first);
        assert_eq!(parts.last().unwrap().last, last);
        assert!(parts.iter().all(|part| part.first <= part.last));
        for pair in parts.windows(2) {
            assert_eq!(pair[0].last + 1, pair[1].first);
        }
    }

    #[test]
    fn parts_cover_the_bounds_whatever_the_tablets_are() {
        let ring = TokenRange::split_ring(3);
        let with_gap: Vec<TokenRange> = ring.iter().step_by(2).copied().collect();
        for tablets in [ring.as_slice(), &with_gap, &[]] {
            for parts_min in [1, 2, 7, 16] {
                let all = cut_at(TokenBounds::ALL, tablets, parts_min);
                check(&all, i64::MIN, i64::MAX);
                assert!(all.len() >= parts_min);
                let some = bounds(Bound::Excluded(-5), Bound::Included(5));
                check(&cut_at(some, tablets, parts_min), -4, 5);
                let one = bounds(Bound::Included(7), Bound::Included(7));
                assert_eq!(cut_at(one, tablets, parts_min).len(), 1);
            }
        }
    }

    #[test]
    fn of_no_tokens_there_are_no_parts() {
        let tablets = TokenRange::split_ring(2);
        let behind = bounds(Bound::Excluded(i64::MAX), Bound::Unbounded);
        assert!(cut_at(behind, &tablets, 4).is_empty());
        let none = bounds(Bound::Excluded(3), Bound::Excluded(4));
        assert!(cut_at(none, &tablets, 4).is_empty());
    }
}
