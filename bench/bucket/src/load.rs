//! The load: prepared requests, a fixed number of them in flight (closed loop), spread over nodes.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use bytes::{BufMut, Bytes, BytesMut};
use hdrhistogram::Histogram;
use helenus_compare::client::{Connection, Execution};
use helenus_cql::frame::Response;
use helenus_cql::frame::response::QueryResult;
use rand::rngs::SmallRng;
use rand::{Rng, RngCore, SeedableRng};

pub const KEYSPACE: &str = "CREATE KEYSPACE IF NOT EXISTS bucket \
                            WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";
pub const TABLES: [&str; 3] = [
    "CREATE TABLE IF NOT EXISTS bucket.kv (k text PRIMARY KEY, v blob)",
    "CREATE TABLE IF NOT EXISTS bucket.users (id text PRIMARY KEY, email text, v blob)",
    "CREATE INDEX IF NOT EXISTS users_email ON bucket.users (email)",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Write,
    Read,
    /// UPDATE … IF EXISTS, which applies.
    Lwt,
    IndexedWrite,
    IndexRead,
}

impl Operation {
    pub fn name(self) -> &'static str {
        match self {
            Operation::Write => "write",
            Operation::Read => "read",
            Operation::Lwt => "lightweight transaction",
            Operation::IndexedWrite => "write into an indexed table",
            Operation::IndexRead => "read by index",
        }
    }

    fn statement(self) -> &'static str {
        match self {
            Operation::Write => "INSERT INTO bucket.kv (k, v) VALUES (?, ?)",
            Operation::Read => "SELECT v FROM bucket.kv WHERE k = ?",
            Operation::Lwt => "UPDATE bucket.kv SET v = ? WHERE k = ? IF EXISTS",
            Operation::IndexedWrite => "INSERT INTO bucket.users (id, email, v) VALUES (?, ?, ?)",
            Operation::IndexRead => "SELECT id, v FROM bucket.users WHERE email = ?",
        }
    }

    /// The values to bind for the row of that number.
    fn bound(self, number: u64, values: Values, random: &mut SmallRng) -> Vec<Bytes> {
        match self {
            Operation::Write => vec![key(number), values.next(random)],
            Operation::Read => vec![key(number)],
            Operation::Lwt => vec![values.next(random), key(number)],
            Operation::IndexedWrite => vec![key(number), email(number), values.next(random)],
            Operation::IndexRead => vec![email(number)],
        }
    }

    fn check(self, response: Response) -> Result<()> {
        match (self, response) {
            (Operation::Write | Operation::IndexedWrite, Response::Result(QueryResult::Void)) => Ok(()),
            (_, Response::Result(QueryResult::Rows(rows))) if rows.content.row_count() == 1 => Ok(()),
            (_, Response::Error(error)) => Err(error.into()),
            (operation, other) => bail!("{}: unexpected answer {:?}", operation.name(), other.opcode()),
        }
    }
}

/// The key of a row, and of its partition.
pub fn key(number: u64) -> Bytes {
    Bytes::from(format!("{number:050}"))
}

fn email(number: u64) -> Bytes {
    Bytes::from(format!("user{number}@example.com"))
}

/// What rows hold: bytes that don't compress.
#[derive(Clone, Copy)]
pub enum Values {
    /// Of so many bytes, each another one.
    Distinct(usize),
    /// Of so many bytes, each one of so many.
    Repeated(usize, u64),
}

impl Values {
    fn next(self, random: &mut SmallRng) -> Bytes {
        match self {
            Values::Distinct(len) => value(len, random),
            Values::Repeated(len, count) => {
                value(len, &mut SmallRng::seed_from_u64(random.random_range(0..count)))
            }
        }
    }
}

fn value(len: usize, random: &mut SmallRng) -> Bytes {
    let mut value = BytesMut::with_capacity(len + 8);
    while value.len() < len {
        value.put_u64(random.next_u64());
    }
    value.truncate(len);
    value.freeze()
}

