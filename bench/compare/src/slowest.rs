//! The slowest requests of a phase, with the times when they were in flight.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

use crate::stalls::Stall;

/// So many are kept: more than are in flight, or fall due, while a machine stands still.
const KEPT: usize = 10_000;

/// A request that was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Request {
    took: Duration,
    due: Instant,
}

/// The slowest requests.
#[derive(Clone, Debug, Default)]
pub struct Slowest(BinaryHeap<Reverse<Request>>);

impl Slowest {
    /// Takes note of a request that was due then.
    pub fn record(&mut self, due: Instant, took: Duration) {
        if self.0.len() == KEPT {
            match self.0.peek() {
                Some(Reverse(quickest)) if quickest.took < took => self.0.pop(),
                _ => return,
            };
        }
        self.0.push(Reverse(Request { took, due }));
    }

    pub fn extend(&mut self, other: Slowest) {
        other
            .0
            .into_iter()
            .for_each(|Reverse(request)| self.record(request.due, request.took));
    }

    /// The longest that a request took which wasn't in flight during any of the stalls; none if all were.
    pub fn aside_from(&self, stalls: &[Stall]) -> Option<Duration> {
        let is_aside = |request: &Request| {
            let answered = request.due + request.took;
            !stalls
                .iter()
                .any(|stall| request.due < stall.ended && answered > stall.begun)
        };
        self.0
            .iter()
            .map(|Reverse(request)| request)
            .filter(|request| is_aside(request))
            .map(|request| request.took)
            .max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_in_flight_during_a_stall_does_not_count() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let stalls = [Stall {
            begun: at(100),
            ended: at(130),
        }];
        let mut slowest = Slowest::default();
        for (due, took) in [(98, 34), (110, 21), (131, 9), (80, 12), (90, 10)] {
            slowest.record(at(due), Duration::from_millis(took));
        }
        assert_eq!(slowest.aside_from(&[]), Some(Duration::from_millis(34)));
        assert_eq!(slowest.aside_from(&stalls), Some(Duration::from_millis(12)));
        assert_eq!(Slowest::default().aside_from(&stalls), None);
    }

    #[test]
    fn the_slowest_are_kept() {
        let now = Instant::now();
        let mut slowest = Slowest::default();
        (0..KEPT as u64 * 2).for_each(|ms| slowest.record(now, Duration::from_millis(ms)));
        assert_eq!(slowest.0.len(), KEPT);
        assert_eq!(
            slowest.0.peek().map(|kept| kept.0.took),
            Some(Duration::from_millis(KEPT as u64))
        );
    }
}
