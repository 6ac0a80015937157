//! Requests to another node over one long-lived stream. Requests that arrive while a message is being sent share the next message. The
//! protocol calls requests questions.
//!
//! A separate call costs far more than most requests. The stream is opened with the first request, and again after it has broken. A request
//! that was put into a message may have been executed; any other was surely not. Each request has a deadline here. At most [`OPEN_MAX`]
//! requests are open at a time, and further ones wait.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::task::AtomicWaker;
use helenus_query::cluster::RemoteError;
use helenus_query::limits::scope;
use helenus_query::metrics::internode::{OutboundQueue, OutboundTraffic};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::Instant;
use tokio_stream::Stream;
use tonic::transport::Channel;
use tonic::{Request, Status};

use super::OPEN_MAX;
use super::failure::failure;
use super::message_batching::{GROUP_BYTES_MAX, next_batch};
use super::peer_auth::PeerCredentials;
use super::proto::node_client::NodeClient;
use super::proto::{Answer, Question, Questions, answer, question};

/// Interval of the check for expired requests and for those whose client has disconnected. One timer serves all requests.
const SWEEP_INTERVAL: Duration = Duration::from_millis(50);

type Outcome = Result<answer::What, RemoteError>;

/// The stream of requests to one node.
pub(super) struct RequestStream {
    client: NodeClient<Channel>,
    credentials: Arc<PeerCredentials>,
    queue: Arc<Queue>,
    open: Semaphore,
    /// The runtime that serves requests.
    runtime: Handle,
}

#[derive(Default)]
struct Queue {
    traffic: Arc<OutboundTraffic>,
    state: Mutex<StreamState>,
    ready: AtomicWaker,
}

impl Queue {
    /// Reports to the other node that the response to a sent request is not needed.
    fn give_up(&self, id: u64) {
        let mut state = self.state.lock();
        if state.is_running {
            state.given_up.push(id);
            drop(state);
            self.ready.wake();
        }
    }

    /// Fails expired requests, and reports to the other node which requests were given up.
    fn sweep(&self, now: Instant) {
        let mut state = self.state.lock();
        state.sweep(now, &self.traffic);
        if !state.given_up.is_empty() {
            drop(state);
            self.ready.wake();
        }
    }
}

#[derive(Default)]
struct StreamState {
    next_id: u64,
    /// Requests that were sent, and given up after that. The other node has yet to be notified.
    given_up: Vec<u64>,
    /// Requests that are yet to be sent, in order. A request that was given up stays here, but is not in `open` any more.
    waiting: VecDeque<Question>,
    open: HashMap<u64, PendingRequest>,
    /// True if the stream is open or being opened.
    is_running: bool,
    /// True once the [`RequestStream`] has been dropped.
    is_over: bool,
}

struct PendingRequest {
    caller: oneshot::Sender<Outcome>,
    deadline: Instant,
    bytes: usize,
    /// Set to true when the client has disconnected.
    is_left: Arc<AtomicBool>,
    was_sent: bool,
    was_given_up: bool,
}

impl PendingRequest {
    /// Fails the request. The error is `sent` if the request was sent and may have been executed. Otherwise the error is that the node was
    /// not reached, for the reason `not_sent`.
    fn fail(self, sent: RemoteError, not_sent: &str) {
        let reported = match self.was_sent {
            true => sent,
            false => RemoteError::Unreachable(not_sent.to_owned()),
        };
        // The error is ignored, because the caller may have given up.
        let _ = self.caller.send(Err(reported));
    }
}

impl StreamState {
    /// Returns the next message. `None` if there is nothing to send.
    fn take(&mut self, traffic: &OutboundTraffic) -> Option<Questions> {
        let (waiting, open) = (&mut self.waiting, &mut self.open);
        let next = || {
            loop {
                let question = waiting.pop_front()?;
                if let Some(open) = open.get_mut(&question.id) {
                    open.was_sent = true;
                    traffic.sent.add(open.bytes);
                    return Some(question);
                }
            }
        };
        let questions = next_batch(next, |question: &Question| question.what.as_ref().map_or(0, size));
        let given_up = std::mem::take(&mut self.given_up);
        (!questions.is_empty() || !given_up.is_empty()).then_some(Questions { questions, given_up })
    }

    fn sweep(&mut self, now: Instant, traffic: &OutboundTraffic) {
        let mut overdue = Vec::new();
        for (id, open) in &mut self.open {
            if now >= open.deadline {
                overdue.push(*id);
            } else if open.was_sent && !open.was_given_up && open.is_left.load(Ordering::Relaxed) {
                // The request stays open, because the other node answers it all the same.
                open.was_given_up = true;
                self.given_up.push(*id);
            }
        }
        for id in overdue {
            let Some(open) = self.open.remove(&id) else {
                continue;
            };
            if open.was_sent {
                self.given_up.push(id);
            }
            traffic.expired.add(open.bytes);
            open.fail(
                RemoteError::NoAnswer("no answer in time".to_owned()),
                "no connection in time",
            );
        }
    }

    /// Fails all open requests, because the stream has ended.
    fn fail(&mut self, sent: &RemoteError, traffic: &OutboundTraffic) {
        self.is_running = false;
        self.waiting.clear();
        self.given_up.clear();
        for (_, open) in self.open.drain() {
            traffic.failed.add(open.bytes);
            open.fail(sent.clone(), "the connection has ended");
        }
    }
}

