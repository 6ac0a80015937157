//! Runs the statements of logs on other servers.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use helenus_cql::ast::Statement;
use helenus_cql::frame::request::{Batch, BatchStatement, Query, StatementRef};
use helenus_cql::frame::response::QueryResult;
use helenus_cql::frame::{QueryParameters, Request, Response, Rows};
use helenus_cql::parser::parse_statement;
use helenus_cql::query_log::{Entry, SEGMENT_HEADER, SEGMENT_SUFFIX, Statements, encode_record};

use super::ordered::OrderedEntries;
use super::results::ResultsWriter;
use super::target::{Target, is_refusal};
use crate::cli::fql::{ReplayArgs, TargetArgs};

/// Number of queries between two lines on the progress.
const PRINT_EVERY: u64 = 5000;
/// Maximum number of failed queries that are shown.
const SHOWN_MAX: u64 = 100;

/// Counts of a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    pub queries: u64,
    /// Queries left out because of their keyspace, or because they change the schema.
    pub left_out: u64,
    /// Failures on all targets together.
    pub failed: u64,
}

/// A target, and the file of its results.
struct Replayer<'a> {
    address: &'a str,
    args: &'a TargetArgs,
    target: Target,
    results: Option<ResultsWriter>,
}

/// Runs the statements of logs on all targets, one statement after the other.
///
/// # Errors
/// Fails if a log cannot be read, a target cannot be reached, or results cannot be written.
pub fn replay(args: &ReplayArgs) -> Result<Replayed> {
    let mut entries = OrderedEntries::open(&args.logs)?;
    let mut store = args.store_queries.as_deref().map(store).transpose()?;
    let mut replayers = args
        .target
        .iter()
        .map(|address| Replayer::start(address, args))
        .collect::<Result<Vec<_>>>()?;
    let began = Instant::now();
    let mut pace = args.speed.map(|speed| Pace::new(began, speed));
    let mut replayed = Replayed::default();
    while let Some(entry) = entries.next()? {
        if !is_wanted(&entry, args) {
            replayed.left_out += 1;
            continue;
        }
        if let Some(pace) = &mut pace {
            pace.wait_for(entry.start_ms);
        }
        if let (Some(store), Some(record)) = (&mut store, encode_record(&entry)) {
            store.write_all(&record)?;
        }
        replayed.queries += 1;
        for error in run(&mut replayers, &entry)? {
            replayed.failed += 1;
            if replayed.failed <= SHOWN_MAX {
                eprintln!("{error}: {}", shown(&entry));
            }
        }
        if replayed.queries.is_multiple_of(PRINT_EVERY) {
            let rate = replayed.queries as f64 / began.elapsed().as_secs_f64();
            eprintln!("{} queries, rate = {rate:.2}", replayed.queries);
        }
    }
    entries.warn_of_rests();
    store.map_or(Ok(()), |mut store| store.flush())?;
    replayers.into_iter().try_for_each(Replayer::finish)?;
    Ok(replayed)
}

/// Creates a segment for the replayed statements.
fn store(folder: &Path) -> Result<BufWriter<File>> {
    let unwritable = || format!("can't write {}", folder.display());
    fs::create_dir_all(folder).with_context(unwritable)?;
    let file = File::create(folder.join(format!("queries.{SEGMENT_SUFFIX}"))).with_context(unwritable)?;
    let mut store = BufWriter::new(file);
    store.write_all(&SEGMENT_HEADER)?;
    Ok(store)
}

/// Sends an entry to all targets, then waits for their answers. Returns the failures.
fn run(replayers: &mut [Replayer<'_>], entry: &Entry) -> Result<Vec<String>> {
    let sent: Vec<Result<()>> = replayers.iter_mut().map(|one| one.send(entry)).collect();
    let mut failures = Vec::new();
    for (replayer, sent) in replayers.iter_mut().zip(sent) {
        let answered = sent.and_then(|()| replayer.receive(entry));
        if let Some(results) = &mut replayer.results {
            match &answered {
                Ok(pages) => results.write(pages)?,
                Err(error) => results.write_error(&error.to_string())?,
            }
        }
        if let Err(error) = answered {
            failures.push(format!("{}: {error}", replayer.address));
            if !is_refusal(&error) {
                replayer.target = Target::connect(replayer.address, replayer.args)?;
            }
        }
    }
    Ok(failures)
}

impl<'a> Replayer<'a> {
    fn start(address: &'a str, args: &'a ReplayArgs) -> Result<Replayer<'a>> {
        let results = args.results.as_ref().map(|folder| folder.join(address));
        Ok(Replayer {
            address,
            args: &args.login,
            target: Target::connect(address, &args.login)?,
            results: results.as_deref().map(ResultsWriter::create).transpose()?,
        })
    }

    fn send(&mut self, entry: &Entry) -> Result<()> {
        if let Some(keyspace) = &entry.keyspace {
            self.target.use_keyspace(keyspace)?;
        }
        self.target.send(request(entry))
    }

    /// Returns the pages of the answer. If results are not kept, only the first page is read, because later pages have their own entries in
    /// the log.
    fn receive(&mut self, entry: &Entry) -> Result<Vec<Rows>> {
        let mut pages = Vec::new();
        loop {
            let Response::Result(QueryResult::Rows(rows)) = self.target.receive()? else {
                return Ok(pages);
            };
            let next = rows.page.paging_state.clone();
            pages.push(rows);
            let Some(next) = next.filter(|_| self.results.is_some()) else {
                return Ok(pages);
            };
            let mut request = request(entry);
            if let Request::Query(query) = &mut request {
                query.parameters.paging_state = Some(next);
            }
            self.target.send(request)?;
        }
    }

    fn finish(self) -> Result<()> {
        self.results.map_or(Ok(()), ResultsWriter::finish)
    }
}

