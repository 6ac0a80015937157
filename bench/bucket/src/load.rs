//! The load: prepared requests to several nodes, in a closed loop or at a pace for each connection.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use bytes::Bytes;
use helenus_cql::frame::Response;
use helenus_cql::frame::response::QueryResult;
use helenus_stress::raw::{
    self, Answer, Execution, Outcome, Pace, RawLoad, RequestSource, Target, random_value,
};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::node::Node;

const STATEMENTS: [&str; 9] = [
    "CREATE KEYSPACE IF NOT EXISTS bucket \
     WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TABLE IF NOT EXISTS bucket.kv (k text PRIMARY KEY, v blob)",
    "CREATE TABLE IF NOT EXISTS bucket.users (id text PRIMARY KEY, email text, v blob)",
    "CREATE INDEX IF NOT EXISTS users_email ON bucket.users (email)",
    "CREATE TABLE IF NOT EXISTS bucket.people (id text PRIMARY KEY, a text, b text, c text, d text, v blob)",
    "CREATE INDEX IF NOT EXISTS people_a ON bucket.people (a)",
    "CREATE INDEX IF NOT EXISTS people_b ON bucket.people (b)",
    "CREATE INDEX IF NOT EXISTS people_c ON bucket.people (c)",
    "CREATE INDEX IF NOT EXISTS people_d ON bucket.people (d)",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Write,
    Read,
    /// UPDATE … IF EXISTS that is applied.
    Lwt,
    IndexedWrite,
    /// A write to a table with four indexes.
    FourIndexesWrite,
    IndexRead,
    /// A count of all rows.
    Count,
}

impl Operation {
    pub fn name(self) -> &'static str {
        match self {
            Operation::Write => "write",
            Operation::Read => "read",
            Operation::Lwt => "lightweight transaction",
            Operation::IndexedWrite => "write into an indexed table",
            Operation::FourIndexesWrite => "write into a table with four indexes",
            Operation::IndexRead => "read by index",
            Operation::Count => "count of all rows",
        }
    }

    fn statement(self) -> &'static str {
        match self {
            Operation::Write => "INSERT INTO bucket.kv (k, v) VALUES (?, ?)",
            Operation::Read => "SELECT v FROM bucket.kv WHERE k = ?",
            Operation::Lwt => "UPDATE bucket.kv SET v = ? WHERE k = ? IF EXISTS",
            Operation::IndexedWrite => "INSERT INTO bucket.users (id, email, v) VALUES (?, ?, ?)",
            Operation::FourIndexesWrite => {
                "INSERT INTO bucket.people (id, a, b, c, d, v) VALUES (?, ?, ?, ?, ?, ?)"
            }
            Operation::IndexRead => "SELECT id, v FROM bucket.users WHERE email = ?",
            Operation::Count => "SELECT count(*) FROM bucket.kv",
        }
    }

    /// Returns the values to bind for the row with this number.
    fn bound(self, number: u64, values: Values, random: &mut SmallRng) -> Vec<Bytes> {
        match self {
            Operation::Write => vec![key(number), values.next(random)],
            Operation::Read => vec![key(number)],
            Operation::Lwt => vec![values.next(random), key(number)],
            Operation::IndexedWrite => vec![key(number), email(number), values.next(random)],
            Operation::FourIndexesWrite => {
                let indexed = (0..4).map(|column| email(number * 4 + column));
                let bound = std::iter::once(key(number)).chain(indexed);
                bound.chain([values.next(random)]).collect()
            }
            Operation::IndexRead => vec![email(number)],
            Operation::Count => Vec::new(),
        }
    }

    fn check(self, response: Response) -> Result<()> {
        match (self, response) {
            (
                Operation::Write | Operation::IndexedWrite | Operation::FourIndexesWrite,
                Response::Result(QueryResult::Void),
            ) => Ok(()),
            (_, Response::Result(QueryResult::Rows(rows))) if rows.content.row_count() == 1 => Ok(()),
            (_, Response::Error(error)) => Err(error.into()),
            (operation, other) => bail!("{}: unexpected answer {:?}", operation.name(), other.opcode()),
        }
    }
}

/// Returns the key of a row, which is also its partition key.
pub fn key(number: u64) -> Bytes {
    Bytes::from(format!("{number:050}"))
}

