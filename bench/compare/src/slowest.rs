//! The slowest requests of a phase, with the times when they were in flight.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

use crate::stalls::Stall;

/// So many are kept: more than a thousandth of what is measured together with what falls due while a machine stands still.
const KEPT: usize = 200_000;

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

    /// Those of `requests` that weren't in flight during any of the stalls.
    pub fn aside_from(&self, stalls: &[Stall], requests: u64) -> Aside {
        let mut slowest: Vec<Duration> = self
            .0
            .iter()
            .map(|Reverse(request)| request)
            .filter(|request| !request.was_in_flight_during(stalls))
            .map(|request| request.took)
            .collect();
        slowest.sort_unstable_by_key(|&took| Reverse(took));
        let stalled = self.0.len() - slowest.len();
        Aside {
            requests: requests.saturating_sub(stalled as u64),
            slowest,
        }
    }
}

impl Request {
    fn was_in_flight_during(&self, stalls: &[Stall]) -> bool {
        let answered = self.due + self.took;
        stalls
            .iter()
            .any(|stall| self.due < stall.ended && answered > stall.begun)
    }
}

/// Requests that no standstill of the machine delayed.
#[derive(Debug)]
pub struct Aside {
    requests: u64,
    /// What the slowest of them took, longest first.
    slowest: Vec<Duration>,
}

impl Aside {
    /// What all but this share of them took at most; none if there are none, or if that one wasn't among the slowest.
    pub fn slower_than_all_but(&self, share: f64) -> Option<Duration> {
        let above = (self.requests as f64 * share) as usize;
        self.slowest.get(above).copied()
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
        let longest =
            |slowest: &Slowest, stalls: &[Stall]| slowest.aside_from(stalls, 5).slower_than_all_but(0.0);
        assert_eq!(longest(&slowest, &[]), Some(Duration::from_millis(34)));
        assert_eq!(longest(&slowest, &stalls), Some(Duration::from_millis(12)));
        assert_eq!(longest(&Slowest::default(), &stalls), None);
    }

    #[test]
    fn quantiles_count_what_was_aside() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let stalls = [Stall {
            begun: at(0),
            ended: at(10),
        }];
        let mut slowest = Slowest::default();
        (1..=100).for_each(|ms| slowest.record(at(20), Duration::from_millis(ms)));
        (1..=20).for_each(|_| slowest.record(at(5), Duration::from_millis(500)));
        // Of a thousand requests, 20 were in flight during the stall; of the 980 left, nine are a hundredth.
        let aside = slowest.aside_from(&stalls, 1000);
        assert_eq!(aside.slower_than_all_but(0.01), Some(Duration::from_millis(91)));
        assert_eq!(aside.slower_than_all_but(0.5), None);
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
