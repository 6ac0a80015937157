//! The load: a fixed number of prepared requests in flight (closed loop).

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use hdrhistogram::Histogram;
use rand::SeedableRng;
use rand::rngs::SmallRng;

use crate::client::{Connection, Execution};
use crate::operation::{Answer, Fill, Operation, Sizes};

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
    /// What the requests count for.
    pub operations: u64,
    pub elapsed: Duration,
}

/// What one connection came to.
struct Seen {
    latency_us: Histogram<u64>,
    operations: u64,
}

/// What one connection sends, request by request.
enum Source<'a> {
    Fill(&'a Fill, std::ops::Range<u64>),
    Run(Operation, Instant),
}

impl Source<'_> {
    /// The next request; none when it is over.
    fn next(&mut self, sizes: &Sizes, random: &mut SmallRng) -> Option<Execution> {
        let (rows, page_rows) = match self {
            Source::Fill(fill, range) => {
                let number = range.next()?;
                (vec![(fill.values)(sizes, number, random)], None)
            }
            Source::Run(operation, until) if Instant::now() < *until => {
                let rows = (0..operation.rows_sent())
                    .map(|_| operation.values(sizes, random))
                    .collect();
                (rows, operation.page_rows())
            }
            Source::Run(..) => return None,
        };
        Some(Execution {
            rows,
            page_rows,
            page: None,
        })
    }

    fn statement(&self) -> &'static str {
        match self {
            Source::Fill(fill, _) => fill.statement,
            Source::Run(operation, _) => operation.statement(),
        }
    }

    fn check(&self, response: helenus_cql::frame::Response) -> Result<Answer> {
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
        let mut operations = 0;
        for seen in futures::future::try_join_all(tasks).await? {
            latency_us.add(&seen.latency_us)?;
            operations += seen.operations;
        }
        Ok(Outcome {
            latency_us,
            operations,
            elapsed: started.elapsed(),
        })
    }

    async fn drive(&self, address: &str, mut source: Source<'_>, seed: u64) -> Result<Seen> {
        let mut connection = Connection::open(address).await?;
        let id = connection.prepare(source.statement()).await?;
        let mut random = SmallRng::seed_from_u64(seed);
        let slots = (self.in_flight / self.connections).max(1);
        let mut sent: Vec<Option<(Execution, Instant)>> = (0..slots).map(|_| None).collect();
        let mut seen = Seen {
            latency_us: new_histogram()?,
            operations: 0,
        };
        let mut waiting = 0;
        let mut free: Vec<usize> = (0..slots).collect();
        loop {
            for slot in free.drain(..) {
                if let Some(execution) = source.next(&self.sizes, &mut random) {
                    connection.execute(slot as i16, &id, &execution);
                    sent[slot] = Some((execution, Instant::now()));
                    waiting += 1;
                }
            }
            connection.flush().await?;
            if waiting == 0 {
                return Ok(seen);
            }
            connection.fill().await?;
            while let Some((stream, response)) = connection.next_arrived()? {
                let answer = source.check(response)?;
                let slot = usize::try_from(stream)?;
                let (execution, at) = sent
                    .get_mut(slot)
                    .and_then(Option::take)
                    .context("an answer to nothing that was asked")?;
                seen.latency_us.saturating_record(at.elapsed().as_micros() as u64);
                seen.operations += answer.operations;
                if let Some(page) = answer.next_page {
                    let rest = Execution {
                        page: Some(page),
                        ..execution
                    };
                    connection.execute(stream, &id, &rest);
                    sent[slot] = Some((rest, Instant::now()));
                } else {
                    waiting -= 1;
                    free.push(slot);
                }
            }
        }
    }
}

fn new_histogram() -> Result<Histogram<u64>> {
    Ok(Histogram::new_with_bounds(1, 60_000_000, 3)?)
}
