//! The source of all random choices of a run, determined by its seed.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

#[derive(Clone)]
pub(super) struct Dice(Arc<Mutex<StdRng>>);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(Arc::new(Mutex::new(StdRng::seed_from_u64(seed))))
    }

    pub fn range(&self, range: Range<u64>) -> u64 {
        self.0.lock().random_range(range)
    }

    pub fn chance(&self, percent: u64) -> bool {
        self.range(0..100) < percent
    }

    pub fn millis(&self, range: Range<u64>) -> Duration {
        Duration::from_millis(self.range(range))
    }

    pub fn pick<T: Copy>(&self, items: &[T]) -> Option<T> {
        (!items.is_empty()).then(|| items[self.range(0..items.len() as u64) as usize])
    }

    pub async fn pause(&self, millis: Range<u64>) {
        tokio::time::sleep(self.millis(millis)).await;
    }
}
