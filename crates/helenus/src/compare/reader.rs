//! Reading rows of one side, page by page, with further tries after failures that pass.

use std::collections::{HashMap, VecDeque};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, anyhow, bail};
use bytes::Bytes;
use helenus_cql::error::{Consistency, CqlError};
use helenus_cql::frame::request::Execute;
use helenus_cql::frame::response::{QueryResult, Response, Rows as AnsweredRows};
use helenus_cql::frame::{BoundValue, BoundValues, QueryParameters, Request};

use super::join::Rows;
use super::plan::TablePlan;
use super::row::TableRow;
use crate::import::pace::Bucket;
use crate::import::target::{in_words, interrupted};
use crate::shell::client::{Client, Login, Server, StatementError};

const PAGE_ROWS: i32 = 1_000;
const TRIES_MAX: u32 = 8;
const BACKOFF_START: Duration = Duration::from_millis(100);

/// One of the two clusters.
#[derive(Clone)]
pub struct Side {
    /// `a` or `b`.
    pub name: &'static str,
    pub servers: Vec<Server>,
    pub login: Login,
    pub consistency: Consistency,
}

/// A connection to a side, with its prepared statements.
pub struct Reader {
    side: Side,
    /// Number of connections so far, by which the next server is chosen.
    connections: usize,
    connection: Option<(Client, HashMap<String, Bytes>)>,
    /// The limit of rows a second. `None` if there is none.
    pace: Option<(Bucket, Instant)>,
}

/// A page of rows, with the time of the answer in seconds since 1970.
struct Page {
    rows: AnsweredRows,
    now_s: i64,
}

impl Reader {
    /// Returns a reader. `number` chooses the first server, so that readers share the servers.
    pub fn new(side: &Side, number: usize, rows_per_s: Option<f64>) -> Reader {
        Reader {
            side: side.clone(),
            connections: number,
            connection: None,
            pace: rows_per_s.map(|rows_per_s| (Bucket::new(rows_per_s), Instant::now())),
        }
    }

    /// Reads one row by its key.
    pub fn row(&mut self, plan: &TablePlan, row: &TableRow) -> Result<Option<TableRow>> {
        let (statement, values) = plan.statement_of(row);
        let page = self.page(&statement, &values, None)?;
        let answered = page.rows.content.iter().next();
        answered.map(|row| plan.decode(row, page.now_s)).transpose()
    }

    fn page(&mut self, statement: &str, values: &[Bytes], state: Option<&Bytes>) -> Result<Page> {
        let (mut backoff, mut tries) = (BACKOFF_START, 1);
        loop {
            let error = match self.try_page(statement, values, state) {
                Ok(page) => {
                    self.wait_for_turn(page.rows.content.row_count());
                    return Ok(page);
                }
                Err(StatementError::Cancelled) => return Err(interrupted()),
                Err(error) if tries < TRIES_MAX && passes(&error) => error,
                Err(error) => {
                    let side = self.side.name;
                    return Err(in_words(error).context(format!("side {side}: {statement}")));
                }
            };
            if !matches!(error, StatementError::Server(_)) {
                self.connection = None;
            }
            thread::sleep(backoff);
            backoff *= 2;
            tries += 1;
        }
    }

    fn try_page(
        &mut self,
        statement: &str,
        values: &[Bytes],
        state: Option<&Bytes>,
    ) -> Result<Page, StatementError> {
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
                consistency: self.side.consistency,
                values: BoundValues::Positional(values.iter().cloned().map(BoundValue::Set).collect()),
                page_size: Some(PAGE_ROWS),
                paging_state: state.cloned(),
                ..QueryParameters::default()
            },
        }));
        client.send(request, false)?;
        match client.receive()?.1.response {
            Response::Result(QueryResult::Rows(rows)) => Ok(Page { rows, now_s: now_s() }),
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
        let mut servers = self.side.servers.iter().cycle();
        let Some(server) = servers.nth(self.connections) else {
            bail!("side {}: give the address of a node", self.side.name);
        };
        self.connections += 1;
        server.connect(&mut self.side.login)
    }

    fn wait_for_turn(&mut self, rows: usize) {
        if let Some((bucket, started)) = &mut self.pace {
            thread::sleep(bucket.take(rows, started.elapsed()));
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

fn now_s() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// The rows of one side between two tokens.
pub struct RangeRows<'r> {
    reader: &'r mut Reader,
    plan: &'r TablePlan,
    statement: String,
    tokens: [Bytes; 2],
    rows: VecDeque<TableRow>,
    /// The paging state of the next page. `None` before the first page.
    state: Option<Bytes>,
    is_last: bool,
    /// Number of rows read so far.
    pub count: u64,
}

impl<'r> RangeRows<'r> {
    /// Returns the rows of tokens above `after`, up to `last`.
    pub fn new(reader: &'r mut Reader, plan: &'r TablePlan, (after, last): (i64, i64)) -> RangeRows<'r> {
        let bytes = |token: i64| Bytes::copy_from_slice(&token.to_be_bytes());
        RangeRows {
            reader,
            plan,
            statement: plan.range_statement(),
            tokens: [bytes(after), bytes(last)],
            rows: VecDeque::new(),
            state: None,
            is_last: false,
            count: 0,
        }
    }
}

impl Rows for RangeRows<'_> {
    fn next_row(&mut self) -> Result<Option<TableRow>> {
        while self.rows.is_empty() && !self.is_last {
            let page = self
                .reader
                .page(&self.statement, &self.tokens, self.state.as_ref())
                .with_context(|| format!("table {}", self.plan.name))?;
            for row in page.rows.content.iter() {
                self.rows.push_back(self.plan.decode(row, page.now_s)?);
            }
            self.state = page.rows.page.paging_state;
            self.is_last = self.state.is_none();
        }
        let row = self.rows.pop_front();
        self.count += u64::from(row.is_some());
        Ok(row)
    }
}
