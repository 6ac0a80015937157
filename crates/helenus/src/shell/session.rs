//! The state of a shell session, and the execution of statements in it.

use std::io::{BufRead, IsTerminal, Write};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use bytes::Bytes;
use helenus_cql::error::{Consistency, CqlError};
use helenus_cql::frame::response::{QueryResult, Response, Rows};
use helenus_cql::frame::{QueryParameters, ResponseMessage};
use helenus_cql::types::CqlType;

use super::client::{Client, StatementError};
use super::command::{self, Command, HELP, Paging};
use super::statement::Input;
use super::table::Page;

/// Writes a line to the standard output; one that is closed (a pager that was left) ends the shell without noise.
macro_rules! say {
    ($($arg:tt)*) => { writeln!(std::io::stdout(), $($arg)*)? };
}

const PAGE_SIZE: i32 = 100;
/// Rows fetched at a time when paging is off.
const FETCH_SIZE: i32 = 5000;

/// A connection and the settings of the shell.
pub struct Session {
    client: Client,
    keyspace: Option<String>,
    consistency: Consistency,
    serial_consistency: Option<Consistency>,
    page_size: Option<i32>,
    is_timing: bool,
    is_expanding: bool,
    is_tracing: bool,
    pub should_exit: bool,
}

impl Session {
    pub fn new(client: Client) -> Session {
        Session {
            client,
            keyspace: None,
            consistency: Consistency::One,
            serial_consistency: None,
            page_size: Some(PAGE_SIZE),
            is_timing: false,
            is_expanding: false,
            is_tracing: false,
            should_exit: false,
        }
    }

    /// The keyspace in use.
    pub fn keyspace(&self) -> Option<&str> {
        self.keyspace.as_deref()
    }

    pub fn address(&self) -> &str {
        self.client.address()
    }

    /// Runs every statement and command of a text; goes on after errors. False if any failed.
    pub fn run_text(&mut self, text: &str) -> Result<bool> {
        let mut input = Input::default();
        let mut all_well = true;
        for line in text.lines() {
            all_well &= self.feed(&mut input, line)?;
            if self.should_exit {
                return Ok(all_well);
            }
        }
        if let Some(statement) = input.take_rest() {
            all_well &= self.run_statement(&statement)?;
        }
        Ok(all_well)
    }

    /// Takes one line: runs it if it is a command, or the statements that it completes. False if any failed.
    pub fn feed(&mut self, input: &mut Input, line: &str) -> Result<bool> {
        if input.is_blank()
            && let Some(command) = command::parse(line)
        {
            return match command {
                Ok(command) => self.run_command(command),
                Err(message) => {
                    eprintln!("{message}");
                    Ok(false)
                }
            };
        }
        input.push_line(line);
        let mut all_well = true;
        while let Some(statement) = input.next_statement() {
            all_well &= statement.is_empty() || self.run_statement(&statement)?;
        }
        Ok(all_well)
    }

    fn run_statement(&mut self, statement: &str) -> Result<bool> {
        let started = Instant::now();
        match self.run_pages(statement) {
            Ok(spent) => {
                if self.is_timing {
                    let total = started.elapsed();
                    say!("Time: {:.3} ms (server {:.3} ms)", millis(total), millis(spent));
                }
                Ok(true)
            }
            Err(StatementError::Fatal(error)) => Err(error),
            Err(StatementError::Server(error)) => {
                eprintln!("{}: {error}", kind(&error));
                Ok(false)
            }
        }
    }

    /// Runs a statement page by page; gives the time spent waiting for the server.
    fn run_pages(&mut self, statement: &str) -> Result<Duration, StatementError> {
        let mut spent = Duration::ZERO;
        let mut paging_state = None;
        let mut shown = 0;
        let mut columns = Vec::new();
        loop {
            let asked = Instant::now();
            let message = self
                .client
                .query(statement, self.parameters(paging_state), self.is_tracing)?;
            spent += asked.elapsed();
            for warning in &message.warnings {
                eprintln!("Warning: {warning}");
            }
            if let Some(id) = message.tracing_id {
                say!("Tracing session: {id}");
            }
            let Some(rows) = self.take_rows(message) else {
                return Ok(spent);
            };
            paging_state = rows.page.paging_state.clone();
            shown += self.show_page(&rows, &mut columns, shown)?;
            if paging_state.is_none() {
                say!("\n({shown} rows)");
                return Ok(spent);
            }
            if self.page_size.is_some() && !ask_for_more()? {
                return Ok(spent);
            }
        }
    }

    fn parameters(&self, paging_state: Option<Bytes>) -> QueryParameters {
        QueryParameters {
            consistency: self.consistency,
            serial_consistency: self.serial_consistency,
            page_size: Some(self.page_size.unwrap_or(FETCH_SIZE)),
            paging_state,
            ..QueryParameters::default()
        }
    }

    /// The rows of an answer that has any; notes a changed keyspace.
    fn take_rows(&mut self, message: ResponseMessage) -> Option<Rows> {
        match message.response {
            Response::Result(QueryResult::Rows(rows)) => Some(rows),
            Response::Result(QueryResult::SetKeyspace(keyspace)) => {
                self.keyspace = Some(keyspace);
                None
            }
            _ => None,
        }
    }

