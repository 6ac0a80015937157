//! A load over several connections, and its figures.

use std::time::{Duration, Instant};

use anyhow::Result;
use rand::rngs::SmallRng;

use super::driver::Driver;
use super::slowest::SlowestRequests;
use super::{RawLoad, RequestSource};
use crate::results::{LatencyHistogram, new_latency_histogram};

/// One connection of a load.
pub struct Target<S> {
    /// `HOST:PORT`.
    pub address: String,
    pub source: S,
    pub random: SmallRng,
}

/// The figures of a load.
#[derive(Debug)]
pub struct Outcome {
    /// Response times in µs.
    pub latency_us: LatencyHistogram,
    /// The slowest requests. Their number is limited by [`RawLoad::slowest_kept`].
    pub slowest: SlowestRequests,
    pub started: Instant,
    /// Requests whose last page has arrived.
    pub requests: u64,
    /// Sum of the operations of all responses.
    pub operations: u64,
    pub elapsed: Duration,
}

impl Outcome {
    /// Returns operations per second.
    pub fn operations_per_s(&self) -> f64 {
        self.operations as f64 / self.elapsed.as_secs_f64()
    }

    /// Returns requests per second.
    pub fn requests_per_s(&self) -> f64 {
        self.requests as f64 / self.elapsed.as_secs_f64()
    }

    /// Returns the quantile of the response times, in ms.
    pub fn quantile_ms(&self, quantile: f64) -> f64 {
        self.latency_us.value_at_quantile(quantile) as f64 / 1e3
    }
}

impl RawLoad {
    /// Runs until the sources of all targets have no more requests and all responses have arrived.
    ///
    /// # Errors
    /// Returns the first error of a connection, of the server, or of a source's check.
    pub async fn run<S: RequestSource>(
        &self,
        targets: impl IntoIterator<Item = Target<S>>,
    ) -> Result<Outcome> {
        let started = Instant::now();
        let connections = targets.into_iter().map(|target| async move {
            let driver = Driver::open(self, &target.address, target.source, target.random).await?;
            driver.run().await
        });
        let mut outcome = Outcome {
            latency_us: new_latency_histogram(),
            slowest: SlowestRequests::new(self.slowest_kept),
            started,
            requests: 0,
            operations: 0,
            elapsed: Duration::ZERO,
        };
        for recorded in futures::future::try_join_all(connections).await? {
            outcome.latency_us.add(&recorded.latency_us)?;
            outcome.slowest.extend(recorded.slowest);
            outcome.requests += recorded.requests;
            outcome.operations += recorded.operations;
        }
        outcome.elapsed = started.elapsed();
        Ok(outcome)
    }
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
