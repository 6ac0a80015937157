//! Handles requests of other nodes about rows.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use helenus_query::cluster::{PartAnswer, RemoteWrite};
use helenus_query::engine::Engine;
use helenus_query::failure::ExecutionError;
use helenus_query::limits::answers::Reservation;
use helenus_query::limits::scope;
use helenus_tablet::{Op, TokenRange};

use super::execute::execute;
use super::failure::Failure;
use super::messages::{RowRequest, encoded};
use super::proto::{
    GetRequest, GetResponse, PartRequest, PartResponse, Row, SearchListsRequest, SearchListsResponse,
    TransactRequest, TransactResponse, WriteRequest, WriteResponse,
};
use super::statement_codec::ReceivedStatement;
use super::{envelope, index_codec, part_codec, scoped, transaction_codec};
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

impl RequestHandler {
    pub fn count(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    async fn catch_up(&self, schema: u64) -> Result<(), helenus_cql::error::CqlError> {
        self.engine.load_schema(schema).await
    }

    async fn execute(&self, body: Bytes) -> BytesMut {
        self.count();
        if body.len() > LONG_REQUEST_LEN {
            scope::step_aside().await;
        }
        execute(&self.engine, body).await
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
        if request.statement.len() > LONG_REQUEST_LEN {
            scope::step_aside().await;
        }
        let received = ReceivedStatement::decode(&self.engine, request.statement).await?;
        let (source, keyspace) = (received.source(), received.keyspace());
        let masks = received.header.masks;
        self.engine
            .serve_part(source, keyspace, &received.parameters, masks, tokens)
            .await
    }

    async fn get(&self, request: GetRequest) -> Result<GetResponse, Failure> {
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
            Err(ExecutionError::Failed(error)) => Err(Failure::new(error.to_string())),
        }
    }

    async fn search_lists(&self, request: SearchListsRequest) -> Result<SearchListsResponse, Failure> {
        self.count();
        self.catch_up(request.schema_version)
            .await
            .map_err(|error| Failure::new(error.to_string()))?;
        match self
            .engine
            .serve_list_search(&index_codec::list_search(request))
            .await
        {
            Ok(lists) => Ok(SearchListsResponse {
                not_mine: false,
                lists,
            }),
            Err(ExecutionError::NotOwned) => Ok(SearchListsResponse {
                not_mine: true,
                lists: Vec::new(),
            }),
            Err(ExecutionError::Failed(error)) => Err(Failure::new(error.to_string())),
        }
    }

    async fn write(&self, request: WriteRequest) -> Result<WriteResponse, Failure> {
        self.count();
        let len: usize = request.operands.iter().map(|op| op.operand.len()).sum();
        if len > LONG_REQUEST_LEN {
            scope::step_aside().await;
        }
        self.catch_up(request.schema_version)
            .await
            .map_err(|error| Failure::new(error.to_string()))?;
        let op = |op: super::proto::Operand| Op {
            token: op.token,
            key: op.key,
            operand: op.operand,
        };
        let write = RemoteWrite {
            ops: request.operands.into_iter().map(op).collect(),
            durable: request.durable,
            maintains_indexes: request.maintain_indexes,
            is_uncaptured: request.uncaptured,
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
                error: envelope::answer(Err(error)),
            },
        })
    }

    async fn transact(&self, request: TransactRequest) -> Result<TransactResponse, Failure> {
        self.count();
        let step = transaction_codec::step(request).map_err(Failure::undone)?;
        Ok(transaction_codec::response(
            self.engine.serve_transaction(step).await,
        ))
    }

    /// Handles a request. The caller must run the future to its end. Setting `is_left` ends the request at its next checkpoint. Returns the
    /// body of the answer, and the memory that is reserved for it.
    pub async fn answer(
        &self,
        request: RowRequest,
        timeout: Duration,
        is_left: Arc<AtomicBool>,
    ) -> (Result<BytesMut, Failure>, Option<Reservation>) {
        let this = self.clone();
        let work = Box::pin(async move { this.work_on(request, timeout).await });
        match scoped::run(&self.long_requests, is_left, timeout, work).await {
            Ok(answer) => answer,
            Err(failure) => (Err(failure), None),
        }
    }

    async fn work_on(&self, request: RowRequest, timeout: Duration) -> Result<BytesMut, Failure> {
        Ok(match request {
            RowRequest::Execute(body) => self.execute(body).await,
            RowRequest::Get(request) => encoded(&in_time(timeout, self.get(request)).await?),
            RowRequest::SearchLists(request) => encoded(&in_time(timeout, self.search_lists(request)).await?),
            RowRequest::Write(request) => encoded(&self.write(request).await?),
            RowRequest::Transact(request) => encoded(&self.transact(request).await?),
            RowRequest::Part(request) => encoded(&self.part(request).await),
        })
    }
}

/// Runs a read for at most `timeout`.
pub(super) async fn in_time<T>(
    timeout: Duration,
    read: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let answer = tokio::time::timeout(timeout, read).await;
    answer.unwrap_or_else(|_| Err(Failure::new("no answer in time")))
}
