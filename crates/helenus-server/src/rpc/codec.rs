//! Encodes and decodes the statements that nodes forward to each other, and the answers to them.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use helenus_cql::ast;
use helenus_cql::error::CqlError;
use helenus_cql::frame::request::{Batch, BatchKind, BatchStatement as BatchEntry, Query, StatementRef};
use helenus_cql::frame::{
    Direction, OutputEncoder, QueryParameters, Request, RequestMessage, ResultMetadata,
};
use helenus_query::analysis::BatchStatement;
use helenus_query::cluster::{Forwarded, RemoteError, Source, Versions};
use helenus_query::engine::{Engine, Prepared};
use helenus_query::failure::ExecutionError;
use helenus_query::request::{BoundValues, ClientState, Parts, Place, QueryOptions};
use helenus_query::response::Outcome;
use prost::Message;

use super::envelope;
use super::proto::{self, ExecuteRequest, ExecuteResponse, Partitions, Share};

/// Encodes a statement for its owner: the body of a frame of kind Execute.
///
/// `known` are the columns of its result as this node knows them. `None` if the owner must send them.
pub(super) fn encode_statement(
    forwarded: &Forwarded<'_>,
    known: Option<&ResultMetadata>,
    is_traced: bool,
    out: &mut BytesMut,
) {
    let options = forwarded.options;
    let parameters = parameters(options, forwarded.keyspace);
    let query = |text: &str| {
        let query = text.to_owned();
        Request::Query(Box::new(Query {
            query,
            parameters: parameters.clone(),
        }))
    };
    let prepared_id = match forwarded.source {
        Source::Prepared(prepared) => Bytes::copy_from_slice(&prepared.id),
        Source::Text(_) | Source::Batch(..) => Bytes::new(),
    };
    let result_metadata_id = known.map_or_else(Bytes::new, |known| Bytes::copy_from_slice(&known.id()));
    let (request, is_prepared) = match forwarded.source {
        Source::Text(text) => (query(text), vec![false]),
        Source::Prepared(prepared) => (query(&prepared.query), vec![true]),
        Source::Batch(kind, statements) => {
            let is_prepared = |one: &BatchStatement| matches!(one, BatchStatement::Prepared(..));
            let batch = Batch {
                kind: match kind {
                    ast::BatchKind::Logged => BatchKind::Logged,
                    ast::BatchKind::Unlogged => BatchKind::Unlogged,
                    ast::BatchKind::Counter => BatchKind::Counter,
                },
                statements: statements.iter().map(batch_entry).collect(),
                parameters,
            };
            let is_prepared = statements.iter().map(is_prepared).collect();
            (Request::Batch(Box::new(batch)), is_prepared)
        }
    };
    let mut message = BytesMut::new();
    OutputEncoder::unstarted().request(envelope::VERSION, 0, &RequestMessage::new(request), &mut message);
    let request = ExecuteRequest {
        message: message.freeze(),
        is_prepared,
        protocol_version: u32::from(options.protocol_version),
        share: match &options.place {
            Place::Part(parts) => Some(share(parts)),
            Place::Coordinator | Place::Owner => None,
        },
        schema_version: forwarded.schema_version,
        is_traced,
        now_s: options.now_s,
        masks: options.masks,
        prepared_id,
        result_metadata_id,
    };
    // Encoding fails only if a buffer is full, and this buffer grows.
    let _ = request.encode(out);
}

/// Returns the columns of the result as this node knows them. `None` if the statement is not prepared, or does not always return rows.
pub(super) fn known_result(forwarded: &Forwarded<'_>) -> Option<Arc<ResultMetadata>> {
    match forwarded.source {
        Source::Prepared(prepared) => prepared.result(),
        Source::Text(_) | Source::Batch(..) => None,
    }
}

fn batch_entry(statement: &BatchStatement) -> BatchEntry {
    let (text, values) = match statement {
        BatchStatement::Text(text, values) => (text.as_str(), values),
        BatchStatement::Prepared(prepared, values) => (prepared.query.as_ref(), values),
    };
    BatchEntry {
        statement: StatementRef::Query(text.to_owned()),
        values: values.clone(),
    }
}

