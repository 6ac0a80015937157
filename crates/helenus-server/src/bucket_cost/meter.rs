//! The task that samples the counters of a bucket.

use std::sync::Arc;
use std::time::{Duration, Instant};

use helenus_tablet::Store;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

use super::metrics;
use super::prices::{BucketCost, BucketPrices};
use super::rates::{BucketRates, SampleWindow};

/// Interval of the samples. All reads of the rates between two samples return the same.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(5);
/// Minimum age of a node at which its rates are extrapolated to a month.
const SETTLED_AFTER: Duration = Duration::from_secs(300);

/// Meters the requests to the bucket of a store until it is dropped.
pub struct BucketCostMeter {
    prices: BucketPrices,
    rates: watch::Receiver<Option<BucketRates>>,
    began: Instant,
}

impl BucketCostMeter {
    /// Begins to sample. `None` if the store is in a folder, because its requests cost nothing.
    pub fn start(store: &Arc<Store>, prices: BucketPrices) -> Option<BucketCostMeter> {
        store.bucket_stats()?;
        metrics::describe();
        let (sender, rates) = watch::channel(None);
        tokio::spawn(sample(store.clone(), sender));
        let began = Instant::now();
        Some(BucketCostMeter { prices, rates, began })
    }

    /// Returns the cost as of the last sample. `None` in the first seconds, before the second sample.
    pub fn cost(&self) -> Option<BucketCost> {
        let rates = *self.rates.borrow();
        let is_settled = self.began.elapsed() >= SETTLED_AFTER;
        rates.map(|rates| BucketCost {
            is_settled,
            ..self.prices.cost(rates)
        })
    }

    /// Sets the metrics of the cost. Called just before they are read.
    pub fn record(&self) {
        if let Some(cost) = self.cost() {
            metrics::record(&cost);
        }
    }
}

/// Samples the counters until the meter is dropped.
async fn sample(store: Arc<Store>, rates: watch::Sender<Option<BucketRates>>) {
    let mut window = SampleWindow::default();
    let mut ticks = tokio::time::interval(SAMPLE_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = rates.closed() => return,
        }
        let Some(stats) = store.bucket_stats() else { return };
        rates.send_replace(window.add(Instant::now(), stats));
    }
}
