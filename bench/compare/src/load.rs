//! The load: a fixed number of prepared requests in flight (closed loop).

use std::time::{Duration, Instant};

use anyhow::Result;
use bytes::Bytes;
use hdrhistogram::Histogram;
use rand::SeedableRng;
use rand::rngs::SmallRng;

use crate::client::Connection;
use crate::operation::{Fill, Operation, Sizes};

/// How the load is spread.
#[derive(Clone, Debug)]
pub struct Load {
    pub connections: usize,
    pub in_flight: usize,
    pub sizes: Sizes,
}

/// What one phase came to.
pub struct Outcome {
    /// Response times in µs.
    pub latency_us: Histogram<u64>,
    pub elapsed: Duration,
}

/// What one connection sends, request by request.
enum Source<'a> {
    Fill(&'a Fill, std::ops::Range<u64>),
    Run(Operation, Instant),
}

impl Source<'_> {
    /// The values of each row of the next request; none when it is over.
    fn next(&mut self, sizes: &Sizes, random: &mut SmallRng) -> Option<Vec<Vec<Bytes>>> {
        match self {
            Source::Fill(fill, range) => range
                .next()
                .map(|number| vec![(fill.values)(sizes, number, random)]),
            Source::Run(operation, until) => (Instant::now() < *until).then(|| {
                (0..operation.per_request())
                    .map(|_| operation.values(sizes, random))
                    .collect()
            }),
        }
    }

    fn statement(&self) -> &'static str {
        match self {
            Source::Fill(fill, _) => fill.statement,
            Source::Run(operation, _) => operation.statement(),
        }
    }

    fn check(&self, response: helenus_cql::frame::Response) -> Result<()> {
        match self {
            Source::Fill(..) => Operation::Write.check(response),
            Source::Run(operation, _) => operation.check(response),
        }
    }
}

impl Load {
    /// Runs the statement of `fill` for every number once.
    pub async fn fill(&self, address: &str, fill: &Fill) -> Result<()> {
        let share = fill.count.div_ceil(self.connections as u64);
        let tasks = (0..self.connections as u64).map(|at| {
            let range = (at * share)..((at + 1) * share).min(fill.count);
            self.drive(address, Source::Fill(fill, range), at)
        });
        futures::future::try_join_all(tasks).await?;
        Ok(())
    }

    /// Runs an operation on random keys for that long.
    pub async fn run(&self, address: &str, operation: Operation, length: Duration) -> Result<Outcome> {
        let started = Instant::now();
        let until = started + length;
        let tasks =
            (0..self.connections as u64).map(|at| self.drive(address, Source::Run(operation, until), at));
        let mut latency_us = new_histogram()?;
        for seen in futures::future::try_join_all(tasks).await? {
            latency_us.add(&seen)?;
        }
        Ok(Outcome {
            latency_us,
            elapsed: started.elapsed(),
        })
    }

    async fn drive(&self, address: &str, mut source: Source<'_>, seed: u64) -> Result<Histogram<u64>> {
        let mut connection = Connection::open(address).await?;
        let id = connection.prepare(source.statement()).await?;
        let mut random = SmallRng::seed_from_u64(seed);
        let slots = (self.in_flight / self.connections).max(1);
        let mut sent: Vec<Instant> = vec![Instant::now(); slots];
        let mut latency_us = new_histogram()?;
        let mut waiting = 0;
        let mut free: Vec<usize> = (0..slots).collect();
        loop {
            for slot in free.drain(..) {
                if let Some(rows) = source.next(&self.sizes, &mut random) {
                    connection.execute(slot as i16, &id, rows);
                    sent[slot] = Instant::now();
                    waiting += 1;
                }
            }
            connection.flush().await?;
            if waiting == 0 {
                return Ok(latency_us);
            }
            connection.fill().await?;
            while let Some((stream, response)) = connection.next_arrived()? {
                source.check(response)?;
                let slot = usize::try_from(stream)?;
                let latency = sent.get(slot).map_or(Duration::ZERO, Instant::elapsed);
                latency_us.saturating_record(latency.as_micros() as u64);
                waiting -= 1;
                free.push(slot);
            }
        }
    }
}

fn new_histogram() -> Result<Histogram<u64>> {
    Ok(Histogram::new_with_bounds(1, 60_000_000, 3)?)
}
