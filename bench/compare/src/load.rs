//! The load: a fixed number of prepared requests in flight (closed loop), or requests at a fixed rate (open loop).

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use hdrhistogram::Histogram;
use helenus_cql::error::CqlError;
use helenus_cql::frame::Response;
use rand::SeedableRng;
use rand::rngs::SmallRng;

use crate::alarm::Alarm;
use crate::client::{Connection, Execution};
use crate::operation::{Answer, Fill, Operation, Sizes};
use crate::slowest::Slowest;

/// How the load is spread.
#[derive(Clone, Debug)]
pub struct Load {
    pub connections: usize,
    pub in_flight: usize,
    /// Requests a second; without it, as many as the server answers.
    pub rate: Option<f64>,
    pub sizes: Sizes,
}

/// When the requests of a connection are due.
struct Schedule {
    begun: Instant,
    /// Time from one request to the next; none in a closed loop.
    interval: Option<Duration>,
    sent: u32,
}

impl Schedule {
    /// When the next request is due. Those of a millisecond fall due together, as when many users share a client.
    fn next_due(&self) -> Option<Instant> {
        let due = (self.interval? * self.sent).as_micros().div_ceil(1000);
        Some(self.begun + Duration::from_millis(due as u64))
    }
}

/// What one phase came to.
pub struct Outcome {
    /// Response times in µs, from when a request was due in an open loop, else from when it was sent.
    pub latency_us: Histogram<u64>,
    /// The slowest of them.
    pub slowest: Slowest,
    /// When the phase began.
    pub started: Instant,
    /// Requests answered to the last page.
    pub requests: u64,
    /// What the requests count for.
    pub operations: u64,
    pub elapsed: Duration,
}

/// What one connection came to.
struct Seen {
    latency_us: Histogram<u64>,
    slowest: Slowest,
    requests: u64,
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

    fn check(&self, response: Response) -> Result<Answer> {
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
            self.drive(address, Source::Fill(fill, range), None, at)
        });
        futures::future::try_join_all(tasks).await?;
        Ok(())
    }

    /// Runs an operation on random keys for that long.
    pub async fn run(&self, address: &str, operation: Operation, length: Duration) -> Result<Outcome> {
        let started = Instant::now();
        let until = started + length;
        let interval = self
            .rate
            .map(|rate| Duration::from_secs_f64(self.connections as f64 / rate));
        let tasks = (0..self.connections as u64)
            .map(|at| self.drive(address, Source::Run(operation, until), interval, at));
        let mut latency_us = new_histogram()?;
        let mut slowest = Slowest::default();
        let (mut requests, mut operations) = (0, 0);
        for seen in futures::future::try_join_all(tasks).await? {
            latency_us.add(&seen.latency_us)?;
            slowest.extend(seen.slowest);
            requests += seen.requests;
            operations += seen.operations;
        }
        Ok(Outcome {
            latency_us,
            slowest,
            started,
            requests,
            operations,
            elapsed: started.elapsed(),
        })
    }

    async fn drive(
        &self,
        address: &str,
        mut source: Source<'_>,
        interval: Option<Duration>,
        seed: u64,
    ) -> Result<Seen> {
        let mut connection = Connection::open(address).await?;
        let id = connection.prepare(source.statement()).await?;
        let mut random = SmallRng::seed_from_u64(seed);
        let alarm = Alarm::new()?;
        let slots = (self.in_flight / self.connections).max(1);
        let mut sent: Vec<Option<(Execution, Instant)>> = (0..slots).map(|_| None).collect();
        let mut seen = Seen {
            latency_us: new_histogram()?,
            slowest: Slowest::default(),
            requests: 0,
            operations: 0,
        };
        let to_prepare = i16::try_from(slots)?;
        let mut waiting = 0;
        let mut free: Vec<usize> = (0..slots).collect();
        let mut over = false;
        let mut schedule = Schedule {
            begun: Instant::now(),
            interval,
            sent: 0,
        };
        loop {
            while let Some(&slot) = free.last().filter(|_| !over) {
                let now = Instant::now();
                let due = schedule.next_due().unwrap_or(now);
                if due > now {
                    break;
                }
                match source.next(&self.sizes, &mut random) {
                    Some(execution) => {
                        connection.execute(slot as i16, &id, &execution);
                        sent[slot] = Some((execution, due));
                        schedule.sent += 1;
                        waiting += 1;
                        free.pop();
                    }
                    None => over = true,
                }
            }
            connection.flush().await?;
            match schedule.next_due().filter(|_| !over && !free.is_empty()) {
                // Reading may be given up at any point: what has arrived stays in the buffer.
                Some(due) => tokio::select! {
                    filled = connection.fill(), if waiting > 0 => filled?,
                    rung = alarm.ring_at(due) => rung?,
                },
                None if waiting == 0 => return Ok(seen),
                None => connection.fill().await?,
            }
            while let Some((stream, response)) = connection.next_arrived()? {
                if stream == to_prepare {
                    match response {
                        Response::Error(error) => return Err(error.into()),
                        _ => continue,
                    }
                }
                let slot = usize::try_from(stream)?;
                let slot = sent
                    .get_mut(slot)
                    .context("an answer to nothing that was asked")?;
                let (execution, at) = slot.take().context("a second answer")?;
                // Cassandra forgets prepared statements when a schema change catches up with it, as after the tables were made.
                if let Response::Error(CqlError::Unprepared(_)) = response {
                    connection.prepare_again(to_prepare, source.statement());
                    connection.execute(stream, &id, &execution);
                    *slot = Some((execution, at));
                    continue;
                }
                let answer = source.check(response)?;
                let took = at.elapsed();
                seen.latency_us.saturating_record(took.as_micros() as u64);
                seen.slowest.record(at, took);
                seen.operations += answer.operations;
                if let Some(page) = answer.next_page {
                    let rest = Execution {
                        page: Some(page),
                        ..execution
                    };
                    connection.execute(stream, &id, &rest);
                    *slot = Some((rest, Instant::now()));
                } else {
                    seen.requests += 1;
                    waiting -= 1;
                    free.push(usize::try_from(stream)?);
                }
            }
        }
    }
}

fn new_histogram() -> Result<Histogram<u64>> {
    Ok(Histogram::new_with_bounds(1, 60_000_000, 3)?)
}
