//! The state of a shell session, and the execution of statements in it.

use std::io::Write;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use bytes::Bytes;
use helenus_cql::error::{Consistency, CqlError};
use helenus_cql::frame::response::{QueryResult, Response, Rows};
use helenus_cql::frame::{QueryParameters, ResponseMessage};
use helenus_cql::identifier::quote_identifier;

use super::client::{Client, Login, Server, StatementError};
use super::command;
use super::copy_statement;
use super::hint::hint;
use super::names::{COLUMN_QUERIES, KEYSPACE_QUERY, Names, TYPE_QUERY};
use super::output::{Output, Pager, exceeds_screen};
use super::results::{Format, ResultWriter};
use super::statement::{Input, Statement, has_inner_semicolon};
use super::traced::write_trace;

/// Writes a line to the standard output. If the output is closed, the shell ends without an error message.
macro_rules! say {
    ($($arg:tt)*) => { writeln!(std::io::stdout(), $($arg)*)? };
}
pub(super) use say;

/// Rows per page on a terminal.
pub const PAGE_SIZE: i32 = 100;
/// Rows per page if paging is off or the output is not a terminal.
const FETCH_SIZE: i32 = 5000;

/// A connection and the settings of the shell.
pub struct Session {
    pub(super) server: Server,
    pub(super) login: Login,
    pub(super) client: Client,
    pub(super) keyspace: Option<String>,
    pub(super) consistency: Consistency,
    pub(super) serial_consistency: Option<Consistency>,
    pub(super) page_size: Option<i32>,
    pub(super) is_timing: bool,
    pub(super) is_expanding: bool,
    pub(super) is_tracing: bool,
    pub(super) format: Format,
    pub(super) output: Output,
    /// True if a person types the statements. Errors do not end the shell then.
    pub(super) is_at_prompt: bool,
    is_connected: bool,
    /// The file and line of the running statement. `None` if it is not from a file.
    place: Option<(String, usize)>,
    names: Option<Rc<Names>>,
    pub should_exit: bool,
    /// True if Ctrl-C ended the last statement.
    pub was_cancelled: bool,
}

impl Session {
    /// Connects, and logs in if the server requires it.
    pub fn connect(server: Server, mut login: Login, format: Format) -> Result<Session> {
        let client = server.connect(&mut login)?;
        Ok(Session {
            server,
            login,
            client,
            keyspace: None,
            consistency: Consistency::One,
            serial_consistency: None,
            page_size: Some(PAGE_SIZE),
            is_timing: false,
            is_expanding: false,
            is_tracing: false,
            format,
            output: Output::default(),
            is_at_prompt: false,
            is_connected: true,
            place: None,
            names: None,
            should_exit: false,
            was_cancelled: false,
        })
    }

    /// Returns the keyspace in use.
    pub fn keyspace(&self) -> Option<&str> {
        self.keyspace.as_deref()
    }

    pub fn address(&self) -> &str {
        &self.server.address
    }

    /// Ignores a Ctrl-C that was pressed while nothing ran.
    pub fn clear_interrupt(&self) {
        self.server.interrupt.clear();
    }

    /// Marks the session as interactive: a person types the statements.
    pub fn start_prompt(&mut self) {
        self.is_at_prompt = true;
    }

    /// Runs every statement and command of a text, and goes on after errors. Error messages have the source, if there is one, and the line.
    /// Returns false if any failed.
    pub fn run_text(&mut self, text: &str, source: Option<&str>) -> Result<bool> {
        let outer = self.place.take();
        self.place = source.map(|source| (source.to_owned(), 0));
        let all_well = self.run_lines(text);
        self.place = outer;
        all_well
    }

    fn run_lines(&mut self, text: &str) -> Result<bool> {
        let mut input = Input::default();
        let mut all_well = true;
        for line in text.lines() {
            all_well &= self.feed(&mut input, line)?;
            if self.should_exit || self.was_cancelled {
                return Ok(all_well);
            }
        }
        if let Some(statement) = input.take_rest() {
            all_well &= self.run(&statement)?;
        }
        Ok(all_well)
    }

