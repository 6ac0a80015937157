//! Reading rows page by page, with further tries after failures that pass.

use std::collections::{HashMap, VecDeque};
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
/// Tries of a page before the comparison stops.
const TRIES_MAX: u32 = 8;
const BACKOFF_START: Duration = Duration::from_millis(100);

/// The nodes that answer the reads of one cluster.
#[derive(Clone)]
pub struct Nodes {
    /// Name of the cluster in errors, such as `side a`.
    pub name: &'static str,
    pub servers: Vec<Server>,
    pub login: Login,
    pub consistency: Consistency,
}

/// A connection to one of the nodes, with its prepared statements. After a failure, the reader connects to the next node.
pub struct Reader {
    nodes: Nodes,
    /// Number of connections so far, by which the next server is chosen.
    connections: usize,
    connection: Option<(Client, HashMap<String, Bytes>)>,
    /// The limit of rows a second. `None` if there is none.
    pace: Option<(TokenBucket, Instant)>,
}

impl Reader {
    /// Returns a reader. `number` chooses the first server, so that readers share the servers.
    pub fn new(nodes: &Nodes, number: usize, rows_per_s: Option<f64>) -> Reader {
        Reader {
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

    fn page(&mut self, statement: &str, values: &[Bytes], state: Option<&Bytes>) -> Result<Rows> {
        let (mut backoff, mut tries) = (BACKOFF_START, 1);
        loop {
            let error = match self.try_page(statement, values, state) {
                Ok(rows) => {
                    self.wait_for_turn(rows.content.row_count());
                    return Ok(rows);
                }
                Err(StatementError::Cancelled) => return Err(interrupted()),
                Err(error) if tries < TRIES_MAX && passes(&error) => error,
                Err(error) => {
                    let name = self.nodes.name;
                    return Err(in_words(error).context(format!("{name}: {statement}")));
                }
            };
            if !matches!(error, StatementError::Server(_)) {
                self.connection = None;
            }
            self.sleep(backoff);
            backoff *= 2;
            tries += 1;
        }
    }

    fn try_page(
        &mut self,
        statement: &str,
        values: &[Bytes],
        state: Option<&Bytes>,
    ) -> Result<Rows, StatementError> {
        let (client, prepared) = match &mut self.connection {
            Some(connection) => connection,
            None => {
                let connected = self.connect().map_err(StatementError::Disconnected)?;
                self.connection.insert((connected, HashMap::new()))
            }
        };
        let id = match prepared.get(statement) {
            Some(id) => id.clone(),
            None => {
                let id = client.prepare(statement)?.id;
                prepared.insert(statement.to_owned(), id.clone());
                id
            }
        };
        let request = Request::Execute(Box::new(Execute {
            id,
            result_metadata_id: None,
            parameters: QueryParameters {
                consistency: self.nodes.consistency,
                values: BoundValues::Positional(values.iter().cloned().map(BoundValue::Set).collect()),
                page_size: Some(PAGE_ROWS),
                paging_state: state.cloned(),
                ..QueryParameters::default()
            },
        }));
        client.send(request, false)?;
        match client.receive()?.1.response {
            Response::Result(QueryResult::Rows(rows)) => Ok(rows),
            Response::Error(error) => {
                if let CqlError::Unprepared(_) = error {
                    prepared.clear();
                }
                Err(StatementError::Server(error))
            }
            other => Err(StatementError::Output(anyhow!(
                "the server answered a query with {:?}",
                other.opcode()
            ))),
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

    fn sleep(&self, time: Duration) {
        if let Some(server) = self.nodes.servers.first() {
            server.interrupt.sleep(time);
        }
    }
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
            | CqlError::Unavailable { .. }
            | CqlError::IsBootstrapping(_)
    )
}

/// Returns the present time in seconds since 1970.
pub fn now_s() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// The rows of a range of tokens.
pub struct RangeScan<'r> {
    reader: &'r mut Reader,
    statement: &'r str,
    tokens: [Bytes; 2],
    rows: VecDeque<Vec<Option<Bytes>>>,
    /// The time of the last page, in seconds since 1970.
    read_at_s: i64,
    /// The paging state of the next page. `None` before the first page.
    state: Option<Bytes>,
    is_last: bool,
}

impl<'r> RangeScan<'r> {
    /// Returns the rows of tokens above `after`, up to `last`.
    pub fn new(reader: &'r mut Reader, statement: &'r str, (after, last): (i64, i64)) -> RangeScan<'r> {
        let bytes = |token: i64| Bytes::copy_from_slice(&token.to_be_bytes());
        RangeScan {
            reader,
            statement,
            tokens: [bytes(after), bytes(last)],
            rows: VecDeque::new(),
            read_at_s: 0,
            state: None,
            is_last: false,
        }
    }

    /// Returns the next row, with the time of its answer in seconds since 1970. `None` at the end.
    pub fn next_row(&mut self) -> Result<Option<(Vec<Option<Bytes>>, i64)>> {
        while self.rows.is_empty() && !self.is_last {
            let page = self
                .reader
                .page(self.statement, &self.tokens, self.state.as_ref())?;
            self.read_at_s = now_s();
            self.rows.extend(page.content.iter());
            self.state = page.page.paging_state;
            self.is_last = self.state.is_none();
        }
        Ok(self.rows.pop_front().map(|row| (row, self.read_at_s)))
    }
}
