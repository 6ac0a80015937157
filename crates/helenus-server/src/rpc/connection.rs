//! A connection to another node, as the caller has it.
//!
//! The connection is established with the first request, and again after it has ended. One task writes requests and reads answers. Requests
//! that are made while the task is busy share its next write to the socket. Pings check that a silent connection is alive. At most
//! [`OPEN_MAX`] requests are open at a time, and further ones wait.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use helenus_query::cluster::{ReturnAddress, Sent};
use helenus_query::limits::scope;
use helenus_query::metrics::internode::{OutboundQueue, OutboundTraffic};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::{Instant, Sleep};

use super::failure::CallError;
use super::frame::{Header, Kind, MESSAGE_BYTES_MAX};
use super::handshake::Traffic;
use super::introduction::introduce;
use super::mailbox::Mailbox;
use super::peer_auth::PeerCredentials;
use super::pending::{ChunkOutcome, NewRequest, Outcome, PendingRequests, Settled, Sink};
use super::relay_sink::RelaySink;
use super::socket;
use super::wire::Wire;
use super::{CHUNKS_AHEAD, OPEN_MAX, Tls};
use crate::network::Network;

/// Maximum time to establish a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// Interval of the check for expired requests and for those whose client has disconnected. One timer serves all requests.
const SWEEP_INTERVAL: Duration = Duration::from_millis(50);
/// Time of silence after which the other node is pinged, and maximum time until its response.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(1);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(2);
/// Unwritten bytes above which requests stay in the queue. Requests in the queue are surely not executed if the connection ends.
const OUTPUT_LEN_MAX: usize = 64 << 10;
/// Answers to a scan that can arrive before the caller takes one: that the scan has begun, the chunks, and a failure.
const SCAN_ANSWERS_MAX: usize = CHUNKS_AHEAD + 2;

/// The other end of a connection.
pub(super) struct Target {
    pub address: String,
    pub tls: Option<Tls>,
    pub network: Arc<dyn Network>,
    pub credentials: Arc<PeerCredentials>,
    pub traffic: Traffic,
}

impl Target {
    /// Establishes the connection. Returns it with the version of its protocol.
    async fn connect(&self) -> Result<(Wire, u32), CallError> {
        let connecting = async {
            let connected = socket::connect(&*self.network, &self.address, self.tls.as_ref()).await;
            let unreachable =
                |error| CallError::Unreachable(format!("cannot connect to {}: {error}", self.address));
            let mut socket = connected.map_err(unreachable)?;
            let protocol = introduce(&mut socket, &self.credentials, self.traffic).await?;
            Ok((Wire::new(socket), protocol))
        };
        let late = || {
            let (address, s) = (&self.address, CONNECT_TIMEOUT.as_secs());
            Err(CallError::Unreachable(format!(
                "cannot connect to {address} within {s} s"
            )))
        };
        let connected = tokio::time::timeout(CONNECT_TIMEOUT, connecting).await;
        connected.unwrap_or_else(|_| late())
    }
}

/// A connection to one node for one purpose.
pub(super) struct PeerConnection {
    shared: Arc<Shared>,
    open: Arc<Semaphore>,
    /// The runtime of the connection's task.
    runtime: Handle,
}

/// State that a connection shares with its task.
struct Shared {
    target: Target,
    pending: Mailbox<PendingRequests>,
}

/// Gives up a request when its caller drops this.
struct PendingGuard {
    shared: Arc<Shared>,
    id: u32,
    is_answered: bool,
}

impl Drop for PendingGuard {
    fn drop(&mut self) {
        if !self.is_answered {
            self.shared.pending.put(|pending| pending.give_up(self.id));
        }
    }
}

impl PeerConnection {
    pub fn new(target: Target, runtime: Handle, traffic: Arc<OutboundTraffic>) -> PeerConnection {
        PeerConnection {
            shared: Arc::new(Shared {
                target,
                pending: Mailbox::new(PendingRequests::new(traffic)),
            }),
            open: Arc::new(Semaphore::new(OPEN_MAX)),
            runtime,
        }
    }

    /// Returns the number and the bytes of requests that are yet to be sent.
    pub fn unsent(&self) -> OutboundQueue {
        self.shared.pending.look(|pending| pending.unsent())
    }

    /// Sends a request and returns the body of its answer.
    pub async fn request(&self, kind: Kind, body: BytesMut, deadline: Instant) -> Outcome {
        let _permit = match self.open.try_acquire() {
            Ok(permit) => permit,
            Err(_) => {
                let permit = tokio::time::timeout_at(deadline, self.open.acquire()).await;
                permit.map_err(|_| crowded())?.map_err(|_| crowded())?
            }
        };
        let (sender, answered) = oneshot::channel();
        let mut guard = self.put(kind, body, Sink::Answer(sender), deadline)?;
        let outcome = answered.await;
        guard.is_answered = true;
        outcome.unwrap_or_else(|_| Err(CallError::NoAnswer("the connection has ended".to_owned())))
    }