/// Returns false if the options leave out this entry.
fn is_wanted(entry: &Entry, args: &ReplayArgs) -> bool {
    let used = entry.parameters.keyspace.as_ref().or(entry.keyspace.as_ref());
    let is_of_keyspace = args
        .keyspace
        .as_ref()
        .is_none_or(|keyspace| used.is_none_or(|used| used == keyspace));
    is_of_keyspace && (args.replay_ddl_statements || !changes_schema(entry))
}

fn changes_schema(entry: &Entry) -> bool {
    let Statements::Single(text) = &entry.statements else {
        return false;
    };
    let parsed = parse_statement(text).map(|parsed| parsed.statement);
    matches!(
        parsed,
        Ok(Statement::CreateKeyspace(_)
            | Statement::CopyKeyspace(_)
            | Statement::CreateTableLike(_)
            | Statement::CopyTable(_)
            | Statement::AlterKeyspace(_)
            | Statement::DropKeyspace(_)
            | Statement::CreateTable(_)
            | Statement::AlterTable(_)
            | Statement::DropTable(_)
            | Statement::CreateType(_)
            | Statement::AlterType(_)
            | Statement::DropType(_)
            | Statement::CreateIndex(_)
            | Statement::DropIndex(_)
            | Statement::CreateView(_)
            | Statement::AlterView(_)
            | Statement::DropView(_)
            | Statement::CreateFunction(_)
            | Statement::DropFunction(_)
            | Statement::CreateAggregate(_)
            | Statement::DropAggregate(_)
            | Statement::CreateTrigger(_)
            | Statement::DropTrigger(_))
    )
}

/// Returns the client's request with its original timestamp. Prepared statements are replaced by their texts.
fn request(entry: &Entry) -> Request {
    let parameters = QueryParameters {
        skip_metadata: false,
        timestamp_us: entry.timestamp_us(),
        ..entry.parameters.clone()
    };
    match &entry.statements {
        Statements::Single(text) => Request::Query(Box::new(Query {
            query: text.to_string(),
            parameters,
        })),
        Statements::Batch(kind, statements) => Request::Batch(Box::new(Batch {
            kind: *kind,
            statements: statements
                .iter()
                .map(|statement| BatchStatement {
                    statement: StatementRef::Query(statement.text.to_string()),
                    values: statement.values.clone(),
                })
                .collect(),
            parameters,
        })),
    }
}

/// Returns the statement of an entry on one line. Of a batch, the number of statements and the first one.
pub(super) fn shown(entry: &Entry) -> String {
    match &entry.statements {
        Statements::Single(text) => text.replace('\n', " "),
        Statements::Batch(_, statements) => {
            let first = statements.first().map_or("", |first| &first.text);
            format!(
                "BATCH of {} statements: {}",
                statements.len(),
                first.replace('\n', " ")
            )
        }
    }
}

/// Pace of a replay, which follows the times of the log.
struct Pace {
    began: Instant,
    speed: f64,
    /// Start of the first request, in milliseconds since 1970.
    first_ms: Option<i64>,
}

impl Pace {
    fn new(began: Instant, speed: f64) -> Pace {
        Pace {
            began,
            speed,
            first_ms: None,
        }
    }

    fn wait_for(&mut self, start_ms: i64) {
        let wait = self.due(start_ms).saturating_sub(self.began.elapsed());
        if !wait.is_zero() {
            std::thread::sleep(wait);
        }
    }

    /// Returns the time after the start of the replay at which a request is due.
    fn due(&mut self, start_ms: i64) -> Duration {
        let first_ms = *self.first_ms.get_or_insert(start_ms);
        let since_ms = start_ms.saturating_sub(first_ms).max(0) as u64;
        Duration::try_from_secs_f64(since_ms as f64 / 1000.0 / self.speed).unwrap_or(Duration::MAX)
    }
}

#[cfg(test)]
#[path = "replay_tests.rs"]
mod tests;