    /// Adds a line to the input. Runs it if it is a command, or runs the statements that it completes. Returns false if any failed.
    pub fn feed(&mut self, input: &mut Input, line: &str) -> Result<bool> {
        if self.is_at_prompt && self.place.is_none() {
            self.server.interrupt.clear();
            self.was_cancelled = false;
        }
        let is_whole_command =
            input.is_blank() && !has_inner_semicolon(line) && command::parse(line).is_some();
        input.push_line(line);
        if is_whole_command {
            return match input.next_statement().or_else(|| input.take_rest()) {
                Some(statement) => self.run(&statement),
                None => Ok(true),
            };
        }
        let mut all_well = true;
        while let Some(statement) = input.next_statement() {
            all_well &= statement.text.is_empty() || self.run(&statement)?;
            if self.should_exit || self.was_cancelled {
                break;
            }
        }
        Ok(all_well)
    }

    /// Runs a statement or a command. Returns false if it failed.
    fn run(&mut self, statement: &Statement) -> Result<bool> {
        if let Some((_, line)) = &mut self.place {
            *line = statement.line;
        }
        if let Some(copy) = copy_statement::parse(&statement.text) {
            return match copy {
                Ok(copy) => self.run_copy(&copy),
                Err(message) => {
                    self.complain(message);
                    Ok(false)
                }
            };
        }
        match command::parse(&statement.text) {
            Some(Ok(command)) => self.run_command(command),
            Some(Err(message)) => {
                self.complain(message);
                Ok(false)
            }
            None => self.run_statement(&statement.text),
        }
    }

    /// Writes an error to the standard error, with its file and line.
    pub(super) fn complain(&self, message: impl std::fmt::Display) {
        match &self.place {
            Some((source, line)) => eprintln!("{source}:{line}: {message}"),
            None => eprintln!("{message}"),
        }
    }

    fn run_statement(&mut self, statement: &str) -> Result<bool> {
        let started = Instant::now();
        let result = self.reconnect_if_lost().and_then(|()| self.run_pages(statement));
        match result {
            Ok(spent) if self.is_timing => {
                let total = started.elapsed();
                say!("Time: {:.3} ms (server {:.3} ms)", millis(total), millis(spent));
                Ok(true)
            }
            Ok(_) => Ok(true),
            Err(error) => {
                self.report(error, statement)?;
                Ok(false)
            }
        }
    }

    /// Reports the error of a statement. Returns it if the shell cannot go on.
    pub(super) fn report(&mut self, error: StatementError, statement: &str) -> Result<()> {
        match error {
            StatementError::Server(error) => {
                self.complain(format!("{}: {error}", kind(&error)));
                if let Some(hint) = self.hint(statement, &error) {
                    eprintln!("Hint: {hint}");
                }
                Ok(())
            }
            StatementError::Cancelled => {
                self.was_cancelled = true;
                eprintln!("Cancelled. The server may still finish the statement.");
                Ok(())
            }
            StatementError::Disconnected(error) if self.is_at_prompt => {
                self.is_connected = false;
                self.complain(format!("{error:#}; the next statement connects again"));
                Ok(())
            }
            StatementError::Disconnected(error) | StatementError::Output(error) => Err(error),
        }
    }

    fn hint(&mut self, statement: &str, error: &CqlError) -> Option<String> {
        let may_have_hint = matches!(
            error,
            CqlError::Syntax(_) | CqlError::Invalid(_) | CqlError::Config(_) | CqlError::Warned { .. }
        );
        if !may_have_hint {
            return None;
        }
        let names = self.names();
        hint(statement, &error.to_string(), self.keyspace(), &names)
    }

    fn reconnect_if_lost(&mut self) -> Result<(), StatementError> {
        if !self.is_connected {
            self.reconnect().map_err(StatementError::Disconnected)?;
        }
        Ok(())
    }

    /// Connects again with the present log-in and keyspace.
    pub(super) fn reconnect(&mut self) -> Result<()> {
        self.client = self.server.connect(&mut self.login)?;
        self.is_connected = true;
        if let Some(keyspace) = &self.keyspace {
            let used = format!("USE {}", quote_identifier(keyspace));
            if self
                .client
                .query(&used, QueryParameters::default(), false)
                .is_err()
            {
                self.keyspace = None;
            }
        }
        Ok(())
    }