/// Which rows are asked for.
#[derive(Clone)]
pub enum Keys {
    /// Each once.
    Each(Arc<AtomicU64>, u64),
    /// Any of them.
    Any(Range<u64>),
    /// Any of these.
    Of(Arc<[u64]>),
    /// This one, so often.
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

/// What a load came to.
pub struct Outcome {
    pub latency_us: Histogram<u64>,
    pub elapsed: Duration,
}

impl Outcome {
    pub fn operations(&self) -> u64 {
        self.latency_us.len()
    }

    pub fn per_s(&self) -> f64 {
        self.operations() as f64 / self.elapsed.as_secs_f64()
    }

    pub fn ms(&self, quantile: f64) -> f64 {
        self.latency_us.value_at_quantile(quantile) as f64 / 1e3
    }
}

/// One load.
#[derive(Clone)]
pub struct Load {
    pub operation: Operation,
    pub values: Values,
    /// At each of the addresses.
    pub in_flight: usize,
    /// Until all keys were taken, if there is none.
    pub length: Option<Duration>,
    /// The time between two requests of a connection that has one in flight; as soon as it is answered if there is none.
    pub pace: Option<Duration>,
}

/// Makes the tables.
pub async fn prepare(address: &str) -> Result<()> {
    let mut connection = Connection::open(address).await?;
    for statement in [KEYSPACE].iter().chain(&TABLES) {
        connection
            .query(statement)
            .await
            .with_context(|| statement.to_string())?;
    }
    Ok(())
}

impl Load {
    /// Runs it against addresses at the same time, each with keys of its own.
    pub async fn run(&self, targets: &[(String, Keys)]) -> Result<Outcome> {
        let started = Instant::now();
        let until = self.length.map(|length| started + length);
        let runs = targets
            .iter()
            .map(|(address, keys)| self.drive(address, keys, until));
        let mut latency_us = Histogram::new_with_bounds(1, 60_000_000, 3)?;
        for seen in futures::future::try_join_all(runs).await? {
            latency_us.add(seen)?;
        }
        Ok(Outcome {
            latency_us,
            elapsed: started.elapsed(),
        })
    }

    async fn drive(&self, address: &str, keys: &Keys, until: Option<Instant>) -> Result<Histogram<u64>> {
        let mut connection = Connection::open(address).await?;
        let id = connection.prepare(self.operation.statement()).await?;
        let mut random = SmallRng::from_os_rng();
        let mut seen = Histogram::new_with_bounds(1, 60_000_000, 3)?;
        let mut sent = vec![Instant::now(); self.in_flight];
        let mut free: Vec<usize> = (0..self.in_flight).collect();
        let mut waiting = 0;
        // Connections that begin at once would go on in step.
        let mut due = Instant::now() + self.pace.unwrap_or_default().mul_f64(random.random());
        loop {
            if let Some(pace) = self.pace.filter(|_| !free.is_empty()) {
                tokio::time::sleep_until(due.into()).await;
                due = (due + pace).max(Instant::now());
            }
            for slot in free.drain(..) {
                if until.is_some_and(|until| Instant::now() >= until) {
                    continue;
                }
                let Some(number) = keys.next(&mut random) else {
                    continue;
                };
                let execution = Execution {
                    rows: vec![self.operation.bound(number, self.values, &mut random)],
                    page_rows: None,
                    page: None,
                };
                connection.execute(i16::try_from(slot)?, &id, &execution);
                if let Some(sent) = sent.get_mut(slot) {
                    *sent = Instant::now();
                }
                waiting += 1;
            }
            connection.flush().await?;
            if waiting == 0 {
                return Ok(seen);
            }
            connection.fill().await?;
            while let Some((stream, response)) = connection.next_arrived()? {
                self.operation.check(response)?;
                let slot = usize::try_from(stream)?;
                let at = sent.get(slot).context("an answer to nothing that was asked")?;
                seen.saturating_record(at.elapsed().as_micros() as u64);
                waiting -= 1;
                free.push(slot);
            }
        }
    }
}