fn share(parts: &Parts) -> Share {
    let partitions = |keys: &Vec<Bytes>| Partitions { keys: keys.clone() };
    Share {
        modifications: parts.iter().map(partitions).collect(),
    }
}

fn parameters(options: &QueryOptions, keyspace: Option<&str>) -> QueryParameters {
    let (names, values) = match &options.values {
        BoundValues::None => (None, Vec::new()),
        BoundValues::Positional(values) => (None, values.clone()),
        BoundValues::Named(values) => {
            let (names, values) = values.iter().cloned().unzip();
            (Some(names), values)
        }
    };
    QueryParameters {
        consistency: options.consistency,
        values,
        names,
        skip_metadata: false,
        page_size: options.page_size.filter(|size| *size > 0),
        paging_state: options.paging_state.clone(),
        serial_consistency: options.serial_consistency,
        default_timestamp: options.timestamp_us,
        keyspace: keyspace.map(str::to_owned),
        now_in_seconds: None,
    }
}

/// A statement that this node runs as its owner.
pub(super) struct ReceivedStatement {
    pub client: ClientState,
    pub options: QueryOptions,
    /// True if the sender records a trace.
    pub is_traced: bool,
    /// Id of the columns of the result that the sender knows. Empty if it knows none.
    pub known_result: Bytes,
    what: StatementBody,
}

enum StatementBody {
    Text(String),
    Prepared(Arc<Prepared>),
    Batch(ast::BatchKind, Vec<BatchStatement>),
}

impl ReceivedStatement {
    pub fn source(&self) -> Source<'_> {
        match &self.what {
            StatementBody::Text(text) => Source::Text(text),
            StatementBody::Prepared(prepared) => Source::Prepared(prepared),
            StatementBody::Batch(kind, statements) => Source::Batch(*kind, statements),
        }
    }

    /// Decodes the result of [`encode_statement`]. Loads the schema if the sender's is newer, and prepares those statements that are
    /// prepared at the sender.
    ///
    /// # Errors
    /// Cassandra's errors, for statements that are invalid in this node's schema.
    pub async fn decode(engine: &Arc<Engine>, body: Bytes) -> Result<ReceivedStatement, CqlError> {
        let request = ExecuteRequest::decode(body).map_err(|error| {
            CqlError::Protocol(format!("a statement of another node is invalid: {error}"))
        })?;
        let versions = Versions {
            schema: request.schema_version,
            headers: 0,
        };
        engine.load(versions).await?;
        let place = match &request.share {
            Some(share) => Place::Part(parts(share)),
            None => Place::Owner,
        };
        let message = envelope::envelope(&request.message, Direction::Request)?;
        let mut prepared = request.is_prepared.iter().copied();
        let mut is_prepared = move || prepared.next().unwrap_or(false);
        let (what, keyspace, parameters) = match RequestMessage::decode(message)?.request {
            Request::Query(query) => {
                let Query {
                    query,
                    mut parameters,
                } = *query;
                let keyspace = parameters.keyspace.take();
                let what = match is_prepared() {
                    true => StatementBody::Prepared(match known(engine, &request.prepared_id) {
                        Some(known) => known,
                        None => {
                            engine
                                .prepare(&ClientState::default(), keyspace.as_deref(), &query)
                                .await?
                                .0
                        }
                    }),
                    false => StatementBody::Text(query),
                };
                (what, keyspace, parameters)
            }
            Request::Batch(batch) => {
                let Batch {
                    kind,
                    statements,
                    mut parameters,
                } = *batch;
                let keyspace = parameters.keyspace.take();
                let mut read = Vec::with_capacity(statements.len());
                for BatchEntry { statement, values } in statements {
                    let StatementRef::Query(text) = statement else {
                        return Err(CqlError::Protocol("statements travel as text".to_owned()));
                    };
                    read.push(match is_prepared() {
                        true => BatchStatement::Prepared(
                            engine
                                .prepare(&ClientState::default(), keyspace.as_deref(), &text)
                                .await?
                                .0,
                            values,
                        ),
                        false => BatchStatement::Text(text, values),
                    });
                }
                let kind = match kind {
                    BatchKind::Logged => ast::BatchKind::Logged,
                    BatchKind::Unlogged => ast::BatchKind::Unlogged,
                    BatchKind::Counter => ast::BatchKind::Counter,
                };
                (StatementBody::Batch(kind, read), keyspace, parameters)
            }
            other => {
                let name = other.opcode().name();
                return Err(CqlError::Protocol(format!(
                    "internal error: a {name} statement cannot be forwarded to another node"
                )));
            }
        };
        let options = QueryOptions {
            consistency: parameters.consistency,
            serial_consistency: parameters.serial_consistency,
            page_size: parameters.page_size,
            paging_state: parameters.paging_state,
            timestamp_us: parameters.default_timestamp,
            now_s: request.now_s,
            values: match parameters.names {
                Some(names) => BoundValues::Named(names.into_iter().zip(parameters.values).collect()),
                None if parameters.values.is_empty() => BoundValues::None,
                None => BoundValues::Positional(parameters.values),
            },
            protocol_version: u8::try_from(request.protocol_version).unwrap_or(u8::MAX),
            keyspace: None,
            place,
            masks: request.masks,
        };
        Ok(ReceivedStatement {
            // The user is not needed: the node that received the client's request has checked the permissions.
            client: ClientState {
                keyspace,
                ..ClientState::default()
            },
            options,
            is_traced: request.is_traced,
            known_result: request.result_metadata_id,
            what,
        })
    }
}

