//! Connections to the nodes of a cluster, with prepared statements, and further tries after failures that pass.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Result, anyhow, bail};
use bytes::Bytes;
use helenus_cql::error::{Consistency, CqlError};
use helenus_cql::frame::request::Execute;
use helenus_cql::frame::response::{QueryResult, Response, Rows};
use helenus_cql::frame::{BoundValue, BoundValues, QueryParameters, Request};

use crate::shell::client::{Client, Login, Server, StatementError, in_words, interrupted};
use crate::token_bucket::TokenBucket;

/// Rows of a page. The server makes a page shorter if its rows are large.
const PAGE_ROWS: i32 = 500;
/// Tries of a request before the session gives up.
const TRIES_MAX: u32 = 8;
const BACKOFF_START: Duration = Duration::from_millis(100);
/// Maximum time of an answer. A node without a network answers nothing, and closes no connection.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(120);

/// The nodes of a cluster that answer requests.
#[derive(Clone)]
pub struct Nodes {
    /// Name of the cluster in errors, such as `side a`.
    pub name: &'static str,
    pub servers: Vec<Server>,
    pub login: Login,
    pub consistency: Consistency,
}

/// A connection to one of the nodes, with its prepared statements. After a failure, the session connects to the next node.
pub struct NodeSession {
    nodes: Nodes,
    /// Number of connections so far, by which the next server is chosen.
    connections: usize,
    connection: Option<Connection>,
    /// The limit of rows a second. `None` if there is none.
    pace: Option<(TokenBucket, Instant)>,
}

struct Connection {
    client: Client,
    /// Ids of prepared statements.
    prepared: HashMap<String, Bytes>,
}

/// A statement with its values.
#[derive(Clone, Debug)]
pub struct Execution {
    pub statement: Arc<str>,
    pub values: Vec<BoundValue>,
}

impl NodeSession {
    /// Returns a session. `number` chooses the first server, so that sessions share the servers.
    pub fn new(nodes: &Nodes, number: usize, rows_per_s: Option<f64>) -> NodeSession {
        NodeSession {
            nodes: nodes.clone(),
            connections: number,
            connection: None,
            pace: rows_per_s.map(|rows_per_s| (TokenBucket::new(rows_per_s), Instant::now())),
        }
    }

    /// Returns the first row of a statement's result, with the time of the answer in seconds since 1970. `None` if there is no row.
    pub fn first_row(
        &mut self,
        statement: &str,
        values: &[Bytes],
    ) -> Result<Option<(Vec<Option<Bytes>>, i64)>> {
        let rows = self.page(statement, values, None)?;
        Ok(rows.content.iter().next().map(|row| (row, now_s())))
    }

    /// Returns all rows of a statement's result.
    pub fn rows(&mut self, statement: &str, values: &[Bytes]) -> Result<Vec<Vec<Option<Bytes>>>> {
        let (mut found, mut state) = (Vec::new(), None);
        loop {
            let page = self.page(statement, values, state.as_ref())?;
            found.extend(page.content.iter());
            state = page.page.paging_state;
            if state.is_none() {
                return Ok(found);
            }
        }
    }

    /// Returns a page of a statement's result. `state` is the paging state of the page before, and `None` for the first page.
    pub fn page(&mut self, statement: &str, values: &[Bytes], state: Option<&Bytes>) -> Result<Rows> {
        let values: Vec<BoundValue> = values.iter().cloned().map(BoundValue::Set).collect();
        let response = self.retried(statement, |session| {
            session.send(statement, &values, state)?;
            session.receive()
        })?;
        let Response::Result(QueryResult::Rows(rows)) = response else {
            bail!(
                "{}: the server answered '{statement}' with {:?}",
                self.nodes.name,
                response.opcode()
            );
        };
        self.wait_for_turn(rows.content.row_count());
        Ok(rows)
    }

    /// Executes a statement. Returns its rows, which only conditional statements have.
    pub fn execute(&mut self, statement: &str, values: &[BoundValue]) -> Result<Vec<Vec<Option<Bytes>>>> {
        let response = self.retried(statement, |session| {
            session.send(statement, values, None)?;
            session.receive()
        })?;
        Ok(match response {
            Response::Result(QueryResult::Rows(rows)) => rows.content.iter().collect(),
            _ => Vec::new(),
        })
    }

    /// Executes statements concurrently, in any order. After a failure that passes, all of them are executed again.
    pub fn execute_all(&mut self, executions: &[Execution]) -> Result<()> {
        let Some(first) = executions.first() else {
            return Ok(());
        };
        self.retried(&first.statement, |session| session.try_all(executions))
    }