fn email(number: u64) -> Bytes {
    Bytes::from(format!("user{number}@example.com"))
}

/// Values of rows: incompressible bytes.
#[derive(Clone, Copy)]
pub enum Values {
    /// Values of this length, all different.
    Distinct(usize),
    /// Values of this length, chosen from a number of different ones.
    Repeated(usize, u64),
}

impl Values {
    fn next(self, random: &mut SmallRng) -> Bytes {
        match self {
            Values::Distinct(len) => random_value(len, random),
            Values::Repeated(len, count) => {
                random_value(len, &mut SmallRng::seed_from_u64(random.random_range(0..count)))
            }
        }
    }
}

/// Rows that requests access.
#[derive(Clone)]
pub enum Keys {
    /// Each row once.
    Each(Arc<AtomicU64>, u64),
    /// Random rows of a range.
    Any(Range<u64>),
    /// Random rows of a list.
    Of(Arc<[u64]>),
    /// One row, accessed a number of times.
    Times(u64, Arc<AtomicU64>, u64),
}

impl Keys {
    pub fn each(count: u64) -> Keys {
        Keys::Each(Arc::default(), count)
    }

    pub fn times(number: u64, times: u64) -> Keys {
        Keys::Times(number, Arc::default(), times)
    }

    fn next(&self, random: &mut SmallRng) -> Option<u64> {
        match self {
            Keys::Each(next, count) => {
                Some(next.fetch_add(1, Ordering::Relaxed)).filter(|number| number < count)
            }
            Keys::Any(range) => Some(random.random_range(range.clone())),
            Keys::Times(number, taken, times) => {
                (taken.fetch_add(1, Ordering::Relaxed) < *times).then_some(*number)
            }
            Keys::Of(numbers) => numbers.get(random.random_range(0..numbers.len().max(1))).copied(),
        }
    }
}

/// A load of one operation.
#[derive(Clone)]
pub struct Load {
    pub operation: Operation,
    pub values: Values,
    /// Requests in flight per connection.
    pub in_flight: usize,
    /// Duration. `None` runs until there are no more keys.
    pub length: Option<Duration>,
    /// Time between two requests of a connection. `None` is a closed loop.
    pub pace: Option<Duration>,
}

/// The requests of one connection.
struct Requests {
    operation: Operation,
    values: Values,
    keys: Keys,
    until: Option<Instant>,
}

impl RequestSource for Requests {
    fn statement(&self) -> &str {
        self.operation.statement()
    }

    fn next(&mut self, random: &mut SmallRng) -> Option<Execution> {
        if self.until.is_some_and(|until| Instant::now() >= until) {
            return None;
        }
        let number = self.keys.next(random)?;
        Some(Execution::of_row(self.operation.bound(
            number,
            self.values,
            random,
        )))
    }

    fn check(&self, response: Response) -> Result<Answer> {
        self.operation.check(response)?;
        Ok(Answer::last(1))
    }
}

/// Writes each of `keys` rows once, and stops the node gracefully, so that all rows are flushed to files.
pub async fn fill_and_stop(mut node: Node, keys: u64, writes: Load) -> Result<()> {
    node.wait_until_ready().await?;
    prepare(&node.cql).await?;
    writes.run(&[(node.cql.clone(), Keys::each(keys))]).await?;
    node.terminate()
}

/// Creates the tables.
pub async fn prepare(address: &str) -> Result<()> {
    raw::run_statements(address, &STATEMENTS).await
}

impl Load {
    /// Runs the load on all targets concurrently. Each target has its own keys.
    pub async fn run(&self, targets: &[(String, Keys)]) -> Result<Outcome> {
        let until = self.length.map(|length| Instant::now() + length);
        let load = RawLoad {
            in_flight: self.in_flight,
            pace: self
                .pace
                .map_or(Pace::Closed, |interval| Pace::Spaced { interval }),
            slowest_kept: 0,
        };
        let targets = targets.iter().map(|(address, keys)| Target {
            address: address.clone(),
            source: Requests {
                operation: self.operation,
                values: self.values,
                keys: keys.clone(),
                until,
            },
            random: SmallRng::from_os_rng(),
        });
        load.run(targets).await
    }
}
