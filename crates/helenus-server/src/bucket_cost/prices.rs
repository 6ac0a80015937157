//! The prices of requests to a bucket.

use super::rates::BucketRates;

/// Seconds of a month of 30 days.
const MONTH_S: f64 = 30.0 * 24.0 * 3600.0;
/// Bytes of a GB as AWS counts them: 2^30.
const GB: f64 = (1_u64 << 30) as f64;

/// Prices in US dollars. Deletions are free.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BucketPrices {
    /// Price of 1,000 PUT, LIST, COPY or POST requests.
    pub put_dollars_per_1000: f64,
    /// Price of 1,000 GET or HEAD requests.
    pub get_dollars_per_1000: f64,
    /// Price of reading 2^30 bytes.
    pub read_dollars_per_gb: f64,
}

impl Default for BucketPrices {
    /// Returns the prices of S3 Standard in most regions, for a node in the region of the bucket.
    fn default() -> BucketPrices {
        BucketPrices {
            put_dollars_per_1000: 0.005,
            get_dollars_per_1000: 0.0004,
            read_dollars_per_gb: 0.0,
        }
    }
}

/// Requests to a bucket and their cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BucketCost {
    pub rates: BucketRates,
    /// Cost of 30 days at these rates.
    pub dollars_per_month: f64,
    /// True if the node has run long enough for its rates to be extrapolated to a month.
    pub is_settled: bool,
}

impl BucketCost {
    /// Returns the cost of 30 days at the present rates, in dollars. `None` in the first minutes of a node, in which it opens tablets and
    /// fills caches.
    pub fn settled_dollars(&self) -> Option<f64> {
        self.is_settled.then_some(self.dollars_per_month)
    }
}

impl BucketPrices {
    /// Returns the cost of requests at these rates. The cost counts as settled.
    pub fn cost(&self, rates: BucketRates) -> BucketCost {
        let requests = (rates.puts + rates.lists) / 1000.0 * self.put_dollars_per_1000
            + rates.gets / 1000.0 * self.get_dollars_per_1000;
        let bytes = rates.read_bytes / GB * self.read_dollars_per_gb;
        BucketCost {
            rates,
            dollars_per_month: (requests + bytes) * MONTH_S,
            is_settled: true,
        }
    }
}

#[cfg(test)]
#[path = "prices_tests.rs"]
mod tests;