    fn try_all(&mut self, executions: &[Execution]) -> Result<(), StatementError> {
        // The answer to PREPARE would be one of several that are awaited.
        for execution in executions {
            self.prepared(&execution.statement)?;
        }
        for execution in executions {
            self.send(&execution.statement, &execution.values, None)?;
        }
        let mut failed = None;
        for _ in executions {
            match self.receive() {
                Ok(_) => {}
                Err(error @ StatementError::Server(_)) => failed = failed.or(Some(error)),
                Err(error) => return Err(error),
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// Repeats a request until it succeeds, or fails in a way that does not pass.
    fn retried<T>(
        &mut self,
        statement: &str,
        mut request: impl FnMut(&mut NodeSession) -> Result<T, StatementError>,
    ) -> Result<T> {
        let (mut backoff, mut tries) = (BACKOFF_START, 1);
        loop {
            let error = match request(self) {
                Ok(answer) => return Ok(answer),
                Err(StatementError::Cancelled) => return Err(interrupted()),
                Err(error) if tries < TRIES_MAX && passes(&error) => error,
                Err(error) => {
                    if !matches!(error, StatementError::Server(_)) {
                        self.connection = None;
                    }
                    let name = self.nodes.name;
                    return Err(in_words(error).context(format!("{name}: {statement}")));
                }
            };
            if !matches!(error, StatementError::Server(_)) {
                self.connection = None;
            }
            if !self.sleep(backoff) {
                return Err(interrupted());
            }
            backoff *= 2;
            tries += 1;
        }
    }

    /// Returns the id of a statement, which is prepared if it is new to the connection.
    fn prepared(&mut self, statement: &str) -> Result<Bytes, StatementError> {
        if self.connection.is_none() {
            let mut client = self.connect().map_err(StatementError::Disconnected)?;
            client.limit_answers(ANSWER_TIME_MAX);
            self.connection = Some(Connection {
                client,
                prepared: HashMap::new(),
            });
        }
        let Some(Connection { client, prepared }) = &mut self.connection else {
            return Err(StatementError::Disconnected(lost()));
        };
        if let Some(id) = prepared.get(statement) {
            return Ok(id.clone());
        }
        let id = client.prepare(statement)?.id;
        prepared.insert(statement.to_owned(), id.clone());
        Ok(id)
    }

    fn send(
        &mut self,
        statement: &str,
        values: &[BoundValue],
        state: Option<&Bytes>,
    ) -> Result<(), StatementError> {
        let id = self.prepared(statement)?;
        let consistency = self.nodes.consistency;
        let Some(Connection { client, .. }) = &mut self.connection else {
            return Err(StatementError::Disconnected(lost()));
        };
        let request = Request::Execute(Box::new(Execute {
            id,
            result_metadata_id: None,
            parameters: QueryParameters {
                consistency,
                values: BoundValues::Positional(values.to_vec()),
                page_size: Some(PAGE_ROWS),
                paging_state: state.cloned(),
                ..QueryParameters::default()
            },
        }));
        client.send(request, false)?;
        Ok(())
    }

    /// Receives the answer to any request.
    fn receive(&mut self) -> Result<Response, StatementError> {
        let Some(Connection { client, prepared }) = &mut self.connection else {
            return Err(StatementError::Disconnected(lost()));
        };
        match client.receive()?.1.response {
            Response::Error(error) => {
                if let CqlError::Unprepared(_) = error {
                    prepared.clear();
                }
                Err(StatementError::Server(error))
            }
            response => Ok(response),
        }
    }

    /// Connects to the next server.
    fn connect(&mut self) -> Result<Client> {
        let count = self.nodes.servers.len().max(1);
        let Some(server) = self.nodes.servers.get(self.connections % count) else {
            bail!("{}: give the address of a node", self.nodes.name);
        };
        self.connections += 1;
        server.connect(&mut self.nodes.login)
    }

    fn wait_for_turn(&mut self, rows: usize) {
        if let Some((bucket, started)) = &mut self.pace {
            let time = bucket.take(rows, started.elapsed());
            self.sleep(time);
        }
    }

    /// Returns false after Ctrl-C.
    fn sleep(&self, time: Duration) -> bool {
        let server = self.nodes.servers.first();
        server.is_none_or(|server| server.interrupt.sleep(time))
    }
}

fn lost() -> anyhow::Error {
    anyhow!("the connection is lost; try again")
}

/// Returns true for a failure after which another try may succeed.
fn passes(error: &StatementError) -> bool {
    match error {
        StatementError::Server(CqlError::Warned { error, .. }) => is_transient(error),
        StatementError::Server(error) => is_transient(error),
        StatementError::Disconnected(_) => true,
        StatementError::Cancelled | StatementError::Output(_) => false,
    }
}

fn is_transient(error: &CqlError) -> bool {
    matches!(
        error,
        CqlError::Unprepared(_)
            | CqlError::Overloaded(_)
            | CqlError::RateLimited { .. }
            | CqlError::ReadTimeout { .. }
            | CqlError::ReadFailure { .. }
            | CqlError::WriteTimeout { .. }
            | CqlError::WriteFailure { .. }
            | CqlError::CasWriteUnknown { .. }
            | CqlError::Unavailable { .. }
            | CqlError::IsBootstrapping(_)
    )
}

/// Returns the present time in seconds since 1970.
pub fn now_s() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
