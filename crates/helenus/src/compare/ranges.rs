//! The token ranges of a comparison.

use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::index::sample;

use super::args::Percent;

/// Ranges of a whole ring for each worker.
const RANGES_PER_WORKER: usize = 8;
/// Ranges from which a sample is drawn.
const SAMPLED_FROM: usize = 10_000;

/// Returns the ranges to compare, each as the token before its first one and its last token.
pub fn ranges(share: Percent, seed: u64, workers: usize) -> Vec<(i64, i64)> {
    if share.0 >= 1.0 {
        let count = workers * RANGES_PER_WORKER;
        return (0..count).map(|place| range(place, count)).collect();
    }
    let wanted = SAMPLED_FROM as f64 * share.0;
    let wanted = (wanted.ceil() as usize).clamp(1, SAMPLED_FROM);
    let mut random = SmallRng::seed_from_u64(seed);
    let mut places = sample(&mut random, SAMPLED_FROM, wanted).into_vec();
    places.sort_unstable();
    places
        .into_iter()
        .map(|place| range(place, SAMPLED_FROM))
        .collect()
}

/// Returns one of `count` equal ranges of the ring.
fn range(place: usize, count: usize) -> (i64, i64) {
    let token = |place: usize| {
        let offset = (1_u128 << 64) * place as u128 / count as u128;
        i64::try_from(i128::from(i64::MIN) + offset.cast_signed()).unwrap_or(i64::MAX)
    };
    (token(place), token(place + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cover_the_ring() {
        let all = ranges(Percent(1.0), 0, 3);
        assert_eq!(all.first().map(|range| range.0), Some(i64::MIN));
        assert_eq!(all.last().map(|range| range.1), Some(i64::MAX));
        assert!(all.windows(2).all(|pair| pair[0].1 == pair[1].0));
    }

    #[test]
    fn samples_have_their_share_and_repeat_with_the_seed() {
        let some = ranges(Percent(0.013), 7, 4);
        assert_eq!(some.len(), 130);
        assert!(some.windows(2).all(|pair| pair[0].1 <= pair[1].0));
        assert_eq!(some, ranges(Percent(0.013), 7, 4));
        assert_ne!(some, ranges(Percent(0.013), 8, 4));
    }
}
