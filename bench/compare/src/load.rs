//! The load: prepared single-row writes and reads, a fixed number in flight (closed loop).

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use bytes::{BufMut, Bytes, BytesMut};
use hdrhistogram::Histogram;
use helenus_cql::frame::Response;
use helenus_cql::frame::response::QueryResult;
use rand::rngs::SmallRng;
use rand::{Rng, RngCore, SeedableRng};

use crate::client::Connection;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Write,
    Read,
}

impl Operation {
    pub const ALL: [Operation; 2] = [Operation::Write, Operation::Read];

    pub fn name(self) -> &'static str {
        match self {
            Operation::Write => "write",
            Operation::Read => "read",
        }
    }

    fn statement(self) -> &'static str {
        match self {
            Operation::Write => "INSERT INTO compare.kv (k, v) VALUES (?, ?)",
            Operation::Read => "SELECT v FROM compare.kv WHERE k = ?",
        }
    }
}

/// Sizes of the load.
#[derive(Clone, Debug)]
pub struct Load {
    pub connections: usize,
    pub in_flight: usize,
    pub keys: u64,
    pub key_bytes: usize,
    pub value_bytes: usize,
}

/// What one phase came to.
pub struct Outcome {
    /// Response times in µs.
    pub latency_us: Histogram<u64>,
    pub elapsed: Duration,
}

/// Which keys a phase takes.
enum Keys {
    /// Each of a range once.
    Range(std::ops::Range<u64>),
    /// At random, until then.
    Random { until: Instant, keys: u64 },
}

impl Load {
    /// Writes every key once.
    pub async fn fill(&self, address: &str) -> Result<()> {
        let share = self.keys.div_ceil(self.connections as u64);
        let tasks = (0..self.connections as u64).map(|at| {
            let range = (at * share)..((at + 1) * share).min(self.keys);
            self.drive(address, Operation::Write, Keys::Range(range), at)
        });
        futures_all(tasks).await?;
        Ok(())
    }

    /// Runs an operation on random keys for that long.
    pub async fn run(&self, address: &str, operation: Operation, length: Duration) -> Result<Outcome> {
        let started = Instant::now();
        let until = started + length;
        let tasks = (0..self.connections as u64).map(|at| {
            self.drive(
                address,
                operation,
                Keys::Random {
                    until,
                    keys: self.keys,
                },
                at,
            )
        });
        let mut latency_us = new_histogram()?;
        for histogram in futures_all(tasks).await? {
            latency_us.add(&histogram)?;
        }
        Ok(Outcome {
            latency_us,
            elapsed: started.elapsed(),
        })
    }

    async fn drive(
        &self,
        address: &str,
        operation: Operation,
        mut keys: Keys,
        seed: u64,
    ) -> Result<Histogram<u64>> {
        let mut connection = Connection::open(address).await?;
        let id = connection.prepare(operation.statement()).await?;
        let mut random = SmallRng::seed_from_u64(seed);
        let mut histogram = new_histogram()?;
        let slots = (self.in_flight / self.connections).max(1);
        let mut sent: Vec<Option<Instant>> = vec![None; slots];
        let mut waiting = 0;
        for stream in 0..slots {
            waiting += usize::from(self.send(
                &mut connection,
                &id,
                operation,
                stream,
                &mut keys,
                &mut random,
                &mut sent,
            ));
        }
        connection.flush().await?;
        while waiting > 0 {
            connection.fill().await?;
            while let Some((stream, response)) = connection.next_arrived()? {
                check(operation, response)?;
                let stream = usize::try_from(stream)?;
                if let Some(start) = sent.get_mut(stream).and_then(Option::take) {
                    histogram.saturating_record(start.elapsed().as_micros() as u64);
                }
                waiting -= 1;
                waiting += usize::from(self.send(
                    &mut connection,
                    &id,
                    operation,
                    stream,
                    &mut keys,
                    &mut random,
                    &mut sent,
                ));
            }
            connection.flush().await?;
        }
        Ok(histogram)
    }

    /// Puts one request on its way in that slot; false if there is nothing more to do.
    #[allow(clippy::too_many_arguments, reason = "the state of one connection's loop")]
    fn send(
        &self,
        connection: &mut Connection,
        id: &Bytes,
        operation: Operation,
        slot: usize,
        keys: &mut Keys,
        random: &mut SmallRng,
        sent: &mut [Option<Instant>],
    ) -> bool {
        let key = match keys {
            Keys::Range(range) => range.next(),
            Keys::Random { until, keys } => (Instant::now() < *until).then(|| random.random_range(0..*keys)),
        };
        let Some(key) = key else { return false };
        let mut values = vec![self.key(key)];
        if operation == Operation::Write {
            values.push(self.value(random));
        }
        connection.execute(slot as i16, id, values);
        if let Some(slot) = sent.get_mut(slot) {
            *slot = Some(Instant::now());
        }
        true
    }

    fn key(&self, number: u64) -> Bytes {
        Bytes::from(format!("{number:0width$}", width = self.key_bytes))
    }

    /// Bytes that don't compress.
    fn value(&self, random: &mut SmallRng) -> Bytes {
        let mut value = BytesMut::with_capacity(self.value_bytes + 8);
        while value.len() < self.value_bytes {
            value.put_u64(random.next_u64());
        }
        value.truncate(self.value_bytes);
        value.freeze()
    }
}

/// Every key is written before it is read, so a read without a row is an error.
fn check(operation: Operation, response: Response) -> Result<()> {
    match (operation, response) {
        (Operation::Write, Response::Result(QueryResult::Void)) => Ok(()),
        (Operation::Read, Response::Result(QueryResult::Rows(rows))) if rows.content.row_count() == 1 => {
            Ok(())
        }
        (Operation::Read, Response::Result(QueryResult::Rows(_))) => {
            bail!("a row that was written is missing")
        }
        (_, Response::Error(error)) => Err(error.into()),
        (_, other) => bail!("unexpected answer {:?}", other.opcode()),
    }
}

fn new_histogram() -> Result<Histogram<u64>> {
    Ok(Histogram::new_with_bounds(1, 60_000_000, 3)?)
}

/// Runs them side by side on this thread.
async fn futures_all<T>(tasks: impl Iterator<Item = impl Future<Output = Result<T>>>) -> Result<Vec<T>> {
    futures::future::try_join_all(tasks).await
}
