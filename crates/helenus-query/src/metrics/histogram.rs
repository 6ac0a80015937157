//! Histograms that many threads enter values into. Buckets grow by a fifth, as in Cassandra's `EstimatedHistogram`.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Number of buckets with an upper bound. One more bucket holds all greater values.
pub const BOUNDS: usize = 91;
const BUCKETS: usize = BOUNDS + 1;

/// Number of shards of a histogram. A thread always uses the same shard, so that threads seldom contend for a cache line.
const SHARDS: usize = 8;

/// The upper bounds of the buckets: 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 17 and so on, to 25 million (Cassandra's
/// `EstimatedHistogram.newOffsets`).
pub static UPPER_BOUNDS: [u64; BOUNDS] = upper_bounds();

const fn upper_bounds() -> [u64; BOUNDS] {
    let mut bounds = [1; BOUNDS];
    let mut at = 1;
    while at < BOUNDS {
        let last = bounds[at - 1];
        // Each bound is a fifth greater than the last, rounded.
        let next = (last * 12 + 5) / 10;
        bounds[at] = if next == last { last + 1 } else { next };
        at += 1;
    }
    bounds
}

#[repr(align(64))]
struct Shard {
    count: AtomicU64,
    sum: AtomicU64,
    buckets: [AtomicU64; BUCKETS],
    /// Weights of the recent values in each bucket, without zeros. Younger values weigh more.
    recent: [AtomicU64; BUCKETS],
    /// Weight of the recent values that are 0. They are separate because the lowest bucket is that of 1.
    recent_zeros: AtomicU64,
    /// Sum of the exact values times their weights.
    recent_sum: AtomicU64,
}

impl Shard {
    fn new() -> Box<Shard> {
        Box::new(Shard {
            count: AtomicU64::new(0),
            sum: AtomicU64::new(0),
            buckets: [const { AtomicU64::new(0) }; BUCKETS],
            recent: [const { AtomicU64::new(0) }; BUCKETS],
            recent_zeros: AtomicU64::new(0),
            recent_sum: AtomicU64::new(0),
        })
    }
}

impl Shard {
    /// Returns the weighted counters, which are rescaled from time to time.
    fn recent(&self) -> impl Iterator<Item = &AtomicU64> {
        let buckets = self.recent.iter();
        buckets.chain([&self.recent_zeros, &self.recent_sum])
    }
}

/// Returns the shard of this thread.
fn shard_of_thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static SHARD: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    SHARD.with(|shard| {
        if shard.get() == usize::MAX {
            shard.set(NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS);
        }
        shard.get()
    })
}

/// A histogram of whole numbers. Entering a value takes no lock.
#[derive(Default)]
pub struct Histogram {
    /// Shards, created when a thread first needs them.
    shards: [OnceLock<Box<Shard>>; SHARDS],
    /// Events per second, averaged over five minutes, as the bits of an `f64`.
    rate: AtomicU64,
    /// Count of values when the rate was last computed.
    rated: AtomicU64,
}

impl std::fmt::Debug for Histogram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Histogram")
            .field("count", &self.count())
            .finish_non_exhaustive()
    }
}

impl Histogram {
    /// Enters a value. `weight` is its weight among the recent values, and `exact` the value in the unit of the sum.
    pub fn record(&self, value: u64, exact: u64, weight: u64) {
        let Some(shard) = self.shards.get(shard_of_thread()) else {
            return;
        };
        let shard = shard.get_or_init(Shard::new);
        let bucket = UPPER_BOUNDS.partition_point(|bound| *bound < value);
        shard.count.fetch_add(1, Ordering::Relaxed);
        shard.sum.fetch_add(exact, Ordering::Relaxed);
        shard
            .recent_sum
            .fetch_add(exact.saturating_mul(weight), Ordering::Relaxed);
        let recent = match value {
            0 => Some(&shard.recent_zeros),
            _ => shard.recent.get(bucket),
        };
        if let (Some(all), Some(recent)) = (shard.buckets.get(bucket), recent) {
            all.fetch_add(1, Ordering::Relaxed);
            recent.fetch_add(weight, Ordering::Relaxed);
        }
    }

    fn shards(&self) -> impl Iterator<Item = &Shard> {
        self.shards
            .iter()
            .filter_map(|shard| shard.get().map(Box::as_ref))
    }

