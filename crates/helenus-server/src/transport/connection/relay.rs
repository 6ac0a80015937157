//! The relayed requests of a connection: they were sent to the owners of their rows, and have no future of their own.
//!
//! The connections to the owners put the answers into the connection's [`RelayQueue`], and wake the connection's task once for all that have
//! arrived together. The task sends the answers like those of any request. A request that must be tried again becomes a future.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_cql::frame::request::Execute;
use helenus_cql::frame::response::{PageMetadata, QueryResult};
use helenus_cql::frame::{Response, ResponseMessage};
use helenus_query::cluster::{RelayAnswer, RelayReceiver, ReturnAddress};
use helenus_query::limits::client_memory::CHARGED_STEP;
use helenus_query::measurement::RequestMeasurement;
use helenus_query::response::Outcome;

use super::Connection;
use super::in_flight::{AdmittedRequest, CompletedRequest, ReadyResponse, RequestInfo, ResponseNotes};
use super::statement_summary::StatementSummary;
use super::statements::{StatementOutcome, executed_answer, frame, run_resumed};
use crate::rpc::mailbox::Mailbox;
use crate::transport::Backend;
use crate::transport::server_state::ServerState;

/// A relayed request that waits for its answer.
struct RelayedRequest<B: Backend> {
    info: RequestInfo,
    prepared: Arc<B::Prepared>,
    relayed: B::Relayed,
    /// The body of the EXECUTE, for further attempts.
    body: Bytes,
    /// Number of bound values.
    values: usize,
}

/// The relayed requests of a connection.
pub(super) struct RelayedRequests<B: Backend> {
    queue: Arc<RelayQueue>,
    /// The requests by their numbers. `None` for numbers that are free.
    requests: Vec<Option<RelayedRequest<B>>>,
    free: Vec<u32>,
    /// Empty, with room for the answers that are taken from the queue.
    answers: Vec<NumberedAnswer>,
    is_left: Arc<AtomicBool>,
    /// The tasks that send the requests. They are woken when the connection has read all requests that have arrived together.
    senders: Senders,
}

/// The wakers of tasks with something to send. Dropping this wakes them.
#[derive(Default)]
struct Senders(Vec<Waker>);

impl Drop for Senders {
    fn drop(&mut self) {
        self.0.drain(..).for_each(Waker::wake);
    }
}

type NumberedAnswer = (u32, RelayAnswer);

/// The answers that have arrived.
struct RelayQueue(Mailbox<Vec<NumberedAnswer>>);

impl RelayReceiver for RelayQueue {
    fn put(&self, number: u32, answer: RelayAnswer) -> Option<Waker> {
        let ((), waker) = self.0.put_quietly(|answers| answers.push((number, answer)));
        waker
    }
}

impl<B: Backend> Default for RelayedRequests<B> {
    fn default() -> RelayedRequests<B> {
        RelayedRequests {
            queue: Arc::new(RelayQueue(Mailbox::new(Vec::new()))),
            requests: Vec::new(),
            free: Vec::new(),
            answers: Vec::new(),
            is_left: Arc::default(),
            senders: Senders::default(),
        }
    }
}

impl<B: Backend> RelayedRequests<B> {
    /// Returns the number of requests that wait for their answers.
    pub fn len(&self) -> usize {
        self.requests.len() - self.free.len()
    }

    /// Records that no client waits for the answers any more.
    pub fn abandon(&self) {
        self.is_left.store(true, Ordering::Relaxed);
    }

    /// Has the relayed requests sent.
    pub fn send(&mut self) {
        self.senders.0.drain(..).for_each(Waker::wake);
    }

    /// Lets the task sleep until an answer arrives. Returns false if there are answers.
    pub fn fall_asleep(&self, cx: &Context<'_>) -> bool {
        self.len() == 0 || self.queue.0.fall_asleep(cx, Vec::is_empty)
    }

    fn next_number(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.requests.push(None);
            u32::try_from(self.requests.len() - 1).unwrap_or(u32::MAX)
        })
    }

    fn begin(&mut self, number: u32, request: RelayedRequest<B>) {
        if let Some(place) = self.requests.get_mut(number as usize) {
            *place = Some(request);
        }
    }

    fn end(&mut self, number: u32) -> Option<RelayedRequest<B>> {
        let request = self.requests.get_mut(number as usize)?.take()?;
        self.free.push(number);
        Some(request)
    }
}

impl<B: Backend> Connection<B> {
    /// Relays a request to its owner. Returns false if nothing was done, because the request needs a future.
    pub(super) fn relay(&mut self, begun: &AdmittedRequest, execute: &Execute, body: &Bytes) -> bool {
        let server = &self.server;
        let is_observed = || {
            let is_recorded = server.audit.running().is_some() || server.full_query_log.running().is_some();
            is_recorded || begun.traced.is_some() || begun.span.is_some()
        };
        if !server.backend.relays() || is_observed() {
            return false;
        }
        let Ok(prepared) = server.backend.prepared(&execute.id) else {
            return false;
        };
        let client = &self.session.client;
        let is_warned = self.session.is_warned.load(Ordering::Relaxed);
        if !is_warned && server.backend.use_warning(client, &prepared).is_some() {
            return false;
        }
        let number = self.relayed.next_number();
        let back = || ReturnAddress {
            receiver: self.relayed.queue.clone(),
            number,
            is_left: self.relayed.is_left.clone(),
        };
        let frame = frame(&execute.parameters, body);
        let Some((relayed, sent)) = server.backend.relay(client, &prepared, frame, back) else {
            self.relayed.free.push(number);
            return false;
        };
        self.running.bytes += begun.info.cost_bytes;
        server.acquire(begun.info.cost_bytes);
        let request = RelayedRequest {
            info: begun.info,
            prepared,
            relayed,
            body: body.clone(),
            values: execute.parameters.values.len(),
        };
        self.relayed.begin(number, request);
        self.relayed.senders.0.extend(sent.waker);
        true
    }

