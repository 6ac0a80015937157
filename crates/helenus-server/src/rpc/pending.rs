//! The requests of a connection that have no answer yet.
//!
//! A request that was given to the connection's task to be written may have been executed; any other was surely not. Each request has a
//! deadline here.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;

use bytes::{Bytes, BytesMut};
use hashbrown::HashMap;
use helenus_query::metrics::internode::{OutboundQueue, OutboundTraffic};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::PROTOCOL;
use super::failure::{CallError, Reason, Refusal};
use super::frame::{Frame, Header, Kind, flags};
use super::output::Output;
use super::relay_sink::RelaySink;

/// The answer to a request.
pub(super) type Outcome = Result<Bytes, CallError>;
/// The answer to a scan: a chunk, and true if it is the last one.
pub(super) type ChunkOutcome = Result<(Bytes, bool), CallError>;

/// The receiver of a request's answer.
pub(super) enum Sink {
    Answer(oneshot::Sender<Outcome>),
    Chunks(mpsc::Sender<ChunkOutcome>),
    Relay(RelaySink),
}

impl Sink {
    /// Sends the last answer. Returns the waker of the receiver's task if the caller must wake it.
    fn send_quietly(self, outcome: Outcome) -> Option<Waker> {
        // Errors are ignored, because the caller may have given up.
        match self {
            Sink::Answer(sender) => drop(sender.send(outcome)),
            Sink::Chunks(sender) => drop(sender.try_send(outcome.map(|chunk| (chunk, true)))),
            Sink::Relay(sink) => return sink.send_quietly(outcome),
        }
        None
    }

    /// Sends the last answer.
    fn send(self, outcome: Outcome) {
        if let Some(waker) = self.send_quietly(outcome) {
            waker.wake();
        }
    }
}

/// A request without an answer.
struct PendingRequest {
    sink: Sink,
    /// `None` once a scan has begun. A scan has no deadline.
    deadline: Option<Instant>,
    bytes: usize,
    /// Set to true when the client has disconnected.
    is_left: Arc<AtomicBool>,
    was_sent: bool,
    was_given_up: bool,
}

impl PendingRequest {
    /// Fails the request. The error is `sent` if the request was sent, and `unsent` otherwise.
    fn fail(self, sent: CallError, unsent: CallError) {
        let error = if self.was_sent { sent } else { unsent };
        self.sink.send(Err(error));
    }
}

/// A request that is yet to be sent. If it was given up, it is not in `open` any more.
struct WaitingRequest {
    header: Header,
    body: BytesMut,
}

/// A new request.
pub(super) struct NewRequest {
    pub kind: Kind,
    pub body: BytesMut,
    pub sink: Sink,
    pub deadline: Instant,
    pub is_left: Arc<AtomicBool>,
}

/// A violation of the protocol by the other node.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unexpected(pub &'static str);

/// The requests of a connection.
#[derive(Default)]
pub(super) struct PendingRequests {
    traffic: Arc<OutboundTraffic>,
    next_id: u32,
    open: HashMap<u32, PendingRequest>,
    waiting: VecDeque<WaitingRequest>,
    /// Headers of frames about requests that were sent: given up, or one more chunk requested.
    notes: Vec<Header>,
    /// True if the connection is open or being established.
    pub is_running: bool,
    /// True once no further request will be made.
    pub is_over: bool,
    /// The version of the connection's protocol.
    pub protocol: u32,
}

impl PendingRequests {
    pub fn new(traffic: Arc<OutboundTraffic>) -> PendingRequests {
        PendingRequests {
            traffic,
            protocol: PROTOCOL,
            ..PendingRequests::default()
        }
    }

    /// Queues a request, and returns its id.
    pub fn begin(&mut self, request: NewRequest) -> u32 {
        while self.open.contains_key(&self.next_id) {
            self.next_id = self.next_id.wrapping_add(1);
        }
        let id = self.next_id;
        self.next_id = id.wrapping_add(1);
        let left = request.deadline.saturating_duration_since(Instant::now());
        let header = Header {
            kind: request.kind,
            flags: 0,
            id,
            timeout_ms: u32::try_from(left.as_millis()).unwrap_or(u32::MAX),
        };
        let pending = PendingRequest {
            sink: request.sink,
            deadline: Some(request.deadline),
            bytes: request.body.len(),
            is_left: request.is_left,
            was_sent: false,
            was_given_up: false,
        };
        self.open.insert(id, pending);
        self.waiting.push_back(WaitingRequest {
            header,
            body: request.body,
        });
        id
    }

    /// Removes a request whose answer is not needed. The other node is notified if the request was sent.
    pub fn give_up(&mut self, id: u32) {
        if self.open.remove(&id).is_some_and(|open| open.was_sent) {
            self.note(Kind::GiveUp, id);
        }
    }

    /// Requests one more chunk of a scan.
    pub fn grant(&mut self, id: u32) {
        if self.open.contains_key(&id) {
            self.note(Kind::Next, id);
        }
    }

    fn note(&mut self, kind: Kind, id: u32) {
        if self.is_running {
            self.notes.push(Header::new(kind, id));
        }
    }

