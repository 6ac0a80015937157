//! The cost of a store's bucket: the node's requests a second over the last minute, and the dollars that they come to in a month.
//!
//! A [`BucketCostMeter`] samples the counters of the store; [`BucketRates`] are differences of samples, and [`BucketPrices`] turn them into
//! dollars.

mod meter;
mod metrics;
mod prices;
mod rates;

pub use meter::BucketCostMeter;
pub use prices::{BucketCost, BucketPrices};
pub use rates::BucketRates;
