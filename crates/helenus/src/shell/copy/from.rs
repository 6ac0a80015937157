//! COPY FROM: inserts the records of a file, many concurrently. A mark beside the file records which of them are done.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::time::Duration;

use bytes::Bytes;
use csv::StringRecord;
use helenus_cql::error::CqlError;
use helenus_cql::frame::request::Execute;
use helenus_cql::frame::{BoundValue, QueryParameters, Request, Response};
use helenus_cql::identifier::quote_identifier;
use helenus_cql::types::{CqlType, NativeType};

use super::literal::from_text;
use super::progress::Progress;
use super::resume::{self, Mark};
use super::{CopyError, about};
use crate::shell::client::StatementError;
use crate::shell::copy_statement::{CopyFile, CopyStatement, Options};
use crate::shell::session::Session;

/// Writes the rows of a file to the table. Returns true if all of them are written.
pub fn import(session: &mut Session, copy: &CopyStatement) -> Result<bool, CopyError> {
    let (source, path): (Box<dyn Read>, Option<&str>) = match &copy.file {
        CopyFile::Path(path) => (Box::new(File::open(path).map_err(about(path))?), Some(path)),
        CopyFile::Standard => (Box::new(io::stdin()), None),
    };
    let options = &copy.options;
    let mut records = csv::ReaderBuilder::new()
        .has_headers(options.has_header)
        .delimiter(options.delimiter)
        .quote(options.quote)
        .double_quote(options.escape == options.quote)
        .escape((options.escape != options.quote).then_some(options.escape))
        .flexible(true)
        .from_reader(source);
    let header = match options.has_header {
        true => Some(
            records
                .headers()
                .map_err(|error| format!("COPY: {error}"))?
                .clone(),
        ),
        false => None,
    };
    let target = Target::prepare(session, copy, header.as_ref())?;
    let mark = match (options.is_resuming, path) {
        (false, _) => Mark::default(),
        (true, Some(_)) if target.is_counting => {
            return Err(
                "COPY: counters are not resumed: a row under way may be counted twice"
                    .to_owned()
                    .into(),
            );
        }
        (true, Some(path)) => resume::read(path, &target.statement)?,
        (true, None) => return Err("COPY: what comes from STDIN can't be resumed".to_owned().into()),
    };
    let mut import = Import {
        session,
        options,
        mark: Mark {
            what: target.statement.clone(),
            ..mark
        },
        path: path.filter(|_| !target.is_counting),
        errors: ErrorFile::new(copy),
        target,
        progress: Progress::start(),
        under_way: HashMap::new(),
        parse_errors: 0,
        insert_errors: 0,
    };
    let result = import.run(&mut records);
    import.finish(result)
}

/// The prepared statement that inserts a record.
struct Target {
    statement: String,
    id: Bytes,
    /// The marker and the type of each field of a record. `None` if the field is skipped.
    fields: Vec<Option<(usize, CqlType)>>,
    marker_count: usize,
    /// True if the table has counters. Their updates must not be repeated.
    is_counting: bool,
}

impl Target {
    fn prepare(
        session: &mut Session,
        copy: &CopyStatement,
        header: Option<&StringRecord>,
    ) -> Result<Target, CopyError> {
        let select = session.client.prepare(&format!("SELECT * FROM {}", copy.table))?;
        let table = select.result_metadata.columns.iter();
        let types: Vec<(String, CqlType)> = table
            .map(|column| (quote_identifier(&column.name), column.ty.clone()))
            .collect();
        let given: Vec<String> = match (copy.columns.as_slice(), header) {
            ([], Some(header)) => header.iter().map(quote_identifier).collect(),
            ([], None) => types.iter().map(|(name, _)| name.clone()).collect(),
            (columns, _) => columns.to_vec(),
        };
        let mut fields = Vec::new();
        for name in &given {
            let known = types.iter().find(|(known, _)| known == name);
            let (_, ty) = known.ok_or_else(|| format!("COPY: {} has no column {name}", copy.table))?;
            let is_skipped = copy.options.skip_columns.contains(name);
            fields.push((!is_skipped).then(|| (name.clone(), ty.clone())));
        }
        let taken: Vec<(String, CqlType)> = fields.iter().flatten().cloned().collect();
        let is_counter = |ty: &CqlType| matches!(ty, CqlType::Native(NativeType::Counter));
        let is_counting = types.iter().any(|(_, ty)| is_counter(ty));
        let (counters, keys): (Vec<_>, Vec<_>) = taken.into_iter().partition(|(_, ty)| is_counter(ty));
        let statement = statement(copy, &counters, &keys);
        let order: Vec<&String> = counters.iter().chain(&keys).map(|(name, _)| name).collect();
        let markers = fields.into_iter().map(|field| {
            let (name, ty) = field?;
            Some((order.iter().position(|known| **known == name)?, ty))
        });
        let fields = markers.collect();
        let marker_count = order.len();
        let prepared = session.client.prepare(&statement)?;
        Ok(Target {
            statement,
            id: prepared.id,
            fields,
            marker_count,
            is_counting,
        })
    }