/// Returns the approximate bytes of a request.
pub(super) fn size(what: &question::What) -> usize {
    match what {
        question::What::Execute(execute) => execute.message.len(),
        question::What::Part(part) => part
            .statement
            .as_ref()
            .map_or(0, |statement| statement.message.len()),
        question::What::Get(get) => get.keys.iter().map(|key| key.key.len()).sum(),
        question::What::SearchLists(search) => search.vector.len() + search.lists.len() * size_of::<i64>(),
        question::What::Write(write) => write
            .operands
            .iter()
            .map(|op| op.key.len() + op.operand.len())
            .sum(),
    }
}

/// Returns true if a request needs a separate call, because it would delay the others on the stream.
pub(super) fn is_large(what: &question::What) -> bool {
    size(what) > GROUP_BYTES_MAX
}

pub(super) fn question(id: u64, what: question::What, deadline: Instant) -> Question {
    let left = deadline.saturating_duration_since(Instant::now());
    Question {
        id,
        timeout_ms: u32::try_from(left.as_millis()).unwrap_or(u32::MAX),
        what: Some(what),
    }
}

/// The messages with requests, as gRPC sends them.
struct Outgoing(Arc<Queue>);

impl Stream for Outgoing {
    type Item = Questions;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Questions>> {
        self.0.ready.register(cx.waker());
        let mut state = self.0.state.lock();
        match state.take(&self.0.traffic) {
            Some(group) => Poll::Ready(Some(group)),
            None if state.is_over => Poll::Ready(None),
            None => Poll::Pending,
        }
    }
}

/// Gives up a request when its caller drops this.
struct PendingGuard<'a> {
    queue: &'a Queue,
    id: u64,
}

impl Drop for PendingGuard<'_> {
    fn drop(&mut self) {
        let given_up = self.queue.state.lock().open.remove(&self.id);
        if given_up.is_some_and(|open| open.was_sent) {
            self.queue.give_up(self.id);
        }
    }
}

impl RequestStream {
    pub fn new(
        client: NodeClient<Channel>,
        credentials: Arc<PeerCredentials>,
        runtime: Handle,
        traffic: Arc<OutboundTraffic>,
    ) -> RequestStream {
        RequestStream {
            client,
            credentials,
            runtime,
            queue: Arc::new(Queue {
                traffic,
                ..Queue::default()
            }),
            open: Semaphore::new(OPEN_MAX),
        }
    }

    /// Returns the number and the bytes of requests that are yet to be sent.
    pub fn waiting(&self) -> OutboundQueue {
        let state = self.queue.state.lock();
        let waiting = state
            .waiting
            .iter()
            .filter_map(|question| state.open.get(&question.id));
        waiting.fold(OutboundQueue::default(), |sum, open| OutboundQueue {
            messages: sum.messages + 1,
            bytes: sum.bytes + open.bytes as u64,
        })
    }

    pub async fn request(&self, what: question::What, deadline: Instant) -> Outcome {
        let late = || RemoteError::Unreachable("too many outstanding requests to the node".to_owned());
        let _permit = match self.open.try_acquire() {
            Ok(permit) => permit,
            Err(_) => {
                let permit = tokio::time::timeout_at(deadline, self.open.acquire()).await;
                permit.map_err(|_| late())?.map_err(|_| late())?
            }
        };
        let (caller, answered) = oneshot::channel();
        let _requested = self.put(what, caller, deadline);
        let ended = |_| Err(RemoteError::NoAnswer("the connection has ended".to_owned()));
        answered.await.unwrap_or_else(ended)
    }

    fn put(
        &self,
        what: question::What,
        caller: oneshot::Sender<Outcome>,
        deadline: Instant,
    ) -> PendingGuard<'_> {
        let is_left = scope::left();
        let bytes = size(&what);
        let (id, begins) = {
            let mut state = self.queue.state.lock();
            let id = state.next_id;
            state.next_id += 1;
            state.open.insert(
                id,
                PendingRequest {
                    caller,
                    deadline,
                    bytes,
                    is_left,
                    was_sent: false,
                    was_given_up: false,
                },
            );
            state.waiting.push_back(question(id, what, deadline));
            (id, !std::mem::replace(&mut state.is_running, true))
        };
        match begins {
            true => self.begin(),
            false => self.queue.ready.wake(),
        }
        PendingGuard {
            queue: &self.queue,
            id,
        }
    }

    fn begin(&self) {
        let (client, queue) = (self.client.clone(), self.queue.clone());
        let request = self.credentials.stream(Outgoing(queue.clone()));
        self.runtime.spawn(async move {
            let ended = tokio::select! {
                ended = run(client, request, &queue) => ended,
                () = sweep(&queue) => Ok(()),
            };
            let reported = match ended {
                Ok(()) => RemoteError::NoAnswer("the connection has ended".to_owned()),
                Err(status) => failure(&status),
            };
            queue.state.lock().fail(&reported, &queue.traffic);
        });
    }
}

impl Drop for RequestStream {
    fn drop(&mut self) {
        self.queue.state.lock().is_over = true;
        self.queue.ready.wake();
    }
}

/// Sweeps the queue in each interval, without end.
async fn sweep(queue: &Queue) {
    loop {
        tokio::time::sleep(SWEEP_INTERVAL).await;
        queue.sweep(Instant::now());
    }
}

/// Opens the stream, and receives responses until it ends.
async fn run(
    mut client: NodeClient<Channel>,
    request: Request<Outgoing>,
    queue: &Queue,
) -> Result<(), Status> {
    let mut answers = client.exchange(request).await?.into_inner();
    while let Some(group) = answers.message().await? {
        let mut state = queue.state.lock();
        for Answer { id, what } in group.answers {
            // A request that was given up is not in `open` any more. Its response is dropped.
            if let (Some(open), Some(what)) = (state.open.remove(&id), what) {
                let _ = open.caller.send(Ok(what));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "request_stream_tests.rs"]
mod tests;
