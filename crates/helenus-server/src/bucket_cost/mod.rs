//! The cost of a store's bucket: the node's requests per second over the last minute, and their cost in dollars per month.
//!
//! A [`BucketCostMeter`] samples the counters of the store. [`BucketRates`] are differences of samples, and [`BucketPrices`] convert them
//! to dollars.

mod meter;
mod metrics;
mod prices;
mod rates;

pub use meter::BucketCostMeter;
pub use prices::{BucketCost, BucketPrices};
pub use rates::BucketRates;