    /// Returns the statement's values for a record.
    fn bind(&self, record: &StringRecord, null: &str) -> Result<Vec<BoundValue>, String> {
        if record.len() != self.fields.len() {
            return Err(format!(
                "{} fields where {} are expected",
                record.len(),
                self.fields.len()
            ));
        }
        let mut values = vec![BoundValue::Null; self.marker_count];
        for (text, field) in record.iter().zip(&self.fields) {
            let Some((at, ty)) = field else { continue };
            if let Some(value) = values.get_mut(*at).filter(|_| text != null) {
                *value = BoundValue::Set(from_text(ty, text, null)?);
            }
        }
        Ok(values)
    }
}

/// Returns an INSERT, or an UPDATE if there are counters. The other columns of a counter table are its key.
fn statement(copy: &CopyStatement, counters: &[(String, CqlType)], others: &[(String, CqlType)]) -> String {
    let table = &copy.table;
    let ttl = copy
        .options
        .ttl
        .map_or(String::new(), |ttl| format!(" USING TTL {ttl}"));
    let names: Vec<&str> = others.iter().map(|(name, _)| name.as_str()).collect();
    if counters.is_empty() {
        let markers = vec!["?"; names.len()].join(", ");
        return format!(
            "INSERT INTO {table} ({}) VALUES ({markers}){ttl}",
            names.join(", ")
        );
    }
    let counts = counters.iter().map(|(name, _)| format!("{name} = {name} + ?"));
    let counts: Vec<String> = counts.collect();
    let keys: Vec<String> = names.iter().map(|name| format!("{name} = ?")).collect();
    format!(
        "UPDATE {table}{ttl} SET {} WHERE {}",
        counts.join(", "),
        keys.join(" AND ")
    )
}

/// A row whose answer is awaited.
struct Sent {
    /// Number of the record in the file, from 0.
    record_number: u64,
    record: StringRecord,
    execute: Execute,
    attempts: u32,
}

/// The state of a COPY FROM.
struct Import<'s, 'c> {
    session: &'s mut Session,
    options: &'c Options,
    target: Target,
    /// The file beside which marks are written. `None` if the COPY cannot be resumed.
    path: Option<&'c str>,
    mark: Mark,
    errors: ErrorFile,
    progress: Progress,
    under_way: HashMap<i16, Sent>,
    parse_errors: u64,
    insert_errors: u64,
}

impl Import<'_, '_> {
    fn run(&mut self, records: &mut csv::Reader<Box<dyn Read>>) -> Result<(), CopyError> {
        let mut record = StringRecord::new();
        let mut number = 0;
        let skipped = self.options.skip_rows.max(self.mark.rows);
        let end = self
            .options
            .rows_max
            .map(|max| max.saturating_add(self.options.skip_rows));
        loop {
            if end.is_some_and(|end| number >= end) {
                break;
            }
            let is_one = match records.read_record(&mut record) {
                Ok(is_one) => is_one,
                Err(error) if error.is_io_error() => return Err(format!("COPY: {error}").into()),
                Err(error) => {
                    self.note_parse_error(&record, &error.to_string())?;
                    number += 1;
                    continue;
                }
            };
            if !is_one {
                break;
            }
            if number >= skipped {
                self.take(number, &record)?;
            }
            number += 1;
            self.note_mark(number)?;
        }
        while !self.under_way.is_empty() {
            self.receive()?;
        }
        Ok(())
    }

    /// Sends a record. Waits first if the maximum number of requests is in flight.
    fn take(&mut self, number: u64, record: &StringRecord) -> Result<(), CopyError> {
        let values = match self.target.bind(record, &self.options.null) {
            Ok(values) => values,
            Err(message) => return self.note_parse_error(record, &message),
        };
        while self.under_way.len() >= self.options.in_flight_max {
            self.receive()?;
        }
        self.keep_pace();
        let parameters = QueryParameters {
            values: values.into(),
            page_size: None,
            ..self.session.parameters(None)
        };
        let execute = Execute {
            id: self.target.id.clone(),
            result_metadata_id: None,
            parameters,
        };
        self.send(Sent {
            record_number: number,
            record: record.clone(),
            execute,
            attempts: 0,
        })
    }

    fn send(&mut self, mut sent: Sent) -> Result<(), CopyError> {
        sent.attempts += 1;
        let request = Request::Execute(Box::new(sent.execute.clone()));
        let id = self.session.client.send(request, false)?;
        self.under_way.insert(id, sent);
        Ok(())
    }

