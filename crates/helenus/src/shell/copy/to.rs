//! COPY TO: writes the pages of a table to a file. A mark beside the file has the position of the next page.

use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};

use bytes::Bytes;
use helenus_cql::frame::response::{QueryResult, Response, Rows};
use helenus_cql::frame::{QueryParameters, ResponseMessage};

use super::progress::Progress;
use super::resume::{self, Mark};
use super::written::written;
use super::{CopyError, about};
use crate::shell::client::StatementError;
use crate::shell::copy_statement::{CopyFile, CopyStatement, Options};
use crate::shell::session::Session;

/// Writes the table to a file. Returns true if all of it is written.
pub fn export(session: &mut Session, copy: &CopyStatement) -> Result<bool, CopyError> {
    let columns = match copy.columns.as_slice() {
        [] => "*".to_owned(),
        columns => columns.join(", "),
    };
    let statement = format!("SELECT {columns} FROM {}", copy.table);
    let mut progress = Progress::start();
    let result = match &copy.file {
        CopyFile::Standard => {
            let mut export = Export::new(statement, &copy.options, Mark::default());
            let mut out = BufWriter::new(io::stdout());
            let result = export.run(session, &mut out, &mut progress, |_, _| Ok(()));
            out.flush().map_err(about("the standard output"))?;
            result
        }
        CopyFile::Path(path) => export_to_file(session, copy, path, statement, &mut progress),
    };
    progress.finish();
    result?;
    if matches!(copy.file, CopyFile::Path(_)) {
        let seconds = progress.elapsed().as_secs_f64();
        println!(
            "{} rows exported to 1 file in {seconds:.3} seconds.",
            progress.rows
        );
    }
    Ok(true)
}

fn export_to_file(
    session: &mut Session,
    copy: &CopyStatement,
    path: &str,
    statement: String,
    progress: &mut Progress,
) -> Result<(), CopyError> {
    let (mut file, mark) = match copy.options.is_resuming {
        true => {
            let mark = resume::read(path, &statement)?;
            let file = File::options().write(true).open(path).map_err(about(path))?;
            (file, mark)
        }
        false => (File::create(path).map_err(about(path))?, Mark::default()),
    };
    file.set_len(mark.file_len)
        .and_then(|()| file.seek(io::SeekFrom::End(0)))
        .map_err(about(path))?;
    let mut export = Export::new(statement, &copy.options, mark);
    let result = export.run(session, &mut file, progress, |file, mark| {
        let file_len = file.stream_position().map_err(about(path))?;
        resume::write(path, &Mark { file_len, ..mark })
    });
    match &result {
        Ok(()) => resume::remove(path),
        Err(_) if progress.rows > 0 => eprintln!(
            "COPY stopped after {} rows; the same COPY WITH RESUME = true goes on there.",
            export.mark.rows
        ),
        Err(_) => {}
    }
    result
}

/// The state of a COPY TO.
struct Export<'o> {
    options: &'o Options,
    mark: Mark,
}

impl Export<'_> {
    fn new(statement: String, options: &Options, mark: Mark) -> Export<'_> {
        Export {
            options,
            mark: Mark {
                what: statement,
                ..mark
            },
        }
    }

    /// Writes all pages. Calls `note` after each of them with the position of the next one.
    fn run<W: Write>(
        &mut self,
        session: &mut Session,
        out: &mut W,
        progress: &mut Progress,
        note: impl Fn(&mut W, Mark) -> Result<(), String>,
    ) -> Result<(), CopyError> {
        let mut is_first = self.mark.paging_state.is_empty();
        loop {
            let rows = self.fetch(session)?;
            let left = self
                .options
                .rows_max
                .map(|max| max.saturating_sub(self.mark.rows));
            let taken = left.unwrap_or(u64::MAX).min(rows.content.row_count() as u64);
            let text = self.csv(&rows, taken, is_first && self.options.has_header)?;
            out.write_all(&text).map_err(about("COPY"))?;
            is_first = false;
            progress.add(taken);
            self.mark.rows += taken;
            let is_enough = left.is_some_and(|left| left <= taken);
            match rows.page.paging_state {
                Some(state) if !is_enough => self.mark.paging_state = state.to_vec(),
                _ => return Ok(()),
            }
            note(out, self.mark.clone())?;
        }
    }

    fn fetch(&self, session: &mut Session) -> Result<Rows, CopyError> {
        let state = &self.mark.paging_state;
        let parameters = QueryParameters {
            page_size: Some(self.options.page_size),
            ..session.parameters((!state.is_empty()).then(|| Bytes::copy_from_slice(state)))
        };
        let ResponseMessage { response, .. } = session.client.query(&self.mark.what, parameters, false)?;
        match response {
            Response::Result(QueryResult::Rows(rows)) => Ok(rows),
            other => {
                let error = anyhow::anyhow!("the server answered SELECT with {:?}", other.opcode());
                Err(StatementError::Disconnected(error).into())
            }
        }
    }

    fn csv(&self, rows: &Rows, taken: u64, has_header: bool) -> Result<Vec<u8>, String> {
        let options = self.options;
        let mut csv = csv::WriterBuilder::new()
            .delimiter(options.delimiter)
            .quote(options.quote)
            .double_quote(options.escape == options.quote)
            .escape(options.escape)
            .from_writer(Vec::new());
        let failed = |error: csv::Error| format!("COPY: {error}");
        let columns = &rows.metadata.columns;
        if has_header {
            csv.write_record(columns.iter().map(|column| &*column.name))
                .map_err(failed)?;
        }
        for row in rows.content.iter().take(taken as usize) {
            let cells = columns.iter().zip(&row).map(|(column, cell)| match cell {
                Some(bytes) => escaped(written(&column.ty, bytes, &options.null), options),
                None => options.null.clone(),
            });
            csv.write_record(cells).map_err(failed)?;
        }
        csv.into_inner().map_err(|error| format!("COPY: {error}"))
    }
}

/// Doubles the escape character, which the CSV writer does not do.
fn escaped(text: String, options: &Options) -> String {
    let escape = char::from(options.escape);
    match options.escape != options.quote && text.contains(escape) {
        true => text.replace(escape, &format!("{escape}{escape}")),
        false => text,
    }
}
