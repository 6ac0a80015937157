//! The rates of requests to a bucket, from samples of its counters.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use helenus_tablet::BucketStats;

/// The time over which rates are averaged.
pub(super) const WINDOW: Duration = Duration::from_secs(60);

/// Requests to the bucket and bytes read from it, per second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct BucketRates {
    /// GET and HEAD requests.
    pub gets: f64,
    /// PUT requests, including parts of large objects and copies.
    pub puts: f64,
    pub lists: f64,
    pub deletes: f64,
    pub read_bytes: f64,
}

impl BucketRates {
    /// Returns the requests per second of each kind, under the names of the counters.
    pub fn by_kind(&self) -> [(&'static str, f64); 4] {
        [
            ("get", self.gets),
            ("put", self.puts),
            ("list", self.lists),
            ("delete", self.deletes),
        ]
    }

    /// Returns the rates between two samples. `None` if no time has passed between them.
    fn between(earlier: &Sample, later: &Sample) -> Option<BucketRates> {
        let elapsed_s = later.at.saturating_duration_since(earlier.at).as_secs_f64();
        let rate = |counter: fn(&BucketStats) -> u64| {
            counter(&later.stats).saturating_sub(counter(&earlier.stats)) as f64 / elapsed_s
        };
        (elapsed_s > 0.0).then(|| BucketRates {
            gets: rate(|stats| stats.gets),
            puts: rate(|stats| stats.puts),
            lists: rate(|stats| stats.lists),
            deletes: rate(|stats| stats.deletes),
            read_bytes: rate(|stats| stats.read_bytes),
        })
    }
}

/// The values of the counters at one time.
#[derive(Debug)]
struct Sample {
    at: Instant,
    stats: BucketStats,
}

/// The samples of the last minute, and the last one before it if there is one, so that they cover the whole minute.
#[derive(Debug, Default)]
pub(super) struct SampleWindow(VecDeque<Sample>);

impl SampleWindow {
    /// Adds a sample and returns the rates of the minute that ends with it. If the first sample is younger, the rates are those since the
    /// first sample. `None` for the first sample.
    pub fn add(&mut self, at: Instant, stats: BucketStats) -> Option<BucketRates> {
        let sample = Sample { at, stats };
        while self
            .0
            .get(1)
            .is_some_and(|second| at.saturating_duration_since(second.at) >= WINDOW)
        {
            self.0.pop_front();
        }
        let rates = self
            .0
            .front()
            .and_then(|oldest| BucketRates::between(oldest, &sample));
        self.0.push_back(sample);
        rates
    }
}

#[cfg(test)]
#[path = "rates_tests.rs"]
mod tests;