    /// Runs a statement page by page. Returns the time spent waiting for the server.
    fn run_pages(&mut self, statement: &str) -> Result<Duration, StatementError> {
        let (first, mut spent) = self.fetch(statement, None)?;
        let trace = first.tracing_id;
        if let Some(rows) = self.take_rows(first) {
            spent += self.show(statement, rows)?;
        }
        if let Some(id) = trace {
            let mut out = self.output.writer()?;
            if !write_trace(&mut self.client, &self.server.interrupt, id, &mut out)? {
                writeln!(
                    out,
                    "The trace {id} is not complete; SHOW SESSION {id} shows it later."
                )?;
            }
            out.flush()?;
        }
        Ok(spent)
    }

    /// Requests a page, and prints the server's warnings.
    fn fetch(
        &mut self,
        statement: &str,
        paging_state: Option<Bytes>,
    ) -> Result<(ResponseMessage, Duration), StatementError> {
        let requested_at = Instant::now();
        let is_traced = self.is_tracing && paging_state.is_none();
        let message = self
            .client
            .query(statement, self.parameters(paging_state), is_traced)?;
        let spent = requested_at.elapsed();
        for warning in &message.warnings {
            eprintln!("Warning: {warning}");
        }
        Ok((message, spent))
    }

    pub(super) fn parameters(&self, paging_state: Option<Bytes>) -> QueryParameters {
        let is_default = self.page_size == Some(PAGE_SIZE);
        let page_size = match self.page_size {
            Some(_) if is_default && !self.output.is_interactive() => FETCH_SIZE,
            Some(size) => size,
            None => FETCH_SIZE,
        };
        QueryParameters {
            consistency: self.consistency,
            serial_consistency: self.serial_consistency,
            page_size: Some(page_size),
            paging_state,
            ..QueryParameters::default()
        }
    }

    /// Returns the rows of an answer. `None` if it has none. Takes over a change of the keyspace or the schema.
    fn take_rows(&mut self, message: ResponseMessage) -> Option<Rows> {
        match message.response {
            Response::Result(QueryResult::Rows(rows)) => return Some(rows),
            Response::Result(QueryResult::SetKeyspace(keyspace)) => self.keyspace = Some(keyspace),
            Response::Result(QueryResult::SchemaChange(_)) => self.names = None,
            _ => {}
        }
        None
    }

    /// Shows the rows of a statement, beginning with the first page. Returns the time spent waiting for more pages.
    fn show(&mut self, statement: &str, first: Rows) -> Result<Duration, StatementError> {
        if self.page_size.is_none() || !self.output.is_interactive() {
            let mut results = ResultWriter::new(self.format, self.is_expanding, false);
            let mut out = self.output.writer()?;
            let spent = self.show_all(statement, first, &mut results, &mut out)?;
            out.flush()?;
            return Ok(spent);
        }
        let mut text = Vec::new();
        let mut alone = ResultWriter::new(self.format, self.is_expanding, true);
        alone.write_page(&first, &mut text)?;
        let is_long = first.page.paging_state.is_some() || exceeds_screen(&text);
        if is_long && let Some(mut pager) = Pager::start() {
            let mut results = ResultWriter::new(self.format, self.is_expanding, false);
            let shown = self.show_all(statement, first, &mut results, &mut pager);
            pager.wait()?;
            self.server.interrupt.clear();
            return match shown {
                // An error of the output is ignored, because it means that the user closed the pager.
                Err(StatementError::Output(_) | StatementError::Cancelled) => Ok(Duration::ZERO),
                shown => shown,
            };
        }
        self.show_asking(statement, first, alone, text)
    }

    /// Writes all pages.
    fn show_all(
        &mut self,
        statement: &str,
        mut rows: Rows,
        results: &mut ResultWriter,
        out: &mut dyn Write,
    ) -> Result<Duration, StatementError> {
        let mut spent = Duration::ZERO;
        loop {
            results.write_page(&rows, out)?;
            let Some(state) = rows.page.paging_state.clone() else {
                results.finish(out)?;
                return Ok(spent);
            };
            if self.server.interrupt.is_set() {
                out.flush()?;
                return Err(StatementError::Cancelled);
            }
            let (message, waited) = self.fetch(statement, Some(state))?;
            spent += waited;
            match self.take_rows(message) {
                Some(next) => rows = next,
                None => return Ok(spent),
            }
        }
    }