    /// Ends the relayed requests whose answers have arrived. Returns true if there were any.
    pub(super) fn collect_relayed(&mut self, cx: &mut Context<'_>) -> bool {
        if self.relayed.len() == 0 {
            return false;
        }
        let mut answers = self.relayed.take_answers();
        let progress = !answers.is_empty();
        for (number, answer) in answers.drain(..) {
            if let Some(request) = self.relayed.end(number) {
                self.settle(request, answer, cx);
            }
        }
        self.relayed.answers = answers;
        progress
    }

    fn settle(&mut self, request: RelayedRequest<B>, answer: RelayAnswer, cx: &mut Context<'_>) {
        let RelayedRequest {
            info,
            prepared,
            relayed,
            body,
            values,
        } = request;
        let (settled, measurement) = settled(&self.server, relayed, answer);
        let knows_tablets = self
            .session
            .state
            .options()
            .is_some_and(|options| options.knows_tablets);
        let begun = AdmittedRequest {
            measurement,
            ..AdmittedRequest::untraced(info)
        };
        let result = match settled {
            Ok(result) => result,
            Err(unsettled) => {
                let body = (info.version, body);
                let run = run_resumed(self.server.clone(), prepared, unsettled, body, knows_tablets);
                self.release(&info);
                return self.run_request(begun, run, cx);
            }
        };
        let at = result.as_ref().ok().and_then(|outcome| outcome.ended);
        let result =
            result.map(|outcome| executed_answer(outcome, knows_tablets, |_| PageMetadata::default()));
        let summary = StatementSummary::Prepared { prepared, values };
        if result.as_ref().is_ok_and(is_long) {
            self.release(&info);
            let outcome = StatementOutcome { summary, result };
            return self.run_request(begun, std::future::ready(outcome), cx);
        }
        let at = at.unwrap_or_else(Instant::now);
        let taken = at.saturating_duration_since(info.arrival.first_byte);
        let notes = self.server.slow.is_slow(taken).then(|| {
            Box::new(ResponseNotes {
                statement: Some((summary.text(&self.server.backend), values)),
                is_slow: true,
                ..ResponseNotes::default()
            })
        });
        self.finish(CompletedRequest {
            info,
            answered: ReadyResponse {
                message: result.unwrap_or_else(ResponseMessage::error),
                at,
                notes,
                charge: None,
                encoded: None,
                reserved: None,
            },
            measurement,
        });
    }

    /// Subtracts a request from those that run.
    pub(super) fn release(&mut self, info: &RequestInfo) {
        self.running.bytes = self.running.bytes.saturating_sub(info.cost_bytes);
        self.server.release(1, info.cost_bytes);
    }
}

/// The result of a relayed request, or the request if it must be tried again, with the request's measurement.
type Settled<U> = (Result<Result<Outcome, CqlError>, U>, RequestMeasurement);

fn settled<B: Backend>(
    server: &ServerState<B>,
    relayed: B::Relayed,
    answer: RelayAnswer,
) -> Settled<B::Unsettled> {
    let mut measurement = RequestMeasurement::default();
    measurement.swap();
    let settled = server.backend.settle(relayed, answer);
    measurement.swap();
    (settled, measurement)
}

/// Returns true if the memory of a response must be counted until it is encoded.
fn is_long(message: &ResponseMessage) -> bool {
    matches!(&message.response, Response::Result(QueryResult::Encoded(body)) if body.len() >= CHARGED_STEP)
}

impl<B: Backend> RelayedRequests<B> {
    fn take_answers(&mut self) -> Vec<NumberedAnswer> {
        let mut answers = std::mem::take(&mut self.answers);
        self.queue.0.take(|arrived| std::mem::swap(arrived, &mut answers));
        answers
    }

    /// Ends all requests of a client that has disconnected. Those that must be tried again are.
    pub async fn run_to_end(mut self, server: Arc<ServerState<B>>) {
        while self.len() > 0 {
            let queue = &self.queue.0;
            let arrived = poll_fn(|cx| match queue.fall_asleep(cx, Vec::is_empty) {
                true => Poll::Pending,
                false => Poll::Ready(()),
            });
            arrived.await;
            for (number, answer) in self.take_answers() {
                let Some(request) = self.end(number) else {
                    continue;
                };
                if let (Err(unsettled), _) = settled(&server, request.relayed, answer) {
                    let body = (request.info.version, request.body);
                    tokio::spawn(run_resumed(
                        server.clone(),
                        request.prepared,
                        unsettled,
                        body,
                        false,
                    ));
                }
            }
        }
    }
}
