//! The task that samples the counters of a bucket.

use std::sync::Arc;
use std::time::{Duration, Instant};

use helenus_tablet::Store;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

use super::metrics;
use super::prices::{BucketCost, BucketPrices};
use super::rates::{BucketRates, SampleWindow};

/// The interval of samples. All that read the rates between two samples get the same.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(5);
/// Age of a node from which on its rates are taken for those of a month.
const SETTLED_AFTER: Duration = Duration::from_secs(300);

/// Meters the requests to the bucket of a store, as long as it lives.
pub struct BucketCostMeter {
    prices: BucketPrices,
    rates: watch::Receiver<Option<BucketRates>>,
    began: Instant,
}

impl BucketCostMeter {
    /// Begins to sample. `None` for a store in a folder, which costs nothing to ask.
    pub fn start(store: &Arc<Store>, prices: BucketPrices) -> Option<BucketCostMeter> {
        store.bucket_stats()?;
        metrics::describe();
        let (sender, rates) = watch::channel(None);
        tokio::spawn(sample(store.clone(), sender));
        let began = Instant::now();
        Some(BucketCostMeter { prices, rates, began })
    }

    /// Returns the cost as of the last sample. `None` before the second sample, in the first seconds.
    pub fn cost(&self) -> Option<BucketCost> {
        let rates = *self.rates.borrow();
        let is_settled = self.began.elapsed() >= SETTLED_AFTER;
        rates.map(|rates| BucketCost {
            is_settled,
            ..self.prices.cost(rates)
        })
    }

    /// Sets the metrics of the cost, just before they are read.
    pub fn record(&self) {
        if let Some(cost) = self.cost() {
            metrics::record(&cost);
        }
    }
}

/// Samples the counters until nobody wants the rates any more.
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
