//! The requests of an operation, and those that fill its tables.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use helenus_cql::frame::Response;
use helenus_stress::raw::{Answer, Execution, Outcome, Pace, RawLoad, RequestSource, Target};
use rand::SeedableRng;
use rand::rngs::SmallRng;

use crate::operation::{Fill, Operation, QUEUE_CYCLE, Sizes, WORKING_QUEUES, cycle_values};

/// Number of slowest requests to keep: more than a thousandth of a phase's requests, plus those that are due during stalls of the machine.
const SLOWEST_KEPT: usize = 200_000;

/// A load on one server.
#[derive(Clone, Debug)]
pub struct Load {
    pub connections: usize,
    /// Requests in flight on all connections together.
    pub in_flight: usize,
    /// Requests per second of an open loop. `None` is a closed loop.
    pub rate: Option<f64>,
    pub sizes: Sizes,
    pub cycles: EndedCycles,
}

/// Number of cycles begun of each queue, by server address. Later phases continue where earlier ones ended.
#[derive(Clone, Debug, Default)]
pub struct EndedCycles(Arc<Mutex<HashMap<(String, u64), u64>>>);

impl EndedCycles {
    /// Begins a cycle of a queue. Returns the number of earlier cycles.
    fn begin(&self, address: &str, queue: u64) -> u64 {
        let mut cycles = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = cycles.entry((address.to_owned(), queue)).or_default();
        *begun += 1;
        *begun - 1
    }
}

/// The cycles of the queues of one connection, one after the other.
struct Cycles<'a> {
    until: Instant,
    load: &'a Load,
    address: &'a str,
    /// Number of the connection. It has the queues whose number modulo the number of connections is this one.
    connection: u64,
    /// Number of requests so far. The queue and number of the current cycle follow.
    requests: usize,
    queue: u64,
    cycle: u64,
}

impl Cycles<'_> {
    fn next(&mut self, random: &mut SmallRng) -> Option<Execution> {
        let statement = self.requests % QUEUE_CYCLE.len();
        if statement == 0 {
            // A cycle must be completed, because a row left behind would stay at the head of its queue. So the time is only checked here.
            if Instant::now() >= self.until {
                return None;
            }
            let connections = self.load.connections as u64;
            let own = WORKING_QUEUES
                .saturating_sub(self.connection)
                .div_ceil(connections)
                .max(1);
            let round = (self.requests / QUEUE_CYCLE.len()) as u64;
            self.queue = (self.connection + round % own * connections) % WORKING_QUEUES;
            self.cycle = self.load.cycles.begin(self.address, self.queue);
        }
        self.requests += 1;
        Some(Execution {
            statement,
            ..Execution::of_row(cycle_values(
                statement,
                self.queue,
                self.cycle,
                &self.load.sizes,
                random,
            ))
        })
    }
}

/// The requests of one connection.
enum Requests<'a> {
    Fill(&'a Fill, std::ops::Range<u64>, &'a Sizes),
    /// An operation that is repeated until a time.
    Run(Operation, Instant, &'a Sizes),
    Cycles(Cycles<'a>),
}

impl RequestSource for Requests<'_> {
    fn statement(&self) -> &str {
        match self {
            Requests::Fill(fill, ..) => fill.statement,
            Requests::Run(operation, ..) => operation.statement(),
            Requests::Cycles(_) => Operation::QueueCycle.statement(),
        }
    }

    fn statements(&self) -> Vec<&str> {
        match self {
            Requests::Cycles(_) => QUEUE_CYCLE.to_vec(),
            Requests::Fill(..) | Requests::Run(..) => vec![self.statement()],
        }
    }

    fn next(&mut self, random: &mut SmallRng) -> Option<Execution> {
        match self {
            Requests::Fill(fill, range, sizes) => {
                let number = range.next()?;
                Some(Execution::of_row((fill.values)(sizes, number, random)))
            }
            Requests::Run(operation, until, sizes) => (Instant::now() < *until).then(|| Execution {
                statement: 0,
                rows: (0..operation.rows_sent())
                    .map(|_| operation.values(sizes, random))
                    .collect(),
                page_rows: operation.page_rows(),
                page: None,
            }),
            Requests::Cycles(cycles) => cycles.next(random),
        }
    }

    fn check(&self, response: Response) -> Result<Answer> {
        match self {
            Requests::Fill(_, _, sizes) => Operation::Write.check(response, sizes),
            Requests::Run(operation, _, sizes) => operation.check(response, sizes),
            Requests::Cycles(cycles) => Operation::QueueCycle.check(response, &cycles.load.sizes),
        }
    }
}

impl Load {
    /// Runs the statement of `fill` once for every number.
    pub async fn fill(&self, addresses: &[String], fill: &Fill) -> Result<()> {
        let share = fill.count.div_ceil(self.connections as u64);
        let part = |at: u64| (at * share)..((at + 1) * share).min(fill.count);
        let requests = |at| Requests::Fill(fill, part(at), &self.sizes);
        self.raw(Pace::Closed)
            .run(self.targets(addresses, requests))
            .await?;
        Ok(())
    }

    /// Runs an operation on random keys for a time.
    pub async fn run(&self, addresses: &[String], operation: Operation, length: Duration) -> Result<Outcome> {
        let until = Instant::now() + length;
        let pace = self.rate.map_or(Pace::Closed, |rate| Pace::Open {
            interval: Duration::from_secs_f64(self.connections as f64 / rate),
        });
        let requests = |connection| match operation {
            Operation::QueueCycle => Requests::Cycles(Cycles {
                until,
                load: self,
                address: addresses.first().map_or("", String::as_str),
                connection,
                requests: 0,
                queue: 0,
                cycle: 0,
            }),
            _ => Requests::Run(operation, until, &self.sizes),
        };
        self.raw(pace).run(self.targets(addresses, requests)).await
    }

    fn raw(&self, pace: Pace) -> RawLoad {
        RawLoad {
            in_flight: (self.in_flight / self.connections).max(1),
            pace,
            slowest_kept: SLOWEST_KEPT,
        }
    }

    /// Returns the connections, with the nodes in turn. Each has its own random numbers, which are the same in every phase.
    fn targets<S>(&self, addresses: &[String], source: impl Fn(u64) -> S) -> impl Iterator<Item = Target<S>> {
        let connections = (0..self.connections as u64).zip(addresses.iter().cycle());
        connections.map(move |(at, address)| Target {
            address: address.clone(),
            source: source(at),
            random: SmallRng::seed_from_u64(at),
        })
    }
}
