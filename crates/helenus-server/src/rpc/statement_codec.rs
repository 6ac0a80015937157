//! Encodes and decodes forwarded statements: the client's own body behind a header ([`helenus_cql::frame::forwarded`]).

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use helenus_cql::ast;
use helenus_cql::error::CqlError;
use helenus_cql::frame::forwarded::{ForwardedRequest, PreparedText};
use helenus_cql::frame::request::{
    Batch, BatchKind, BatchStatement as BatchEntry, Execute, Query, StatementRef,
};
use helenus_cql::frame::response::PageMetadata;
use helenus_cql::frame::{self, Opcode, ProtocolVersion, QueryParameters, RequestMessage};
use helenus_query::analysis::BatchStatement;
use helenus_query::cluster::{Request, Source};
use helenus_query::engine::{Engine, Prepared};
use helenus_query::request::{ClientFrame, ClientState};
use helenus_query::response::Rows;

use super::envelope::envelope_of;

/// The way in which a request's prepared statements are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Texts {
    /// By their ids.
    Omitted,
    /// By their ids, with their texts for a node that does not know the ids.
    Sent,
}

/// Appends a statement for its owner: the header, and the client's body as it is.
pub(super) fn encode_statement(request: &Request<'_>, texts: Texts, is_traced: bool, out: &mut BytesMut) {
    let ClientFrame { parameters, body } = request.frame;
    let version = parameters.version;
    let is_for_client = body.is_some();
    let names_keyspace = version >= ProtocolVersion::V5 && parameters.keyspace.is_some();
    let header = ForwardedRequest {
        version,
        opcode: match request.source {
            Source::Text(_) => Opcode::Query,
            Source::Prepared(_) => Opcode::Execute,
            Source::Batch(..) => Opcode::Batch,
        },
        is_traced,
        masks: request.masks,
        is_for_client,
        schema_version: request.schema_version,
        token: request.token.unwrap_or_default(),
        timestamp_us: request.timestamp_us,
        // The time of a client is in its body.
        now_s: parameters.now_s.filter(|_| !is_for_client),
        keyspace: match request.source {
            Source::Prepared(_) => None,
            Source::Text(_) | Source::Batch(..) if names_keyspace => None,
            Source::Text(_) | Source::Batch(..) => request.keyspace.map(Cow::Borrowed),
        },
        result_id: known_result_id(request),
        texts: match texts {
            Texts::Omitted => Vec::new(),
            Texts::Sent => prepared_texts(request),
        },
        share: request.share.cloned(),
    };
    out.reserve(HEADER_LEN_USUAL + body.map_or(0, Bytes::len));
    header.encode(out);
    match body {
        Some(body) => out.extend_from_slice(body),
        None => frame_of(request).encode(version, out),
    }
}

/// Bytes of most headers.
const HEADER_LEN_USUAL: usize = 64;

/// Returns the id of the result's columns that a client before v5 knows and requests to omit. A client of v5 sends it itself.
fn known_result_id(request: &Request<'_>) -> Option<[u8; 16]> {
    let parameters = request.frame.parameters;
    let omits = parameters.skip_metadata && parameters.version < ProtocolVersion::V5;
    match request.source {
        Source::Prepared(prepared) if omits && !prepared.first_result.columns.is_empty() => {
            Some(prepared.first_result.id())
        }
        Source::Prepared(_) | Source::Text(_) | Source::Batch(..) => None,
    }
}

/// Returns the texts of the request's prepared statements, each once.
fn prepared_texts<'r>(request: &Request<'r>) -> Vec<PreparedText<'r>> {
    let text = |prepared: &'r Prepared| PreparedText {
        keyspace: prepared.keyspace.as_deref().map(Cow::Borrowed),
        text: Cow::Borrowed(prepared.query.as_ref()),
    };
    match request.source {
        Source::Text(_) => Vec::new(),
        Source::Prepared(prepared) => vec![text(prepared)],
        Source::Batch(_, statements) => {
            let mut seen = HashSet::new();
            let prepared = statements.iter().filter_map(|one| match one {
                BatchStatement::Prepared(prepared, _) => Some(prepared.as_ref()),
                BatchStatement::Text(..) => None,
            });
            prepared.filter(|one| seen.insert(one.id)).map(text).collect()
        }
    }
}

/// Returns the frame of a request that has none of a client.
fn frame_of(request: &Request<'_>) -> frame::Request {
    let parameters = QueryParameters {
        page_size: request.frame.parameters.page_size.filter(|size| *size > 0),
        ..request.frame.parameters.clone()
    };
    match request.source {
        Source::Text(text) => frame::Request::Query(Box::new(Query {
            query: text.to_owned(),
            parameters,
        })),
        Source::Prepared(prepared) => frame::Request::Execute(Box::new(Execute {
            id: Bytes::copy_from_slice(&prepared.id),
            result_metadata_id: None,
            parameters,
        })),
        Source::Batch(kind, statements) => frame::Request::Batch(Box::new(Batch {
            kind: match kind {
                ast::BatchKind::Logged => BatchKind::Logged,
                ast::BatchKind::Unlogged => BatchKind::Unlogged,
                ast::BatchKind::Counter => BatchKind::Counter,
            },
            statements: statements.iter().map(batch_entry).collect(),
            parameters,
        })),
    }
}