    /// Writes pages as long as the user wants more. `text` has the first page.
    fn show_asking(
        &mut self,
        statement: &str,
        mut rows: Rows,
        mut results: ResultWriter,
        mut text: Vec<u8>,
    ) -> Result<Duration, StatementError> {
        let mut spent = Duration::ZERO;
        loop {
            let Some(state) = rows.page.paging_state.clone() else {
                results.finish(&mut text)?;
                std::io::stdout().write_all(&text)?;
                return Ok(spent);
            };
            std::io::stdout().write_all(&text)?;
            if !self.confirm_more()? {
                return Ok(spent);
            }
            let (message, waited) = self.fetch(statement, Some(state))?;
            spent += waited;
            match self.take_rows(message) {
                Some(next) => rows = next,
                None => return Ok(spent),
            }
            text.clear();
            results.write_page(&rows, &mut text)?;
        }
    }

    /// Prompts for the next page. Returns true for Enter, false for q or Ctrl-C.
    fn confirm_more(&self) -> Result<bool> {
        print!("--- more: Enter, or q to stop --- ");
        std::io::stdout().flush()?;
        let answer = self.read_answer()?;
        Ok(answer.is_some_and(|answer| !answer.trim().eq_ignore_ascii_case("q")))
    }

    /// Returns a line from the terminal. `None` after Ctrl-C and at the end of the input.
    fn read_answer(&self) -> Result<Option<String>> {
        let stdin = std::io::stdin();
        let wait = rustix::event::Timespec {
            tv_sec: 0,
            tv_nsec: 50_000_000,
        };
        loop {
            if self.server.interrupt.is_set() {
                println!();
                return Ok(None);
            }
            let mut waited = [rustix::event::PollFd::new(&stdin, rustix::event::PollFlags::IN)];
            match rustix::event::poll(&mut waited, Some(&wait)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => break,
                Err(error) => return Err(error).context("can't wait for the terminal"),
            }
        }
        let mut answer = String::new();
        let read = stdin
            .read_line(&mut answer)
            .context("can't read from the terminal")?;
        Ok((read > 0).then_some(answer))
    }

    /// Returns the names of the schema. They are read again after a change. Empty if the server does not return them.
    pub fn names(&mut self) -> Rc<Names> {
        if let Some(names) = &self.names {
            return Rc::clone(names);
        }
        let mut names = Names::default();
        for row in self.texts(KEYSPACE_QUERY) {
            if let [keyspace] = row.as_slice() {
                names.add_keyspace(keyspace);
            }
        }
        for row in COLUMN_QUERIES.into_iter().flat_map(|query| self.texts(query)) {
            if let [keyspace, table, column] = row.as_slice() {
                names.add_column(keyspace, table, column);
            }
        }
        for row in self.texts(TYPE_QUERY) {
            if let [keyspace, name] = row.as_slice() {
                names.add_type(keyspace, name);
            }
        }
        let names = Rc::new(names);
        self.names = Some(Rc::clone(&names));
        names
    }

    /// Returns the rows of an internal query whose columns are text. Stops at the first page that fails.
    pub(super) fn texts(&mut self, query: &str) -> Vec<Vec<String>> {
        let mut texts = Vec::new();
        let mut paging_state = None;
        loop {
            let parameters = QueryParameters {
                page_size: Some(FETCH_SIZE),
                paging_state,
                ..QueryParameters::default()
            };
            let Ok(message) = self.client.query(query, parameters, false) else {
                return texts;
            };
            let Response::Result(QueryResult::Rows(rows)) = message.response else {
                return texts;
            };
            let text = |cell: Option<Bytes>| String::from_utf8_lossy(&cell.unwrap_or_default()).into_owned();
            texts.extend(rows.content.iter().map(|row| row.into_iter().map(text).collect()));
            paging_state = rows.page.paging_state.clone();
            if paging_state.is_none() {
                return texts;
            }
        }
    }
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// Returns cqlsh's name for an error's kind.
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
        CqlError::RateLimited { .. } => "RateLimitReached",
        CqlError::Syntax(_) => "SyntaxException",
        CqlError::Unauthorized(_) => "Unauthorized",
        CqlError::Invalid(_) => "InvalidRequest",
        CqlError::Config(_) => "ConfigurationException",
        CqlError::AlreadyExists { .. } => "AlreadyExists",
        CqlError::Unprepared(_) => "PreparedQueryNotFound",
    }
}