    /// Returns the number of values entered.
    pub fn count(&self) -> u64 {
        self.shards()
            .map(|shard| shard.count.load(Ordering::Relaxed))
            .sum()
    }

    /// Returns the sums of all shards.
    pub fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot {
            rate: f64::from_bits(self.rate.load(Ordering::Relaxed)),
            ..Snapshot::default()
        };
        for shard in self.shards() {
            snapshot.sum += shard.sum.load(Ordering::Relaxed);
            snapshot.recent_zeros += shard.recent_zeros.load(Ordering::Relaxed);
            snapshot.recent_sum = snapshot
                .recent_sum
                .saturating_add(shard.recent_sum.load(Ordering::Relaxed));
            add(&mut snapshot.buckets, &shard.buckets);
            add(&mut snapshot.recent, &shard.recent);
        }
        snapshot.count = snapshot.buckets.iter().sum();
        snapshot
    }

    /// Updates the average rate with the events of the last `seconds`.
    pub(super) fn update_rate(&self, seconds: f64) {
        let count = self.count();
        let rated = self.rated.swap(count, Ordering::Relaxed);
        let now = count.saturating_sub(rated) as f64 / seconds;
        let average = f64::from_bits(self.rate.load(Ordering::Relaxed));
        let share = 1.0 - (-seconds / RATE_SECONDS).exp();
        let average = match rated {
            0 => now,
            _ => average + share * (now - average),
        };
        self.rate.store(average.to_bits(), Ordering::Relaxed);
    }

    /// Divides the weights of the recent values by `divisor`.
    pub(super) fn rescale(&self, divisor: u64) {
        for counter in self.shards().flat_map(Shard::recent) {
            let weight = counter.load(Ordering::Relaxed);
            counter.fetch_sub(weight - weight / divisor, Ordering::Relaxed);
        }
    }
}

/// Seconds over which rates are averaged (Cassandra's `getFiveMinuteRate`).
const RATE_SECONDS: f64 = 300.0;

fn add(sums: &mut [u64; BUCKETS], counters: &[AtomicU64; BUCKETS]) {
    for (sum, counter) in sums.iter_mut().zip(counters) {
        *sum += counter.load(Ordering::Relaxed);
    }
}

/// A histogram at one point in time.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub count: u64,
    /// Sum of the exact values.
    pub sum: u64,
    /// Events per second, averaged over five minutes.
    pub rate: f64,
    buckets: [u64; BUCKETS],
    recent: [u64; BUCKETS],
    recent_zeros: u64,
    recent_sum: u64,
}

impl Default for Snapshot {
    fn default() -> Snapshot {
        Snapshot {
            count: 0,
            sum: 0,
            rate: 0.0,
            buckets: [0; BUCKETS],
            recent: [0; BUCKETS],
            recent_zeros: 0,
            recent_sum: 0,
        }
    }
}

impl Snapshot {
    /// Returns the upper bound of the bucket that contains this quantile of the recent values. 0 without values.
    pub fn quantile(&self, share: f64) -> u64 {
        let wanted = (self.recent_weight() as f64 * share).ceil() as u64;
        let mut seen = self.recent_zeros;
        if wanted <= seen {
            return 0;
        }
        for (weight, bound) in self.recent.iter().zip(bounds()) {
            seen += weight;
            if *weight > 0 && seen >= wanted {
                return bound;
            }
        }
        0
    }

    /// Returns the smallest value that the recent values can contain, given their buckets.
    pub fn min(&self) -> u64 {
        match self.recent.iter().position(|weight| *weight > 0) {
            _ if self.recent_zeros > 0 => 0,
            None | Some(0) => 0,
            Some(at) => UPPER_BOUNDS.get(at - 1).map_or(0, |below| below + 1),
        }
    }

    /// Returns the greatest value that the recent values can contain, given their buckets.
    pub fn max(&self) -> u64 {
        let at = self.recent.iter().rposition(|weight| *weight > 0);
        at.and_then(|at| bounds().nth(at)).unwrap_or(0)
    }

    fn recent_weight(&self) -> u64 {
        self.recent.iter().sum::<u64>() + self.recent_zeros
    }

