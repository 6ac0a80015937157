//! The keys of a run, and the choice of the next one.
//!
//! A key is a number among all keys of a run. Its text has tlp-stress's format, `ID.THREAD.NUMBER`. Each thread has `partitions` keys of
//! its own, so a run's keys are the numbers from 0 to `threads * partitions`.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use rand::Rng;

/// All keys of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySpace {
    /// The first part of each key's text.
    pub id: String,
    pub threads: u64,
    /// Keys per thread, at least 1.
    pub partitions: u64,
}

impl KeySpace {
    /// Returns the number of keys.
    pub fn total(&self) -> u64 {
        self.threads.saturating_mul(self.partitions)
    }

    /// Replaces the content of `out` by the key's text.
    pub fn text(&self, key: u64, out: &mut String) {
        out.clear();
        let (thread, number) = (key / self.partitions, key % self.partitions);
        // Writing to a string cannot fail.
        let _ = write!(out, "{}.{thread}.{number}", self.id);
    }
}

/// Choice of a thread's next key.
#[derive(clap::ValueEnum, serde::Serialize, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Picking {
    /// All keys are equally likely
    Random,
    /// A normal distribution around the middle key; the standard deviation is an eighth of the number of keys
    Normal,
    /// In order, beginning again after the last key
    Sequence,
}

/// Chooser of the keys of one thread.
#[derive(Debug)]
pub struct KeyPicker {
    picking: Picking,
    first: u64,
    count: u64,
    next: AtomicU64,
}

impl KeyPicker {
    /// Creates a picker of `count` keys (at least 1), the first of which is `first`.
    pub fn new(picking: Picking, first: u64, count: u64) -> Self {
        let count = count.max(1);
        Self {
            picking,
            first,
            count,
            next: AtomicU64::new(0),
        }
    }

    /// Returns the next key.
    pub fn pick(&self, rng: &mut impl Rng) -> u64 {
        let number = match self.picking {
            Picking::Random => rng.random_range(0..self.count),
            Picking::Normal => self.normal(rng),
            Picking::Sequence => self.next.fetch_add(1, Ordering::Relaxed) % self.count,
        };
        self.first + number
    }

    fn normal(&self, rng: &mut impl Rng) -> u64 {
        let middle = self.count as f64 / 2.0;
        loop {
            let number = (middle + standard_normal(rng) * middle / 4.0).floor();
            if (0.0..self.count as f64).contains(&number) {
                return number as u64;
            }
        }
    }
}

/// Returns a random number with the standard normal distribution (Box-Muller).
pub fn standard_normal(rng: &mut impl Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.random::<f64>()).cos()
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::SmallRng;

    use super::*;

    #[test]
    fn a_keys_text_is_that_of_tlp_stress() {
        let keys = KeySpace {
            id: "001".into(),
            threads: 8,
            partitions: 10,
        };
        let mut text = "old".to_owned();
        keys.text(37, &mut text);
        assert_eq!(text, "001.3.7");
        assert_eq!(keys.total(), 80);
    }

    #[test]
    fn every_way_of_choosing_stays_among_its_keys() {
        let mut rng = SmallRng::seed_from_u64(1);
        for picking in [Picking::Random, Picking::Normal, Picking::Sequence] {
            for count in [1, 3, 1000] {
                let picker = KeyPicker::new(picking, 50, count);
                assert!((0..2000).all(|_| (50..50 + count).contains(&picker.pick(&mut rng))));
            }
        }
    }

    #[test]
    fn a_sequence_takes_each_key_once_a_round() {
        let mut rng = SmallRng::seed_from_u64(1);
        let picker = KeyPicker::new(Picking::Sequence, 10, 3);
        let picked: Vec<u64> = (0..6).map(|_| picker.pick(&mut rng)).collect();
        assert_eq!(picked, [10, 11, 12, 10, 11, 12]);
    }

    #[test]
    fn a_bell_curve_is_narrower_than_uniform() {
        let mut rng = SmallRng::seed_from_u64(1);
        let near = |picking| {
            let picker = KeyPicker::new(picking, 0, 1000);
            let mut rng = SmallRng::seed_from_u64(rng.random());
            (0..4000)
                .filter(|_| (375..625).contains(&picker.pick(&mut rng)))
                .count()
        };
        let mut near = near;
        assert!((900..1100).contains(&near(Picking::Random)));
        assert!(
            (2600..2900).contains(&near(Picking::Normal)),
            "68% within a deviation"
        );
    }
}
