//! A reader of rows over CQL, page after page. It tries again after overloads and lost connections.

use std::collections::VecDeque;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, anyhow};
use bytes::Bytes;
use helenus_cql::error::{Consistency, CqlError};
use helenus_cql::frame::response::{QueryResult, Response, Rows};
use helenus_cql::frame::{BoundValue, BoundValues, QueryParameters};
use helenus_import::verify::{TargetRow, TargetRows};

use super::selection::Selection;
use crate::import::target::interrupted;
use crate::shell::client::{Client, Login, Server, StatementError};

/// Rows of a page. The server makes a page shorter if its rows are large.
const PAGE_ROWS: i32 = 500;
/// Tries of a page before the comparison stops.
const TRIES_MAX: u32 = 8;
const BACKOFF_FIRST: Duration = Duration::from_millis(100);

/// A connection to one of several nodes. After a failure, the reader connects to the next node.
pub struct Reader {
    servers: Vec<Server>,
    login: Login,
    /// Number of connections so far.
    connections: usize,
    client: Option<Client>,
}

impl Reader {
    pub fn new(servers: Vec<Server>, login: Login) -> Reader {
        Reader {
            servers,
            login,
            connections: 0,
            client: None,
        }
    }

    /// Returns a page of a statement's result, and the time at which it came, in s since 1970.
    pub fn page(
        &mut self,
        statement: &str,
        values: &[Bytes],
        paging_state: Option<&Bytes>,
    ) -> Result<(Rows, i64)> {
        let mut backoff = BACKOFF_FIRST;
        for tries in 1.. {
            let error = match self.try_page(statement, values, paging_state) {
                Ok(rows) => return Ok((rows, now_s())),
                Err(StatementError::Cancelled) => return Err(interrupted()),
                Err(StatementError::Server(error)) if !may_pass(&error) => {
                    return Err(anyhow!("{error}").context(statement.to_owned()));
                }
                Err(StatementError::Server(error)) => anyhow!("{error}"),
                Err(StatementError::Disconnected(error) | StatementError::Output(error)) => {
                    self.client = None;
                    error
                }
            };
            if tries >= TRIES_MAX {
                return Err(error.context(format!("{tries} tries to read rows failed")));
            }
            thread::sleep(backoff);
            backoff *= 2;
        }
        Err(interrupted())
    }

    fn try_page(
        &mut self,
        statement: &str,
        values: &[Bytes],
        paging_state: Option<&Bytes>,
    ) -> Result<Rows, StatementError> {
        let client = match &mut self.client {
            Some(client) => client,
            None => {
                let server = self.servers.get(self.connections % self.servers.len().max(1));
                self.connections += 1;
                let server = server.context("no node is given")?;
                let client = server
                    .connect(&mut self.login)
                    .map_err(StatementError::Disconnected)?;
                self.client.insert(client)
            }
        };
        let parameters = QueryParameters {
            consistency: Consistency::LocalQuorum,
            values: BoundValues::Positional(values.iter().cloned().map(BoundValue::Set).collect()),
            page_size: Some(PAGE_ROWS),
            paging_state: paging_state.cloned(),
            ..QueryParameters::default()
        };
        match client.query(statement, parameters, false)?.response {
            Response::Result(QueryResult::Rows(rows)) => Ok(rows),
            other => Err(StatementError::Disconnected(anyhow!(
                "the server answered a SELECT with {:?}",
                other.opcode()
            ))),
        }
    }
}

/// Returns true if another try may succeed.
fn may_pass(error: &CqlError) -> bool {
    match error {
        CqlError::Warned { error, .. } => may_pass(error),
        CqlError::Overloaded(_)
        | CqlError::RateLimited { .. }
        | CqlError::ReadTimeout { .. }
        | CqlError::Unavailable { .. }
        | CqlError::IsBootstrapping(_) => true,
        _ => false,
    }
}

/// The rows of a range of tokens.
pub struct Scan {
    reader: Reader,
    selection: Selection,
    statement: String,
    /// The excluded start and the included end.
    range: [Bytes; 2],
    rows: VecDeque<Vec<Option<Bytes>>>,
    read_at_s: i64,
    /// `None` before the first page.
    paging_state: Option<Bytes>,
    is_over: bool,
}

impl Scan {
    /// Reads all rows with tokens above `start` and up to `end`.
    pub fn new(reader: Reader, selection: Selection, start: i64, end: i64) -> Scan {
        let bound = |token: i64| Bytes::copy_from_slice(&token.to_be_bytes());
        Scan {
            statement: selection.scan(),
            reader,
            selection,
            range: [bound(start), bound(end)],
            rows: VecDeque::new(),
            read_at_s: 0,
            paging_state: None,
            is_over: false,
        }
    }
}

impl TargetRows for Scan {
    type Error = anyhow::Error;

    fn next_row(&mut self) -> Result<Option<TargetRow>> {
        while self.rows.is_empty() && !self.is_over {
            let (page, read_at_s) =
                self.reader
                    .page(&self.statement, &self.range, self.paging_state.as_ref())?;
            self.rows.extend(page.content.iter());
            self.read_at_s = read_at_s;
            self.paging_state = page.page.paging_state;
            self.is_over = self.paging_state.is_none();
        }
        let row = self.rows.pop_front();
        row.map(|row| self.selection.decode(row, self.read_at_s))
            .transpose()
    }
}

/// Returns the present time in s since 1970.
pub fn now_s() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_secs()).unwrap_or(i64::MAX)
}