    /// Returns true if the connection's task may sleep.
    pub fn has_nothing_to_do(&self) -> bool {
        self.waiting.is_empty() && self.notes.is_empty() && !self.is_done()
    }

    /// Returns true if the connection is not needed any more.
    pub fn is_done(&self) -> bool {
        self.is_over && self.open.is_empty()
    }

    /// Returns true if no request waits for an answer.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Returns the number and the bytes of requests that are yet to be sent.
    pub fn unsent(&self) -> OutboundQueue {
        let waiting = self.waiting.iter();
        let open = waiting.filter_map(|waiting| self.open.get(&waiting.header.id));
        open.fold(OutboundQueue::default(), |sum, open| OutboundQueue {
            messages: sum.messages + 1,
            bytes: sum.bytes + open.bytes as u64,
        })
    }

    /// Moves everything that is to be sent into the output.
    pub fn take(&mut self, output: &mut Output) {
        for waiting in self.waiting.drain(..) {
            if waiting.header.kind.protocol_min() > self.protocol {
                if let Some(open) = self.open.remove(&waiting.header.id) {
                    open.sink.send(Err(too_old(self.protocol)));
                }
                continue;
            }
            if let Some(open) = self.open.get_mut(&waiting.header.id) {
                open.was_sent = true;
                self.traffic.sent.add(open.bytes);
                output.push(&waiting.header, waiting.body);
            }
        }
        for note in self.notes.drain(..) {
            output.push(&note, BytesMut::new());
        }
    }

    /// Takes the receiver of an answer. `None` if the request was given up, or if the answer is a chunk that others follow.
    ///
    /// # Errors
    /// The frame is no answer, or not an answer to this request.
    pub fn settle(&mut self, frame: Frame) -> Result<Option<Settled>, Unexpected> {
        let Frame { header, body } = frame;
        let outcome = match header.kind {
            Kind::Answer if header.flags & flags::MORE != 0 => {
                return self.put_chunk(header.id, body).map(|()| None);
            }
            Kind::Answer => Ok(body),
            Kind::Failure => Err(CallError::received(header.flags, &body)),
            Kind::Pong => return Ok(None),
            _ => return Err(Unexpected("a frame that only a caller may send")),
        };
        match self.open.remove(&header.id) {
            Some(open) if !open.was_sent => Err(Unexpected("an answer to a request that was not sent")),
            open => Ok(open.map(|open| Settled {
                sink: open.sink,
                outcome,
            })),
        }
    }

    fn put_chunk(&mut self, id: u32, chunk: Bytes) -> Result<(), Unexpected> {
        let Some(open) = self.open.get_mut(&id) else {
            return Ok(());
        };
        open.deadline = None;
        let Sink::Chunks(sender) = &open.sink else {
            return Err(Unexpected("a chunk for a request that is no scan"));
        };
        match sender.try_send(Ok((chunk, false))) {
            Err(mpsc::error::TrySendError::Full(_)) => {
                Err(Unexpected("more chunks of a scan than were requested"))
            }
            // A closed channel means that the scan is just being given up.
            Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => Ok(()),
        }
    }

    /// Fails expired requests, and gives up requests whose clients have disconnected.
    pub fn sweep(&mut self, now: Instant) {
        let mut overdue = Vec::new();
        for (id, open) in &mut self.open {
            if open.deadline.is_some_and(|deadline| now >= deadline) {
                overdue.push(*id);
            } else if open.was_sent && !open.was_given_up && open.is_left.load(Ordering::Relaxed) {
                // The request stays open, because the other node answers it all the same.
                open.was_given_up = true;
                self.notes.push(Header::new(Kind::GiveUp, *id));
            }
        }
        for id in overdue {
            let Some(open) = self.open.remove(&id) else {
                continue;
            };
            if open.was_sent {
                self.note(Kind::GiveUp, id);
            }
            self.traffic.expired.add(open.bytes);
            open.fail(
                CallError::NoAnswer("no answer in time".to_owned()),
                CallError::Unreachable("no connection in time".to_owned()),
            );
        }
    }

    /// Fails all requests, because the connection has ended. The error is `sent` for those that were sent, and `unsent` for the others.
    pub fn fail(&mut self, sent: &CallError, unsent: &CallError) {
        self.is_running = false;
        self.waiting.clear();
        self.notes.clear();
        for (_, open) in self.open.drain() {
            self.traffic.failed.add(open.bytes);
            open.fail(sent.clone(), unsent.clone());
        }
    }
}

/// Returns the error of a request that the other node's version does not know.
fn too_old(protocol: u32) -> CallError {
    CallError::Refused(Refusal::new(
        Reason::Incompatible,
        format!(
            "a node of an older version (protocol {protocol}) takes no part in transactions over partitions of several nodes; upgrade it"
        ),
    ))
}

/// An answer and its receiver.
pub(super) struct Settled {
    sink: Sink,
    outcome: Outcome,
}

impl Settled {
    /// Sends the answer. Returns the waker of the receiver's task if the caller must wake it.
    pub fn send_quietly(self) -> Option<Waker> {
        self.sink.send_quietly(self.outcome)
    }
}

#[cfg(test)]
#[path = "pending_tests.rs"]
mod tests;
