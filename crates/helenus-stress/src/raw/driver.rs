//! One connection of a load, which sends the requests that are due and records the responses.

use std::time::Instant;

use anyhow::{Context, Result};
use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_cql::frame::Response;
use rand::rngs::SmallRng;

use super::connection::{Connection, Execution};
use super::pacing::Pacer;
use super::slowest::SlowestRequests;
use super::{Answer, RawLoad, RequestSource};
use crate::results::{LatencyHistogram, new_latency_histogram};

/// The figures of one connection.
pub(super) struct Recorded {
    pub(super) latency_us: LatencyHistogram,
    pub(super) slowest: SlowestRequests,
    pub(super) requests: u64,
    pub(super) operations: u64,
}

/// A request without a response.
struct InFlight {
    execution: Execution,
    /// Start of the response time.
    since: Instant,
}

pub(super) struct Driver<S> {
    connection: Connection,
    source: S,
    random: SmallRng,
    pacer: Pacer,
    /// Ids of the prepared statements.
    ids: Vec<Bytes>,
    /// Requests in flight, by stream.
    slots: Vec<Option<InFlight>>,
    free: Vec<usize>,
    is_over: bool,
    recorded: Recorded,
}

impl<S: RequestSource> Driver<S> {
    /// Connects and prepares the source's statements.
    pub(super) async fn open(
        load: &RawLoad,
        address: &str,
        source: S,
        mut random: SmallRng,
    ) -> Result<Driver<S>> {
        let mut connection = Connection::open(address).await?;
        let mut ids = Vec::new();
        for statement in source.statements() {
            ids.push(connection.prepare(statement).await?);
        }
        // All streams must have an id: one for each request in flight, and one to prepare statements again.
        i16::try_from(load.in_flight)?;
        Ok(Driver {
            connection,
            source,
            pacer: Pacer::begin(load.pace, &mut random)?,
            random,
            ids,
            slots: (0..load.in_flight).map(|_| None).collect(),
            free: (0..load.in_flight).collect(),
            is_over: false,
            recorded: Recorded {
                latency_us: new_latency_histogram(),
                slowest: SlowestRequests::new(load.slowest_kept),
                requests: 0,
                operations: 0,
            },
        })
    }

    /// Runs until the source has no more requests and all responses have arrived.
    pub(super) async fn run(mut self) -> Result<Recorded> {
        loop {
            self.send_due();
            self.connection.flush().await?;
            let is_waiting = self.free.len() < self.slots.len();
            let may_send = !self.is_over && !self.free.is_empty();
            match self.pacer.next_due().filter(|_| may_send) {
                Some(due) => tokio::select! {
                    filled = self.connection.fill(), if is_waiting => filled?,
                    waited = self.pacer.wait_until(due) => waited?,
                },
                None if !is_waiting => return Ok(self.recorded),
                None => self.connection.fill().await?,
            }
            while let Some((stream, response)) = self.connection.next_arrived()? {
                self.take_response(stream, response)?;
            }
        }
    }

    /// Queues the requests that are due, as long as slots are free.
    fn send_due(&mut self) {
        while let Some(&slot) = self.free.last().filter(|_| !self.is_over) {
            let now = Instant::now();
            if self.pacer.next_due().is_some_and(|due| due > now) {
                return;
            }
            let Some(execution) = self.source.next(&mut self.random) else {
                self.is_over = true;
                return;
            };
            self.queue(slot, &execution);
            let since = self.pacer.take(now);
            if let Some(slot) = self.slots.get_mut(slot) {
                *slot = Some(InFlight { execution, since });
            }
            self.free.pop();
        }
    }

    fn take_response(&mut self, stream: i16, response: Response) -> Result<()> {
        let index = usize::try_from(stream)?;
        if index == self.slots.len() {
            return match response {
                Response::Error(error) => Err(error.into()),
                _ => Ok(()),
            };
        }
        let slot = self.slots.get_mut(index).context("a response to no request")?;
        let request = slot.take().context("a second response")?;
        // Cassandra drops prepared statements when it processes a schema change, such as the creation of the tables.
        if let Response::Error(CqlError::Unprepared(_)) = response {
            if let Some(statement) = self.source.statements().get(request.execution.statement) {
                self.connection.queue_prepare(self.slots.len() as i16, statement);
            }
            self.send_again(index, request);
            return Ok(());
        }
        let answer = self.source.check(response)?;
        self.record(&answer, request.since);
        match answer.next_page {
            Some(page) => self.send_again(
                index,
                InFlight {
                    execution: Execution {
                        page: Some(page),
                        ..request.execution
                    },
                    since: Instant::now(),
                },
            ),
            None => {
                self.recorded.requests += 1;
                self.free.push(index);
            }
        }
        Ok(())
    }

    fn send_again(&mut self, index: usize, request: InFlight) {
        self.queue(index, &request.execution);
        if let Some(slot) = self.slots.get_mut(index) {
            *slot = Some(request);
        }
    }

    fn queue(&mut self, slot: usize, execution: &Execution) {
        if let Some(id) = self.ids.get(execution.statement) {
            self.connection.queue_execution(slot as i16, id, execution);
        }
    }

    fn record(&mut self, answer: &Answer, since: Instant) {
        let took = since.elapsed();
        self.recorded
            .latency_us
            .saturating_record(took.as_micros() as u64);
        self.recorded.slowest.record(since, took);
        self.recorded.operations += answer.operations;
    }
}
