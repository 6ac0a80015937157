//! The speed of an import by the number of batches in flight. Pure, with times as arguments.

use std::time::Duration;

/// Batches in flight at the start.
const LIMIT_START: f64 = 2.0;
/// Share of the limit that is left after a slow acknowledgement, and after an overload.
const AFTER_SLOW: f64 = 0.7;
const AFTER_OVERLOAD: f64 = 0.5;
/// An acknowledgement is slow if it takes this many times as long as the fastest ones, and this time more.
const SLOW_FACTOR: f64 = 3.0;
const SLOW_MARGIN_S: f64 = 0.02;
/// Part of the distance to a slower acknowledgement by which the known fastest time rises, so that old times are forgotten.
const FORGET: f64 = 0.01;

/// The number of batches in flight: it grows by one a round, and falls by a share (AIMD).
#[derive(Clone, Debug)]
pub struct Adaptive {
    limit: f64,
    max: f64,
    fastest_s: Option<f64>,
    /// Time of the last fall, since the start.
    fell_at: Option<Duration>,
}

impl Adaptive {
    pub fn new(max: usize) -> Adaptive {
        let max = max.max(1) as f64;
        Adaptive {
            limit: LIMIT_START.min(max),
            max,
            fastest_s: None,
            fell_at: None,
        }
    }

    /// Returns the number of batches that may be in flight.
    pub fn limit(&self) -> usize {
        self.limit as usize
    }

    /// Notes an acknowledgement that took `time`. `now` is the time since the start.
    pub fn acknowledged(&mut self, time: Duration, now: Duration) {
        let time_s = time.as_secs_f64();
        let fastest_s = match self.fastest_s {
            Some(fastest_s) if fastest_s <= time_s => fastest_s + (time_s - fastest_s) * FORGET,
            _ => time_s,
        };
        self.fastest_s = Some(fastest_s);
        if time_s > fastest_s * SLOW_FACTOR + SLOW_MARGIN_S {
            // Batches that were in flight together are slow together: they count once.
            if self.fell_at.is_none_or(|at| now.saturating_sub(at) >= time) {
                self.fall(AFTER_SLOW, now);
            }
        } else {
            self.limit = (self.limit + 1.0 / self.limit).min(self.max);
        }
    }

    /// Notes that the server was overloaded, or did not answer in time.
    pub fn overloaded(&mut self, now: Duration) {
        self.fall(AFTER_OVERLOAD, now);
    }

    fn fall(&mut self, share: f64, now: Duration) {
        self.limit = (self.limit * share).max(1.0);
        self.fell_at = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn limit_grows_with_fast_acknowledgements() {
        let mut adaptive = Adaptive::new(8);
        assert_eq!(adaptive.limit(), 2);
        for round in 0..100 {
            adaptive.acknowledged(10 * MS, round * MS);
        }
        assert_eq!(adaptive.limit(), 8);
    }

    #[test]
    fn slow_acknowledgements_of_one_round_count_once() {
        let mut adaptive = Adaptive::new(10);
        (0..200).for_each(|round| adaptive.acknowledged(10 * MS, round * MS));
        for _ in 0..10 {
            adaptive.acknowledged(500 * MS, 1000 * MS);
        }
        assert_eq!(adaptive.limit(), 7);
        adaptive.acknowledged(500 * MS, 1600 * MS);
        assert_eq!(adaptive.limit(), 4);
    }

    #[test]
    fn overload_halves_and_leaves_one() {
        let mut adaptive = Adaptive::new(10);
        for round in 0..10 {
            adaptive.overloaded(round * MS);
        }
        assert_eq!(adaptive.limit(), 1);
    }
}
