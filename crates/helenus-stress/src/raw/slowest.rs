//! The slowest requests of a load, with the times when they were in flight. The times show which requests were delayed by a stall of the
//! machine.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

/// A time in which a core of the machine ran nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    pub begun: Instant,
    pub ended: Instant,
}

/// A request with a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Request {
    took: Duration,
    due: Instant,
}

/// The slowest requests, up to a fixed number.
#[derive(Clone, Debug)]
pub struct SlowestRequests {
    capacity: usize,
    kept: BinaryHeap<Reverse<Request>>,
}

impl SlowestRequests {
    /// Creates a collection of up to `capacity` requests.
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity,
            kept: BinaryHeap::new(),
        }
    }

    /// Records a request that was due at `due`.
    pub fn record(&mut self, due: Instant, took: Duration) {
        if self.kept.len() >= self.capacity {
            match self.kept.peek() {
                Some(Reverse(quickest)) if quickest.took < took => self.kept.pop(),
                _ => return,
            };
        }
        self.kept.push(Reverse(Request { took, due }));
    }

    /// Adds the slowest requests of another connection.
    pub fn extend(&mut self, other: SlowestRequests) {
        other
            .kept
            .into_iter()
            .for_each(|Reverse(request)| self.record(request.due, request.took));
    }

    /// Returns the requests that were in flight during none of the stalls. `requests` is the total number of requests.
    pub fn undisturbed_by(&self, stalls: &[Stall], requests: u64) -> Undisturbed {
        let mut slowest: Vec<Duration> = self
            .kept
            .iter()
            .map(|Reverse(request)| request)
            .filter(|request| !request.was_in_flight_during(stalls))
            .map(|request| request.took)
            .collect();
        slowest.sort_unstable_by_key(|&took| Reverse(took));
        let stalled = self.kept.len() - slowest.len();
        Undisturbed {
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

/// Requests that no stall of the machine delayed.
#[derive(Debug)]
pub struct Undisturbed {
    requests: u64,
    /// Times of the slowest requests, longest first.
    slowest: Vec<Duration>,
}

impl Undisturbed {
    /// Returns the time that only this share of the requests exceeded. `None` if that request was not kept.
    pub fn slower_than_all_but(&self, share: f64) -> Option<Duration> {
        let above = (self.requests as f64 * share) as usize;
        self.slowest.get(above).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEPT: usize = 1_000;

    #[test]
    fn what_was_in_flight_during_a_stall_does_not_count() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let stalls = [Stall {
            begun: at(100),
            ended: at(130),
        }];
        let mut slowest = SlowestRequests::new(KEPT);
        for (due, took) in [(98, 34), (110, 21), (131, 9), (80, 12), (90, 10)] {
            slowest.record(at(due), Duration::from_millis(took));
        }
        let longest = |slowest: &SlowestRequests, stalls: &[Stall]| {
            slowest.undisturbed_by(stalls, 5).slower_than_all_but(0.0)
        };
        assert_eq!(longest(&slowest, &[]), Some(Duration::from_millis(34)));
        assert_eq!(longest(&slowest, &stalls), Some(Duration::from_millis(12)));
        assert_eq!(longest(&SlowestRequests::new(KEPT), &stalls), None);
    }

    #[test]
    fn quantiles_count_what_was_aside() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let stalls = [Stall {
            begun: at(0),
            ended: at(10),
        }];
        let mut slowest = SlowestRequests::new(KEPT);
        (1..=100).for_each(|ms| slowest.record(at(20), Duration::from_millis(ms)));
        (1..=20).for_each(|_| slowest.record(at(5), Duration::from_millis(500)));
        // 20 of a thousand requests were in flight during the stall. Nine are a hundredth of the other 980.
        let aside = slowest.undisturbed_by(&stalls, 1000);
        assert_eq!(aside.slower_than_all_but(0.01), Some(Duration::from_millis(91)));
        assert_eq!(aside.slower_than_all_but(0.5), None);
    }

    #[test]
    fn the_slowest_are_kept() {
        let now = Instant::now();
        let mut slowest = SlowestRequests::new(KEPT);
        (0..KEPT as u64 * 2).for_each(|ms| slowest.record(now, Duration::from_millis(ms)));
        assert_eq!(slowest.kept.len(), KEPT);
        assert_eq!(
            slowest.kept.peek().map(|kept| kept.0.took),
            Some(Duration::from_millis(KEPT as u64))
        );
    }
}
