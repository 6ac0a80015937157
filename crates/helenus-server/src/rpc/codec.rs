//! Encodes and decodes the statements and results that nodes send to each other, as envelopes of the native protocol, version 5.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use helenus_cql::ast;
use helenus_cql::error::CqlError;
use helenus_cql::frame::request::{Batch, BatchKind, BatchStatement as BatchEntry, Query, StatementRef};
use helenus_cql::frame::response::{PageMetadata, QueryResult};
use helenus_cql::frame::{
    self, Decoder, Direction, OutputEncoder, ProtocolVersion, QueryParameters, Request, RequestMessage,
    ResponseMessage, ResultMetadata,
};
use helenus_query::analysis::BatchStatement;
use helenus_query::cluster::{Forwarded, ListSearch, Source, StaleEntries, StaleEntry};
use helenus_query::engine::{Engine, Prepared};
use helenus_query::request::{BoundValues, ClientState, Parts, Place, QueryOptions};
use helenus_query::response::{Outcome, Response, Rows};

use super::proto::{self, ExecuteRequest, Partitions, RemoveStaleRequest, SearchListsRequest, Share};

const VERSION: ProtocolVersion = ProtocolVersion::V5;

/// Encodes stale index entries for the owner of their rows.
pub(super) fn stale_request(stale: &StaleEntries) -> RemoveStaleRequest {
    let entry = |entry: &StaleEntry| proto::StaleEntry {
        partition_key: entry.partition_key().clone(),
        clustering: entry.clustering.clone(),
        written_us: entry.written_us,
    };
    RemoveStaleRequest {
        index: stale.index,
        value: stale.value.clone(),
        entries: stale.entries.iter().map(entry).collect(),
    }
}

/// Decodes stale index entries.
pub(super) fn stale_entries(request: RemoveStaleRequest) -> StaleEntries {
    let entry =
        |entry: proto::StaleEntry| StaleEntry::new(entry.partition_key, entry.clustering, entry.written_us);
    StaleEntries {
        index: request.index,
        value: request.value,
        entries: request.entries.into_iter().map(entry).collect(),
    }
}

/// Encodes a search of posting lists for their owner.
pub(super) fn list_search_request(search: &ListSearch) -> SearchListsRequest {
    SearchListsRequest {
        index: search.index,
        lists: search.lists.clone(),
        vector: search
            .vector
            .iter()
            .flat_map(|component| component.to_le_bytes())
            .collect(),
        schema_version: search.schema_version,
    }
}

/// Decodes a search of posting lists.
pub(super) fn list_search(request: SearchListsRequest) -> ListSearch {
    let (components, _) = request.vector.as_chunks();
    ListSearch {
        index: request.index,
        lists: request.lists,
        vector: components
            .iter()
            .map(|component| f32::from_le_bytes(*component))
            .collect(),
        schema_version: request.schema_version,
    }
}

/// Encodes a statement for its owner.
///
/// `known` are the columns of its result as this node knows them. `None` if the owner must send them.
pub(super) fn statement(
    forwarded: &Forwarded<'_>,
    known: Option<&ResultMetadata>,
    is_traced: bool,
) -> ExecuteRequest {
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
    OutputEncoder::unstarted().request(VERSION, 0, &RequestMessage::new(request), &mut message);
    ExecuteRequest {
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
    }
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

    /// Decodes the result of [`statement`]. Prepares those statements that are prepared at the sender.
    ///
    /// # Errors
    /// Cassandra's errors, for statements that are invalid in this node's schema.
    pub async fn read(engine: &Engine, request: ExecuteRequest) -> Result<ReceivedStatement, CqlError> {
        let place = match &request.share {
            Some(share) => Place::Part(parts(share)),
            None => Place::Owner,
        };
        let envelope = envelope(&request.message, Direction::Request)?;
        let mut prepared = request.is_prepared.iter().copied();
        let mut is_prepared = move || prepared.next().unwrap_or(false);
        let (what, keyspace, parameters) = match RequestMessage::decode(envelope)?.request {
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

fn envelope(bytes: &Bytes, direction: Direction) -> Result<frame::Envelope, CqlError> {
    let mut input = BytesMut::from(bytes.as_ref());
    let mut decoder = Decoder::new(direction, frame::MAX_BODY_LEN);
    match decoder.decode(&mut input) {
        Ok(Some(envelope)) => Ok(envelope),
        Ok(None) => Err(CqlError::Protocol(
            "a message between nodes is cut off".to_owned(),
        )),
        Err(error) => Err(error.error),
    }
}

/// Encodes a result for the sender. Leaves out the columns if their id is `known_id`.
pub(super) fn answer(result: Result<Outcome, CqlError>, known_id: &[u8]) -> Bytes {
    let message = match result {
        Ok(outcome) => ResponseMessage {
            tracing_id: None,
            warnings: outcome.warnings,
            custom_payload: None,
            response: frame::Response::Result(query_result(outcome.response, known_id)),
        },
        Err(error) => ResponseMessage::error(error),
    };
    let mut out = BytesMut::new();
    OutputEncoder::unstarted().response(VERSION, 0, &message, &mut out);
    out.freeze()
}

fn query_result(response: Response, known_id: &[u8]) -> QueryResult {
    match response {
        Response::Void => QueryResult::Void,
        Response::SetKeyspace(keyspace) => QueryResult::SetKeyspace(keyspace),
        Response::SchemaChange(change) => QueryResult::SchemaChange(change),
        Response::Rows(rows) => {
            let skip = !known_id.is_empty() && rows.metadata.id() == known_id;
            let mut sent = frame::Rows::new(rows.metadata, rows.content);
            sent.page = PageMetadata {
                skip,
                paging_state: rows.paging_state,
                ..PageMetadata::default()
            };
            QueryResult::Rows(sent)
        }
    }
}

/// Decodes the result of [`answer`]. `known` are the columns whose id was in the request.
///
/// # Errors
/// The error that the other node sent, or an error that the result is invalid.
pub(super) fn outcome(message: &Bytes, known: Option<Arc<ResultMetadata>>) -> Result<Outcome, CqlError> {
    let message = ResponseMessage::decode(envelope(message, Direction::Response)?)?;
    let response = match message.response {
        frame::Response::Error(error) => return Err(error.warned(message.warnings)),
        frame::Response::Result(QueryResult::Void) => Response::Void,
        frame::Response::Result(QueryResult::SetKeyspace(keyspace)) => Response::SetKeyspace(keyspace),
        frame::Response::Result(QueryResult::SchemaChange(change)) => Response::SchemaChange(change),
        frame::Response::Result(QueryResult::Rows(rows)) => Response::Rows(Rows {
            metadata: match known {
                Some(known) if rows.page.skip && known.columns.len() == rows.content.column_count() => known,
                _ => rows.metadata,
            },
            content: rows.content,
            paging_state: rows.page.paging_state,
        }),
        other => {
            let name = other.opcode().name();
            return Err(CqlError::Server(format!("a node has answered with {name}")));
        }
    };
    Ok(response.with(message.warnings))
}