fn batch_entry(statement: &BatchStatement) -> BatchEntry {
    match statement {
        BatchStatement::Text(text, values) => BatchEntry {
            statement: StatementRef::Query(text.clone()),
            values: values.clone(),
        },
        BatchStatement::Prepared(prepared, values) => BatchEntry {
            statement: StatementRef::Prepared(Bytes::copy_from_slice(&prepared.id)),
            values: values.clone(),
        },
    }
}

/// A statement that this node runs as its owner.
pub(super) struct ReceivedStatement {
    pub header: ForwardedRequest<'static>,
    pub parameters: QueryParameters,
    /// The id of the result's columns that the client knows.
    known_id: Option<Bytes>,
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

    /// Returns the keyspace of unqualified names.
    pub fn keyspace(&self) -> Option<&str> {
        self.header
            .keyspace
            .as_deref()
            .or(self.parameters.keyspace.as_deref())
    }

    /// Decodes the result of [`encode_statement`]. Loads the schema of the sender, and prepares statements whose texts it has sent.
    ///
    /// # Errors
    /// [`CqlError::Unprepared`] for unknown ids. Cassandra's errors, for texts that are invalid in this node's schema.
    pub async fn decode(engine: &Arc<Engine>, message: Bytes) -> Result<ReceivedStatement, CqlError> {
        let (header, body) = ForwardedRequest::decode(message)?;
        ReceivedStatement::of(engine, header, body).await
    }

    /// Decodes a body, as [`ReceivedStatement::decode`].
    pub async fn of(
        engine: &Arc<Engine>,
        header: ForwardedRequest<'static>,
        body: Bytes,
    ) -> Result<ReceivedStatement, CqlError> {
        engine.load_schema(header.schema_version).await?;
        let mut known = KnownStatements {
            engine,
            sent: Vec::new(),
        };
        for PreparedText { keyspace, text } in &header.texts {
            let client = ClientState::default();
            let (prepared, _) = engine.prepare(&client, keyspace.as_deref(), text).await?;
            known.sent.push(prepared);
        }
        let request = RequestMessage::decode(envelope_of(header.version, header.opcode, body))?.request;
        let (what, known_id, parameters) = known.body(request)?;
        let parameters = QueryParameters {
            timestamp_us: header.timestamp_us.or(parameters.timestamp_us),
            now_s: header.now_s.or(parameters.now_s),
            ..parameters
        };
        let known_id = known_id.or_else(|| header.result_id.map(|id| Bytes::copy_from_slice(&id)));
        Ok(ReceivedStatement {
            header,
            parameters,
            known_id,
            what,
        })
    }

    /// Returns the metadata that is sent with rows, in the form in which the client gets it.
    pub fn page(&self, rows: &Rows) -> PageMetadata {
        let (version, skip) = (self.parameters.version, self.parameters.skip_metadata);
        let page = match &self.what {
            _ if !self.header.is_for_client => PageMetadata::default(),
            StatementBody::Text(_) => PageMetadata {
                skip,
                ..PageMetadata::default()
            },
            StatementBody::Prepared(prepared) if !prepared.first_result.columns.is_empty() => {
                PageMetadata::of_executed(&rows.metadata, self.known_id.as_deref(), skip, version)
            }
            StatementBody::Prepared(_) | StatementBody::Batch(..) => PageMetadata::default(),
        };
        PageMetadata {
            paging_state: rows.paging_state.clone(),
            ..page
        }
    }
}

/// The prepared statements of a request.
struct KnownStatements<'e> {
    engine: &'e Engine,
    /// The statements that came with their texts. The cache may have evicted them already.
    sent: Vec<Arc<Prepared>>,
}

impl KnownStatements<'_> {
    fn get(&self, id: &[u8]) -> Result<Arc<Prepared>, CqlError> {
        let sent = self.sent.iter().find(|one| one.id == *id);
        sent.map_or_else(|| self.engine.prepared(id), |sent| Ok(sent.clone()))
    }

    /// Returns the statements, the id of the result's columns that the client knows, and the parameters.
    fn body(
        &self,
        request: frame::Request,
    ) -> Result<(StatementBody, Option<Bytes>, QueryParameters), CqlError> {
        Ok(match request {
            frame::Request::Query(query) => (StatementBody::Text(query.query), None, query.parameters),
            frame::Request::Execute(execute) => {
                let prepared = StatementBody::Prepared(self.get(&execute.id)?);
                (prepared, execute.result_metadata_id, execute.parameters)
            }
            frame::Request::Batch(batch) => {
                let statements = batch.statements.into_iter().map(|one| self.batch_statement(one));
                let statements = statements.collect::<Result<Vec<_>, CqlError>>()?;
                let kind = match batch.kind {
                    BatchKind::Logged => ast::BatchKind::Logged,
                    BatchKind::Unlogged => ast::BatchKind::Unlogged,
                    BatchKind::Counter => ast::BatchKind::Counter,
                };
                (StatementBody::Batch(kind, statements), None, batch.parameters)
            }
            other => {
                let name = other.opcode().name();
                return Err(CqlError::Protocol(format!(
                    "{name} is not forwarded to another node"
                )));
            }
        })
    }

    fn batch_statement(&self, entry: BatchEntry) -> Result<BatchStatement, CqlError> {
        Ok(match entry.statement {
            StatementRef::Query(text) => BatchStatement::Text(text, entry.values),
            StatementRef::Prepared(id) => BatchStatement::Prepared(self.get(&id)?, entry.values),
        })
    }
}
