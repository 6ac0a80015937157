//! Differences between the clocks of the nodes, measured by greetings.

use std::collections::HashMap;

use parking_lot::Mutex;
use uuid::Uuid;

/// The clocks of other nodes, relative to this node's.
#[derive(Debug, Default)]
pub struct ClockSkew(Mutex<HashMap<Uuid, Skew>>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Skew {
    node: String,
    /// Difference in microseconds. Positive if the other clock is ahead.
    us: i64,
}

impl ClockSkew {
    /// Records the clock that another node has reported. `span_us` has the times at which this node sent the request and received the
    /// response, by its own clock. The clocks agree if the reported time lies between the two.
    pub fn observe(&self, host_id: Uuid, node: &str, other_us: i64, span_us: (i64, i64)) {
        let (sent_us, answered_us) = span_us;
        let us = match other_us {
            earlier if earlier < sent_us => earlier - sent_us,
            later if later > answered_us => later - answered_us,
            _ => 0,
        };
        let node = node.to_owned();
        self.0.lock().insert(host_id, Skew { node, us });
    }

    /// Drops the differences of all nodes except these.
    pub fn keep_only(&self, nodes: &[Uuid]) {
        self.0.lock().retain(|node, _| nodes.contains(node));
    }

    /// Returns the name of the node whose clock differs most, and the difference in microseconds. `None` if no other node has answered.
    pub fn largest(&self) -> Option<(String, i64)> {
        let seen = self.0.lock();
        let largest = seen.values().max_by_key(|skew| skew.us.unsigned_abs())?;
        Some((largest.node.clone(), largest.us))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_way_does_not_explain_is_skew() {
        let skew = ClockSkew::default();
        assert_eq!(skew.largest(), None);
        let [first, second] = [Uuid::from_u128(1), Uuid::from_u128(2)];
        skew.observe(first, "one", 150, (100, 200));
        assert_eq!(skew.largest(), Some(("one".to_owned(), 0)));
        skew.observe(second, "two", 250, (100, 200));
        assert_eq!(skew.largest(), Some(("two".to_owned(), 50)));
        skew.observe(first, "one", 30, (100, 200));
        assert_eq!(skew.largest(), Some(("one".to_owned(), -70)));
        skew.keep_only(&[second]);
        assert_eq!(skew.largest(), Some(("two".to_owned(), 50)));
    }
}
