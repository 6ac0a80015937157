//! Random numbers for tests.

use rand::Rng;

/// Returns an approximately standard normal number: the sum of twelve uniform ones.
pub fn gaussian(random: &mut impl Rng) -> f32 {
    (0..12).map(|_| random.random::<f32>()).sum::<f32>() - 6.0
}