/// Returns the prepared statement with this id. `None` if this node does not know it, or it is no longer valid.
fn known(engine: &Engine, id: &[u8]) -> Option<Arc<Prepared>> {
    let prepared = engine.prepared(id).ok()?;
    engine.current_plan(&prepared).is_ok().then_some(prepared)
}

fn parts(share: &Share) -> Parts {
    share.modifications.iter().map(|part| part.keys.clone()).collect()
}

/// A step of a trace that another node has recorded.
pub(super) struct RemoteStep {
    pub activity: String,
    /// Time since the node began to execute the statement.
    pub elapsed: Duration,
}

/// The answer to a statement.
pub(super) struct ExecuteAnswer {
    pub outcome: Result<Outcome, RemoteError>,
    /// Empty unless the statement is traced.
    pub steps: Vec<RemoteStep>,
}

/// Encodes the answer to a statement. Leaves out the columns of rows if their id is `known_id`.
pub(super) fn encode_execute_answer(
    result: Result<Outcome, ExecutionError>,
    known_id: &[u8],
    steps: Vec<RemoteStep>,
    out: &mut BytesMut,
) {
    let step = |step: RemoteStep| proto::Step {
        activity: step.activity,
        elapsed_us: u64::try_from(step.elapsed.as_micros()).unwrap_or(u64::MAX),
    };
    let mut response = ExecuteResponse {
        steps: steps.into_iter().map(step).collect(),
        ..ExecuteResponse::default()
    };
    match result {
        Ok(outcome) => {
            response.applied = outcome.is_applied;
            response.message = envelope::answer(Ok(outcome), known_id);
        }
        Err(ExecutionError::Failed(error)) => response.message = envelope::answer(Err(error), known_id),
        Err(ExecutionError::NotOwned) => response.not_mine = true,
    }
    // Encoding fails only if a buffer is full, and this buffer grows.
    let _ = response.encode(out);
}

/// Decodes the result of [`encode_execute_answer`]. `known` are the columns whose id was in the request.
pub(super) fn decode_execute_answer(body: Bytes, known: Option<Arc<ResultMetadata>>) -> ExecuteAnswer {
    let response = match ExecuteResponse::decode(body) {
        Ok(response) => response,
        Err(error) => {
            return ExecuteAnswer {
                outcome: Err(RemoteError::NoAnswer(format!(
                    "the node's answer is invalid: {error}"
                ))),
                steps: Vec::new(),
            };
        }
    };
    let received = |step: proto::Step| RemoteStep {
        activity: step.activity,
        elapsed: Duration::from_micros(step.elapsed_us),
    };
    let outcome = match response.not_mine {
        true => Err(RemoteError::NotOwned),
        false => match envelope::outcome(&response.message, known) {
            Ok(outcome) => Ok(Outcome {
                is_applied: response.applied,
                ..outcome
            }),
            Err(error) => Err(RemoteError::Failed(error)),
        },
    };
    ExecuteAnswer {
        outcome,
        steps: response.steps.into_iter().map(received).collect(),
    }
}