    /// Queues a statement whose answer goes to `back`. `None` if nothing was queued, because too many requests are open.
    pub fn relay(&self, body: BytesMut, deadline: Instant, back: ReturnAddress) -> Option<Sent> {
        let permit = self.open.clone().try_acquire_owned().ok()?;
        let (_, waker) = self.begin(NewRequest {
            kind: Kind::Execute,
            body,
            is_left: back.is_left.clone(),
            sink: Sink::Relay(RelaySink::new(back, permit)),
            deadline,
        });
        Some(Sent { waker })
    }

    /// Begins a scan. Waits until the other node has begun it.
    pub async fn scan(&self, body: BytesMut, deadline: Instant) -> Result<ScanAnswers, CallError> {
        let permit = tokio::time::timeout_at(deadline, self.open.clone().acquire_owned()).await;
        let permit = permit.map_err(|_| crowded())?.map_err(|_| crowded())?;
        let (sender, receiver) = mpsc::channel(SCAN_ANSWERS_MAX);
        let guard = self.put(Kind::Scan, body, Sink::Chunks(sender), deadline)?;
        let mut answers = ScanAnswers {
            receiver,
            guard,
            _permit: permit,
        };
        answers.receive().await?;
        Ok(answers)
    }

    fn put(
        &self,
        kind: Kind,
        body: BytesMut,
        sink: Sink,
        deadline: Instant,
    ) -> Result<PendingGuard, CallError> {
        if body.len() > MESSAGE_BYTES_MAX {
            let len = body.len();
            return Err(CallError::NoAnswer(format!(
                "the request to another node has {len} bytes; the maximum is {MESSAGE_BYTES_MAX}"
            )));
        }
        let request = NewRequest {
            kind,
            body,
            sink,
            deadline,
            is_left: scope::left(),
        };
        let (id, waker) = self.begin(request);
        if let Some(waker) = waker {
            waker.wake();
        }
        Ok(PendingGuard {
            id,
            shared: self.shared.clone(),
            is_answered: false,
        })
    }

    /// Queues a request, and returns its id. Also returns the waker of the connection's task, if it sleeps.
    fn begin(&self, request: NewRequest) -> (u32, Option<Waker>) {
        let ((id, begins), waker) = self.shared.pending.put_quietly(|pending| {
            let id = pending.begin(request);
            (id, !std::mem::replace(&mut pending.is_running, true))
        });
        if begins {
            self.runtime.spawn(run(self.shared.clone()));
        }
        (id, waker)
    }
}

impl Drop for PeerConnection {
    fn drop(&mut self) {
        self.shared.pending.put(|pending| pending.is_over = true);
    }
}

fn crowded() -> CallError {
    CallError::Unreachable("too many outstanding requests to the node".to_owned())
}

/// The answers to a scan. Dropping this ends the scan.
pub(super) struct ScanAnswers {
    receiver: mpsc::Receiver<ChunkOutcome>,
    guard: PendingGuard,
    _permit: OwnedSemaphorePermit,
}

impl ScanAnswers {
    /// Returns the next chunk, and requests the one after those that were already requested.
    pub async fn next(&mut self) -> Result<Bytes, CallError> {
        let chunk = self.receive().await?;
        if !self.guard.is_answered {
            let id = self.guard.id;
            self.guard.shared.pending.put(|pending| pending.grant(id));
        }
        Ok(chunk)
    }

    async fn receive(&mut self) -> Outcome {
        match self.receiver.recv().await {
            Some(Ok((chunk, is_last))) => {
                self.guard.is_answered = is_last;
                Ok(chunk)
            }
            Some(Err(error)) => {
                self.guard.is_answered = true;
                Err(error)
            }
            None => Err(CallError::NoAnswer("a scan was cut off".to_owned())),
        }
    }
}

/// Establishes the connection, and runs it until it ends.
async fn run(shared: Arc<Shared>) {
    let connected = tokio::select! {
        connected = shared.target.connect() => connected,
        never = sweep(&shared) => match never {},
    };
    let (sent, unsent) = match connected {
        Err(error) => (error.clone(), error),
        Ok((wire, protocol)) => {
            shared.pending.look(|pending| pending.protocol = protocol);
            let mut driver = Driver {
                shared: &shared,
                wire,
                timer: Box::pin(tokio::time::sleep(SWEEP_INTERVAL)),
                pinged: None,
                settled: Vec::new(),
                sleeping: Vec::new(),
            };
            let reason = std::future::poll_fn(|cx| driver.poll(cx)).await;
            tracing::debug!(
                address = shared.target.address,
                reason,
                "a connection to another node has ended"
            );
            (
                CallError::NoAnswer(reason.clone()),
                CallError::Unreachable(reason),
            )
        }
    };
    shared.pending.look(|pending| pending.fail(&sent, &unsent));
}

