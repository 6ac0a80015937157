//! Handles requests from other nodes: separate calls, and requests of a stream ([`super::request_stream`]). The protocol calls them
//! questions.

use std::collections::HashMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::FutureExt;
use helenus_query::cluster::{PartAnswer, RemoteWrite, Versions};
use helenus_query::engine::Engine;
use helenus_query::failure::ExecutionError;
use helenus_query::limits::answers::Reservation;
use helenus_query::limits::scope;
use helenus_query::measurement::RequestMeasurement;
use helenus_query::metrics::internode::InboundTraffic;
use helenus_query::trace::TraceRecorder;
use helenus_tablet::{Op, TokenRange};
use parking_lot::Mutex;
use prost::Message;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio_stream::Stream;
use tonic::{Status, Streaming};

use super::OPEN_MAX;
use super::codec::{self, ReceivedStatement};
use super::message_batching::next_batch;
use super::part_codec;
use super::proto::part_response::Rows;
use super::proto::{
    Answer, Answers, ExecuteRequest, ExecuteResponse, GetRequest, GetResponse, PartRequest, PartResponse,
    Question, Questions, Row, SearchListsRequest, SearchListsResponse, Step, WriteRequest, WriteResponse,
    answer, question,
};
use super::{request_stream, scoped};
use crate::threads::long_requests::LongRequestPool;

/// Bytes of a statement or of operands above which reading them takes about a millisecond.
const LONG_REQUEST_LEN: usize = 32 << 10;

/// Handles requests with the engine.
#[derive(Clone)]
pub(super) struct RequestHandler {
    pub engine: Arc<Engine>,
    /// The pool of requests that compute for long.
    pub long_requests: Arc<LongRequestPool>,
    /// Number of requests so far.
    pub calls: Arc<AtomicU64>,
}

/// Runs `work` to its end, even if the caller disconnects.
pub(super) async fn to_the_end<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, Status> {
    tokio::spawn(work).await.map_err(|_| scoped::broken())
}

