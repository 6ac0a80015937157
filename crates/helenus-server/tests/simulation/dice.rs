//! Choices that follow from the seed.

use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// A random generator that all parts of a simulation share.
#[derive(Clone)]
pub struct Dice(Arc<Mutex<StdRng>>);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(Arc::new(Mutex::new(StdRng::seed_from_u64(seed))))
    }

    pub fn range(&self, range: Range<u64>) -> u64 {
        self.0.lock().unwrap().random_range(range)
    }

    pub fn millis(&self, range: Range<u64>) -> Duration {
        Duration::from_millis(self.range(range))
    }

    /// Returns true in `percent` of all cases.
    pub fn chance(&self, percent: u64) -> bool {
        self.range(0..100) < percent
    }

    pub fn pick<T: Copy>(&self, from: &[T]) -> T {
        from[self.range(0..from.len() as u64) as usize]
    }
}