/// Fails expired requests while the connection is being established.
async fn sweep(shared: &Shared) -> std::convert::Infallible {
    loop {
        tokio::time::sleep(SWEEP_INTERVAL).await;
        shared.pending.look(|pending| pending.sweep(Instant::now()));
    }
}

/// The task of an established connection.
struct Driver<'a> {
    shared: &'a Shared,
    wire: Wire,
    timer: Pin<Box<Sleep>>,
    /// Time of the last ping since the other node was silent. `None` if it is not silent.
    pinged: Option<std::time::Instant>,
    settled: Vec<Settled>,
    /// Empty, with room for the wakers of the answers' receivers.
    sleeping: Vec<Waker>,
}

impl Driver<'_> {
    /// Writes and reads what is possible now. Ready with the reason when the connection has ended.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<String> {
        match self.drive(cx) {
            Ok(Poll::Ready(())) => Poll::Ready("the connection is not needed any more".to_owned()),
            Ok(Poll::Pending) => Poll::Pending,
            Err(reason) => Poll::Ready(reason),
        }
    }

    fn drive(&mut self, cx: &mut Context<'_>) -> Result<Poll<()>, String> {
        loop {
            let may_send = self.wire.output.len() < OUTPUT_LEN_MAX;
            if may_send && self.take() {
                return Ok(Poll::Ready(()));
            }
            if let Poll::Ready(Err(error)) = self.wire.poll_flush(cx) {
                // The node may have answered before it closed the connection.
                while self.receive(cx)? {}
                return Err(format!("cannot write to the node: {error}"));
            }
            let may_send_again = !may_send && self.wire.output.len() < OUTPUT_LEN_MAX;
            if self.receive(cx)? || may_send_again {
                continue;
            }
            if self.timer.as_mut().poll(cx).is_ready() {
                self.tick()?;
                continue;
            }
            // Until the socket can be written again, new requests need not wake this task.
            if !may_send
                || self
                    .shared
                    .pending
                    .fall_asleep(cx, PendingRequests::has_nothing_to_do)
            {
                return Ok(Poll::Pending);
            }
        }
    }

    /// Moves requests into the output. Returns true if the connection is not needed any more.
    fn take(&mut self) -> bool {
        let (is_over, has_requests) = self.shared.pending.take(|pending| {
            pending.take(&mut self.wire.output);
            (pending.is_done(), !pending.is_empty())
        });
        let next_sweep = Instant::now() + SWEEP_INTERVAL;
        if has_requests && self.timer.deadline() > next_sweep {
            self.timer.as_mut().reset(next_sweep);
        }
        is_over
    }

    /// Reads answers. Returns false if there is nothing to read.
    fn receive(&mut self, cx: &mut Context<'_>) -> Result<bool, String> {
        match self.wire.poll_read(cx) {
            Poll::Pending => return Ok(false),
            Poll::Ready(Ok(0)) => return Err("the connection has ended".to_owned()),
            Poll::Ready(Ok(_)) => self.pinged = None,
            Poll::Ready(Err(error)) => return Err(format!("the connection has ended: {error}")),
        }
        let (wire, settled) = (&mut self.wire, &mut self.settled);
        self.shared.pending.take(|pending| {
            while let Some(frame) = wire.decode().map_err(|error| error.to_string())? {
                let answer = pending.settle(frame);
                settled.extend(answer.map_err(|unexpected| format!("the node has sent {}", unexpected.0))?);
            }
            Ok::<_, String>(())
        })?;
        // The receivers are woken last, so that each finds all of its answers.
        let sleeping = self.settled.drain(..).filter_map(Settled::send_quietly);
        self.sleeping.extend(sleeping);
        self.sleeping.drain(..).for_each(Waker::wake);
        Ok(true)
    }

    /// Sweeps the requests, and pings the other node if it is silent.
    fn tick(&mut self) -> Result<(), String> {
        let now = std::time::Instant::now();
        let has_requests = self.shared.pending.take(|pending| {
            pending.sweep(now.into());
            !pending.is_empty()
        });
        let silent_for = now.saturating_duration_since(self.wire.last_read);
        match self.pinged {
            Some(pinged) if now.saturating_duration_since(pinged) >= KEEP_ALIVE_TIMEOUT => {
                return Err("the node does not answer pings".to_owned());
            }
            None if silent_for >= KEEP_ALIVE_INTERVAL => {
                self.wire
                    .output
                    .push(&Header::new(Kind::Ping, 0), BytesMut::new());
                self.pinged = Some(now);
            }
            Some(_) | None => {}
        }
        let wait = if has_requests {
            SWEEP_INTERVAL
        } else {
            KEEP_ALIVE_INTERVAL
        };
        self.timer.as_mut().reset(Instant::now() + wait);
        Ok(())
    }
}

#[cfg(test)]
#[path = "connection_tests.rs"]
mod tests;