impl RequestHandler {
    pub fn count(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    async fn catch_up(&self, schema: u64) -> Result<(), helenus_cql::error::CqlError> {
        let versions = Versions { schema, headers: 0 };
        self.engine.load(versions).await.map(|_| ())
    }

    async fn execute(&self, request: ExecuteRequest) -> ExecuteResponse {
        self.count();
        if request.message.len() > LONG_REQUEST_LEN {
            scope::step_aside().await;
        }
        let is_traced = request.is_traced;
        if let Err(error) = self.catch_up(request.schema_version).await {
            return failed(error);
        }
        let known = request.result_metadata_id.clone();
        let run = async {
            let received = ReceivedStatement::read(&self.engine, request).await?;
            let ReceivedStatement { client, options, .. } = &received;
            let source = received.source();
            self.engine.serve_statement(client, source, options).await
        };
        let (result, steps) = measured(run, is_traced).await;
        match result {
            Ok(outcome) => ExecuteResponse {
                not_mine: false,
                applied: outcome.is_applied,
                message: codec::answer(Ok(outcome), &known),
                steps,
            },
            Err(ExecutionError::Failed(error)) => failed(error),
            Err(ExecutionError::NotOwned) => ExecuteResponse {
                not_mine: true,
                ..ExecuteResponse::default()
            },
        }
    }

    async fn part(&self, request: PartRequest) -> PartResponse {
        self.count();
        part_codec::response(self.read_part(request).await)
    }

    async fn read_part(&self, request: PartRequest) -> Result<PartAnswer, ExecutionError> {
        let tokens = TokenRange {
            first: request.first_token,
            last: request.last_token,
        };
        let statement = request.statement.unwrap_or_default();
        if statement.message.len() > LONG_REQUEST_LEN {
            scope::step_aside().await;
        }
        self.catch_up(statement.schema_version).await?;
        let received = ReceivedStatement::read(&self.engine, statement).await?;
        let ReceivedStatement { client, options, .. } = &received;
        let source = received.source();
        self.engine.serve_part(client, source, options, tokens).await
    }

    async fn get(&self, request: GetRequest) -> Result<GetResponse, Status> {
        self.count();
        let keys = request.keys.into_iter().map(|key| (key.token, key.key));
        let keys: Vec<(i64, Bytes)> = keys.collect();
        match self.engine.serve_get(&keys).await {
            Ok(rows) => Ok(GetResponse {
                not_mine: false,
                rows: rows.into_iter().map(|value| Row { value }).collect(),
            }),
            Err(ExecutionError::NotOwned) => Ok(GetResponse {
                not_mine: true,
                rows: Vec::new(),
            }),
            Err(ExecutionError::Failed(error)) => Err(Status::internal(error.to_string())),
        }
    }

    async fn search_lists(&self, request: SearchListsRequest) -> Result<SearchListsResponse, Status> {
        self.count();
        self.catch_up(request.schema_version)
            .await
            .map_err(|error| Status::internal(error.to_string()))?;
        match self.engine.serve_list_search(&codec::list_search(request)).await {
            Ok(lists) => Ok(SearchListsResponse {
                not_mine: false,
                lists,
            }),
            Err(ExecutionError::NotOwned) => Ok(SearchListsResponse {
                not_mine: true,
                lists: Vec::new(),
            }),
            Err(ExecutionError::Failed(error)) => Err(Status::internal(error.to_string())),
        }
    }

    async fn write(&self, request: WriteRequest) -> Result<WriteResponse, Status> {
        self.count();
        let len: usize = request.operands.iter().map(|op| op.operand.len()).sum();
        if len > LONG_REQUEST_LEN {
            scope::step_aside().await;
        }
        self.catch_up(request.schema_version)
            .await
            .map_err(|error| Status::internal(error.to_string()))?;
        let op = |op: super::proto::Operand| Op {
            token: op.token,
            key: op.key,
            operand: op.operand,
        };
        let write = RemoteWrite {
            ops: request.operands.into_iter().map(op).collect(),
            durable: request.durable,
            maintains_indexes: request.maintain_indexes,
            schema_version: request.schema_version,
        };
        Ok(match self.engine.serve_write(write).await {
            Ok(()) => WriteResponse::default(),
            Err(ExecutionError::NotOwned) => WriteResponse {
                not_mine: true,
                error: Bytes::new(),
            },
            Err(ExecutionError::Failed(error)) => WriteResponse {
                not_mine: false,
                error: codec::answer(Err(error), &[]),
            },
        })
    }

    /// Handles a request. The caller must run the future to its end, in a task of its own. Setting `is_left` ends the request at its next
    /// checkpoint.
    pub async fn answer(
        &self,
        what: Option<question::What>,
        timeout: Duration,
        is_left: Arc<AtomicBool>,
    ) -> (answer::What, Option<Reservation>) {
        let work = Box::pin(self.clone().work_on(what, timeout));
        match scoped::run(&self.long_requests, is_left, timeout, work).await {
            Ok(answer) => answer,
            Err(status) => (answer::What::Failure(status.to_string()), None),
        }
    }

    async fn work_on(self, what: Option<question::What>, timeout: Duration) -> answer::What {
        let answer = match what {
            Some(question::What::Execute(request)) => Ok(answer::What::Execute(self.execute(request).await)),
            Some(question::What::Get(request)) => {
                let answer = in_time(timeout, self.get(request)).await;
                answer.map(answer::What::Get)
            }
            Some(question::What::SearchLists(request)) => {
                let answer = in_time(timeout, self.search_lists(request)).await;
                answer.map(answer::What::SearchLists)
            }
            Some(question::What::Write(request)) => self.write(request).await.map(answer::What::Write),
            Some(question::What::Part(request)) => Ok(answer::What::Part(self.part(request).await)),
            None => Err(Status::unimplemented("a request of a newer version of Helenus")),
        };
        answer.unwrap_or_else(|status| answer::What::Failure(status.to_string()))
    }

    /// Handles the requests of a stream until the stream ends, or until `stopping` is true. Requests received before that run to their end.
    pub async fn exchange(
        self,
        mut questions: Streaming<Questions>,
        ready: mpsc::UnboundedSender<ReadyReply>,
        mut stopping: watch::Receiver<bool>,
        traffic: Arc<InboundTraffic>,
    ) {
        let open = Arc::new(Semaphore::new(OPEN_MAX));
        let running = Running::default();
        loop {
            let group = tokio::select! {
                group = questions.message() => group,
                _ = stopping.wait_for(|stopping| *stopping) => return,
            };
            let Ok(Some(group)) = group else {
                return running.leave_all();
            };
            group.given_up.iter().for_each(|id| running.leave(*id));
            for Question { id, timeout_ms, what } in group.questions {
                let bytes = what.as_ref().map_or(0, request_stream::size);
                traffic.received.add(bytes);
                // At the limit, the next request waits until another one is answered.
                let Ok(permit) = open.clone().acquire_owned().await else {
                    return;
                };
                let replying = ReplyGuard {
                    id,
                    ready: ready.clone(),
                    what: None,
                    permit: Some(permit),
                    reserved: None,
                };
                let is_left = Arc::<AtomicBool>::default();
                let (this, left) = (self.clone(), is_left.clone());
                let traffic = traffic.clone();
                let answering = async move {
                    let timeout = Duration::from_millis(timeout_ms.into());
                    let (what, reserved) = this.answer(what, timeout, left).await;
                    traffic.ended(bytes, is_answer(&what));
                    replying.reply(what, reserved);
                };
                // The panic hook logs a panic, and the guard sends the response.
                let mut answering = Box::pin(AssertUnwindSafe(answering).catch_unwind());
                // Most requests are answered from memory in the first poll. The others continue in tasks of their own.
                if futures::poll!(answering.as_mut()).is_pending() {
                    let guard = running.begin(id, is_left);
                    tokio::spawn(async move {
                        let _ = answering.await;
                        drop(guard);
                    });
                }
            }
        }
    }
}

/// Runs a read for at most `timeout`.
async fn in_time<T>(timeout: Duration, read: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
    let answer = tokio::time::timeout(timeout, read).await;
    answer.unwrap_or_else(|_| Err(Status::deadline_exceeded("no answer in time")))
}

/// The running requests of a stream, each with the flag that ends it.
#[derive(Clone, Default)]
struct Running(Arc<Mutex<HashMap<u64, Arc<AtomicBool>>>>);

impl Running {
    fn begin(&self, id: u64, is_left: Arc<AtomicBool>) -> RequestGuard {
        self.0.lock().insert(id, is_left);
        RequestGuard {
            id,
            running: self.clone(),
        }
    }