    fn show_page(&self, rows: &Rows, columns: &mut Vec<(String, CqlType)>, shown: usize) -> Result<usize> {
        if columns.is_empty() {
            *columns = rows
                .metadata
                .columns
                .iter()
                .map(|c| (c.name.to_string(), c.ty.clone()))
                .collect();
        }
        let page = Page {
            columns: columns.clone(),
            rows: rows.content.iter().collect(),
        };
        if let Some(text) = page.as_description() {
            say!("{text}");
        } else if self.is_expanding {
            say!("{}", page.to_lines(shown));
        } else {
            say!("{}", page.to_table());
        }
        Ok(page.rows.len())
    }

    fn run_command(&mut self, command: Command) -> Result<bool> {
        match command {
            Command::Help => say!("{HELP}"),
            Command::Exit => self.should_exit = true,
            Command::Clear => write!(std::io::stdout(), "\x1b[2J\x1b[H")?,
            Command::ShowVersion => {
                return self.run_text(
                    "SELECT release_version, cql_version, native_protocol_version FROM system.local;",
                );
            }
            Command::ShowHost => say!("Connected to {}", self.address()),
            Command::Source(path) => {
                return match std::fs::read_to_string(&path) {
                    Ok(text) => self.run_text(&text),
                    Err(error) => {
                        eprintln!("can't read {path}: {error}");
                        Ok(false)
                    }
                };
            }
            Command::Consistency(level) => {
                self.consistency = level.unwrap_or(self.consistency);
                say!("Consistency level is {}", self.consistency);
            }
            Command::SerialConsistency(Some(level)) if !level.is_serial() => {
                eprintln!("the serial consistency level is SERIAL or LOCAL_SERIAL");
                return Ok(false);
            }
            Command::SerialConsistency(level) => {
                self.serial_consistency = level.or(self.serial_consistency);
                say!(
                    "Serial consistency level is {}",
                    self.serial_consistency.unwrap_or(Consistency::Serial)
                );
            }
            Command::Timing(on) => switch("Timing", &mut self.is_timing, on)?,
            Command::Expand(on) => switch("Expanded output", &mut self.is_expanding, on)?,
            Command::Tracing(on) => switch("Tracing", &mut self.is_tracing, on)?,
            Command::Paging(paging) => {
                match paging {
                    Some(Paging::On) => self.page_size = Some(PAGE_SIZE),
                    Some(Paging::Off) => self.page_size = None,
                    Some(Paging::Size(size)) => self.page_size = Some(size),
                    None => {}
                }
                match self.page_size {
                    Some(size) => say!("Paging is on: {size} rows a page"),
                    None => say!("Paging is off"),
                }
            }
        }
        Ok(true)
    }

    /// The values of the first column of an internal query; nothing if it fails.
    pub fn names(&mut self, query: &str) -> Vec<String> {
        let parameters = QueryParameters {
            page_size: Some(FETCH_SIZE),
            ..QueryParameters::default()
        };
        let Ok(message) = self.client.query(query, parameters, false) else {
            return Vec::new();
        };
        let Response::Result(QueryResult::Rows(rows)) = message.response else {
            return Vec::new();
        };
        let text =
            |row: Vec<Option<Bytes>>| Some(String::from_utf8_lossy(row.first()?.as_ref()?).into_owned());
        rows.content.iter().filter_map(text).collect()
    }
}

fn switch(what: &str, setting: &mut bool, on: Option<bool>) -> Result<()> {
    *setting = on.unwrap_or(*setting);
    say!("{what} is {}", if *setting { "on" } else { "off" });
    Ok(())
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// Between pages: only a person at a terminal is asked.
fn ask_for_more() -> Result<bool> {
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Ok(true);
    }
    print!("--- more: Enter, or q to stop --- ");
    std::io::stdout().flush()?;
    let mut answer = String::new();
    std::io::stdin()
        .lock()
        .read_line(&mut answer)
        .context("can't read from the terminal")?;
    Ok(!answer.trim().eq_ignore_ascii_case("q"))
}

/// The name of an error's kind, as cqlsh calls it.
fn kind(error: &CqlError) -> &'static str {
    match error {
        CqlError::Warned { error, .. } => kind(error),
        CqlError::Server(_) => "ServerError",
        CqlError::Protocol(_) => "ProtocolException",
        CqlError::BadCredentials(_) => "AuthenticationFailed",
        CqlError::Unavailable { .. } => "Unavailable",
        CqlError::Overloaded(_) => "Overloaded",
        CqlError::IsBootstrapping(_) => "IsBootstrapping",
        CqlError::Truncate(_) => "TruncateError",
        CqlError::WriteTimeout { .. } => "WriteTimeout",
        CqlError::ReadTimeout { .. } => "ReadTimeout",
        CqlError::ReadFailure { .. } => "ReadFailure",
        CqlError::FunctionFailure { .. } => "FunctionFailure",
        CqlError::WriteFailure { .. } => "WriteFailure",
        CqlError::CasWriteUnknown { .. } => "CasWriteUnknown",
        CqlError::Syntax(_) => "SyntaxException",
        CqlError::Unauthorized(_) => "Unauthorized",
        CqlError::Invalid(_) => "InvalidRequest",
        CqlError::Config(_) => "ConfigurationException",
        CqlError::AlreadyExists { .. } => "AlreadyExists",
        CqlError::Unprepared(_) => "PreparedQueryNotFound",
    }
}