    /// Waits if the rate of rows is higher than allowed.
    fn keep_pace(&self) {
        let due = Duration::from_secs_f64(self.progress.rows as f64 / f64::from(self.options.ingest_rate));
        if let Some(early) = due.checked_sub(self.progress.elapsed()) {
            std::thread::sleep(early);
        }
    }

    /// Waits for an answer. Sends the row again if its error is temporary.
    fn receive(&mut self) -> Result<(), CopyError> {
        let (id, message) = self.session.client.receive()?;
        let Some(sent) = self.under_way.remove(&id) else {
            return Ok(());
        };
        match message.response {
            Response::Error(error)
                if self.may_repeat(&error) && sent.attempts < self.options.attempts_max =>
            {
                self.send(sent)
            }
            Response::Error(error) => self.note_insert_error(&sent.record, error),
            _ => {
                self.progress.add(1);
                Ok(())
            }
        }
    }

    fn may_repeat(&self, error: &CqlError) -> bool {
        match error {
            CqlError::Overloaded(_) | CqlError::Unavailable { .. } | CqlError::IsBootstrapping(_) => true,
            CqlError::WriteTimeout { .. } | CqlError::WriteFailure { .. } => !self.target.is_counting,
            _ => false,
        }
    }

    fn note_parse_error(&mut self, record: &StringRecord, message: &str) -> Result<(), CopyError> {
        self.parse_errors += 1;
        self.errors.add(record, message)?;
        match self.options.parse_errors_max {
            Some(max) if self.parse_errors > max => {
                Err(format!("COPY: more than {max} rows can't be read").into())
            }
            _ => Ok(()),
        }
    }

    fn note_insert_error(&mut self, record: &StringRecord, error: CqlError) -> Result<(), CopyError> {
        self.insert_errors += 1;
        self.errors.add(record, &error.to_string())?;
        match self.options.insert_errors_max {
            Some(max) if self.insert_errors > max => Err(StatementError::Server(error).into()),
            _ => Ok(()),
        }
    }

    /// Writes a mark after every chunk. All records before the mark are done.
    fn note_mark(&mut self, read: u64) -> Result<(), CopyError> {
        let (Some(path), true) = (self.path, read.is_multiple_of(self.options.chunk_size)) else {
            return Ok(());
        };
        let first_under_way = self.under_way.values().map(|sent| sent.record_number).min();
        self.mark.rows = self.mark.rows.max(first_under_way.unwrap_or(read));
        Ok(resume::write(path, &self.mark)?)
    }

    /// Writes the last mark if the COPY failed, or removes the mark. Prints the result.
    fn finish(mut self, result: Result<(), CopyError>) -> Result<bool, CopyError> {
        self.progress.finish();
        self.session.client.abandon();
        let failed = self.parse_errors + self.insert_errors;
        if failed > 0 {
            eprintln!("{failed} rows were not taken; they are in {}", self.errors.path);
        }
        let Err(error) = result else {
            if let Some(path) = self.path {
                resume::remove(path);
            }
            let (rows, seconds) = (self.progress.rows, self.progress.elapsed().as_secs_f64());
            println!("{rows} rows imported from 1 file in {seconds:.3} seconds.");
            return Ok(failed == 0);
        };
        if let (Some(path), Some(first)) = (
            self.path,
            self.under_way.values().map(|sent| sent.record_number).min(),
        ) {
            self.mark.rows = self.mark.rows.max(first);
            resume::write(path, &self.mark)?;
            eprintln!(
                "COPY stopped; the rows before number {} are done; the same COPY WITH RESUME = true goes on there.",
                self.mark.rows + 1
            );
        }
        Err(error)
    }
}

/// A CSV file of the rows that could not be inserted. It is created with the first of them.
struct ErrorFile {
    path: String,
    writer: Option<csv::Writer<File>>,
}

impl ErrorFile {
    fn new(copy: &CopyStatement) -> ErrorFile {
        let name = copy.table.replace(['.', '"'], "_");
        ErrorFile {
            path: copy
                .options
                .error_file
                .clone()
                .unwrap_or_else(|| format!("import_{name}.err")),
            writer: None,
        }
    }

    /// Adds a row. Prints the reason of the first one.
    fn add(&mut self, record: &StringRecord, message: &str) -> Result<(), String> {
        let writer = match &mut self.writer {
            Some(writer) => writer,
            none => {
                eprintln!("The first row that is not taken: {message}");
                let file = File::options()
                    .create(true)
                    .append(true)
                    .open(&self.path)
                    .map_err(about(&self.path))?;
                let builder = csv::WriterBuilder::new().flexible(true).from_writer(file);
                none.insert(builder)
            }
        };
        let written = writer.write_record(record).and_then(|()| Ok(writer.flush()?));
        written.map_err(|error| format!("{}: {error}", self.path))
    }
}