    /// Records that the caller no longer waits for the response.
    fn leave(&self, id: u64) {
        if let Some(is_left) = self.0.lock().get(&id) {
            is_left.store(true, Ordering::Relaxed);
        }
    }

    fn leave_all(&self) {
        for is_left in self.0.lock().values() {
            is_left.store(true, Ordering::Relaxed);
        }
    }
}

/// A running request. Dropping this removes it from the list.
struct RequestGuard {
    id: u64,
    running: Running,
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.running.0.lock().remove(&self.id);
    }
}

/// A response that waits to be sent.
pub(super) struct ReadyReply {
    answer: Answer,
    /// Memory reserved for the response.
    _reserved: Option<Reservation>,
    _permit: Option<OwnedSemaphorePermit>,
}

/// Sends the response when it is dropped: a failure if there is no result, as after a panic.
struct ReplyGuard {
    id: u64,
    ready: mpsc::UnboundedSender<ReadyReply>,
    what: Option<answer::What>,
    permit: Option<OwnedSemaphorePermit>,
    reserved: Option<Reservation>,
}

impl ReplyGuard {
    fn reply(mut self, what: answer::What, reserved: Option<Reservation>) {
        self.what = Some(what);
        self.reserved = reserved;
    }
}

impl Drop for ReplyGuard {
    fn drop(&mut self) {
        let what = self.what.take();
        let broken = || answer::What::Failure(scoped::broken().to_string());
        let answer = Answer {
            id: self.id,
            what: Some(what.unwrap_or_else(broken)),
        };
        // The error is ignored, because the caller may have disconnected.
        let _ = self.ready.send(ReadyReply {
            answer,
            _reserved: self.reserved.take(),
            _permit: self.permit.take(),
        });
    }
}

/// The responses of a stream. Those that are ready at the same time share a message.
pub(super) struct Outgoing(pub mpsc::UnboundedReceiver<ReadyReply>);

impl Stream for Outgoing {
    type Item = Result<Answers, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Answers, Status>>> {
        let mut first = match self.0.poll_recv(cx) {
            Poll::Ready(Some(first)) => Some(first),
            Poll::Ready(None) => return Poll::Ready(None),
            Poll::Pending => return Poll::Pending,
        };
        let next = || {
            first
                .take()
                .or_else(|| self.0.try_recv().ok())
                .map(|ready| ready.answer)
        };
        let answers = next_batch(next, size);
        Poll::Ready(Some(Ok(Answers { answers })))
    }
}

/// Returns false if this node has failed. An error of the client's own is an answer.
pub(super) fn is_answer(what: &answer::What) -> bool {
    !matches!(what, answer::What::Failure(_))
}

/// Returns the approximate bytes of a response.
fn size(answer: &Answer) -> usize {
    match &answer.what {
        Some(answer::What::Execute(execute)) => execute.message.len(),
        Some(answer::What::Get(get)) => get
            .rows
            .iter()
            .filter_map(|row| row.value.as_ref())
            .map(Bytes::len)
            .sum(),
        Some(answer::What::SearchLists(found)) => found.lists.iter().map(Bytes::len).sum(),
        Some(answer::What::Part(part)) => part_size(part),
        Some(answer::What::Write(_) | answer::What::Failure(_)) | None => 0,
    }
}

fn part_size(part: &PartResponse) -> usize {
    match &part.rows {
        Some(Rows::Group(group)) => group.encoded_len(),
        Some(Rows::Page(page)) => page.rows.len(),
        Some(Rows::Counted(_)) | None => part.error.len(),
    }
}

fn failed(error: helenus_cql::error::CqlError) -> ExecuteResponse {
    ExecuteResponse {
        message: codec::answer(Err(error), &[]),
        ..ExecuteResponse::default()
    }
}

/// Runs a request with a measurement of its own. Returns its result, and the recorded steps of its trace if it `is_traced`.
async fn measured<T>(run: impl Future<Output = T>, is_traced: bool) -> (T, Vec<Step>) {
    let mut measurement = RequestMeasurement::default();
    let recording = is_traced.then(|| (Instant::now(), TraceRecorder::begin(&mut measurement.store)));
    let mut run = pin!(run);
    let result = std::future::poll_fn(|cx| {
        measurement.swap();
        let polled = run.as_mut().poll(cx);
        measurement.swap();
        polled
    })
    .await;
    let Some((began, recording)) = recording else {
        return (result, Vec::new());
    };
    let step = |step: helenus_query::trace::Step| {
        let elapsed = step.at.saturating_duration_since(began);
        Step {
            activity: step.what.into_owned(),
            elapsed_us: u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX),
        }
    };
    (result, recording.finish().into_iter().map(step).collect())
}