    /// Returns the mean of the recent exact values, where younger values weigh more. NaN without values.
    pub fn recent_mean(&self) -> f64 {
        self.recent_sum as f64 / self.recent_weight() as f64
    }

    /// Returns the mean of all exact values. NaN without values.
    pub fn mean(&self) -> f64 {
        self.sum as f64 / self.count as f64
    }

    /// Returns the number of all values that are at most `bound`, which is one of [`UPPER_BOUNDS`].
    pub fn count_up_to(&self, bound: u64) -> u64 {
        let buckets = self.buckets.iter().zip(UPPER_BOUNDS);
        buckets
            .take_while(|(_, upper)| *upper <= bound)
            .map(|(count, _)| count)
            .sum()
    }

    /// Enters the values of another histogram.
    pub fn add(&mut self, other: &Snapshot) {
        self.count += other.count;
        self.sum += other.sum;
        self.rate += other.rate;
        self.recent_zeros += other.recent_zeros;
        self.recent_sum = self.recent_sum.saturating_add(other.recent_sum);
        let ours = self.buckets.iter_mut().chain(&mut self.recent);
        ours.zip(other.buckets.iter().chain(&other.recent))
            .for_each(|(sum, count)| *sum += count);
    }
}

/// Returns the upper bounds of all buckets. The bound of the last one is `u64::MAX`.
fn bounds() -> impl Iterator<Item = u64> {
    UPPER_BOUNDS.into_iter().chain([u64::MAX])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_buckets_are_those_of_cassandra() {
        assert_eq!(
            UPPER_BOUNDS[..14],
            [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 17, 20, 24]
        );
        assert!(UPPER_BOUNDS[BOUNDS - 1] > 20_000_000);
    }

    #[test]
    fn quantiles_end_at_the_bound_of_a_bucket() {
        let histogram = Histogram::default();
        (1..=100).for_each(|value| histogram.record(value, value, 1));
        let snapshot = histogram.snapshot();
        assert_eq!((snapshot.count, snapshot.sum), (100, 5050));
        assert_eq!(
            (snapshot.quantile(0.5), snapshot.min(), snapshot.max()),
            (50, 0, 103)
        );
        assert_eq!((snapshot.count_up_to(10), snapshot.count_up_to(60)), (10, 60));
        assert_eq!(Histogram::default().snapshot().quantile(0.99), 0);
    }

    #[test]
    fn the_recent_mean_follows_the_recent_values() {
        let histogram = Histogram::default();
        assert!(histogram.snapshot().recent_mean().is_nan());
        (0..1000).for_each(|_| histogram.record(100, 100, 1));
        (0..10).for_each(|_| histogram.record(4, 4, 1_000_000));
        let snapshot = histogram.snapshot();
        assert!(
            (snapshot.recent_mean() - 4.0).abs() < 0.1,
            "{}",
            snapshot.recent_mean()
        );
        assert!(snapshot.mean() > 99.0);
        histogram.rescale(1_000_000);
        assert!((histogram.snapshot().recent_mean() - 4.0).abs() < 0.1);
    }

    #[test]
    fn zeros_are_no_ones() {
        let histogram = Histogram::default();
        (0..3).for_each(|_| histogram.record(0, 0, 7));
        let zeros = histogram.snapshot();
        assert_eq!((zeros.quantile(0.99), zeros.min(), zeros.max()), (0, 0, 0));
        assert_eq!(zeros.recent_mean(), 0.0);
        histogram.record(5, 5, 7);
        let snapshot = histogram.snapshot();
        assert_eq!(
            (snapshot.quantile(0.75), snapshot.quantile(0.99), snapshot.max()),
            (0, 5, 5)
        );
        assert_eq!(snapshot.count, 4);
    }

    #[test]
    fn old_values_weigh_less() {
        let histogram = Histogram::default();
        (0..100).for_each(|_| histogram.record(1000, 1000, 1));
        (0..10).for_each(|_| histogram.record(10, 10, 1000));
        assert_eq!(histogram.snapshot().quantile(0.9), 10);
        histogram.rescale(1000);
        let snapshot = histogram.snapshot();
        assert_eq!(
            (snapshot.quantile(1.0), snapshot.max(), snapshot.count),
            (10, 10, 110)
        );
    }
}
