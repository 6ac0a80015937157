//! Entries as text, in the format of `fqltool dump`.

use std::fmt::Write as _;
use std::io::{ErrorKind, Write};
use std::time::Duration;

use anyhow::Result;
use helenus_cql::frame::BoundValue;
use helenus_cql::frame::request::BatchKind;
use helenus_cql::query_log::{Entry, Statements};

use super::hex::push_value;
use super::reader::LogReader;
use crate::cli::fql::DumpArgs;

/// Interval at which a followed log is read again.
const POLL: Duration = Duration::from_millis(100);

/// Prints the entries of logs, one log after the other.
///
/// # Errors
/// Fails if a log cannot be read or stdout cannot be written.
pub fn dump(args: &DumpArgs) -> Result<()> {
    let mut readers = args
        .logs
        .iter()
        .map(|path| LogReader::open(path))
        .collect::<Result<Vec<_>>>()?;
    let mut out = std::io::stdout().lock();
    loop {
        for reader in &mut readers {
            while let Some((entry, _)) = reader.next()? {
                match out.write_all(text(&entry).as_bytes()) {
                    // A broken pipe is not an error: the reader of the output has ended.
                    Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
                    written => written?,
                }
            }
        }
        out.flush()?;
        if !args.follow {
            readers.iter().for_each(LogReader::warn_of_rest);
            return Ok(());
        }
        std::thread::sleep(POLL);
    }
}

/// Returns an entry, followed by an empty line.
pub fn text(entry: &Entry) -> String {
    let mut out = String::new();
    let kind = match entry.statements {
        Statements::Single(_) => "single-query",
        Statements::Batch(..) => "batch",
    };
    // Writing to a string cannot fail.
    let _ = writeln!(out, "Type: {kind}");
    let _ = writeln!(out, "Query start time: {}", entry.start_ms);
    let _ = writeln!(out, "Protocol version: {}", entry.protocol_version.number());
    let generated = entry.generated_timestamp_us.unwrap_or(i64::MIN);
    let _ = writeln!(out, "Generated timestamp:{generated}");
    let _ = writeln!(out, "Generated nowInSeconds:{}", entry.generated_now_s);
    let keyspace = entry.parameters.keyspace.as_ref().or(entry.keyspace.as_ref());
    let _ = writeln!(out, "Keyspace: {}", keyspace.map_or("", String::as_str));
    let _ = writeln!(out, "Consistency: {}", entry.parameters.consistency);
    match &entry.statements {
        Statements::Single(text) => push_statement(&mut out, text, entry.parameters.values.iter()),
        Statements::Batch(kind, statements) => {
            let _ = writeln!(out, "Batch type: {}", name(*kind));
            for statement in statements {
                push_statement(&mut out, &statement.text, statement.values.iter());
            }
        }
    }
    out.push('\n');
    out
}

fn name(kind: BatchKind) -> &'static str {
    match kind {
        BatchKind::Logged => "LOGGED",
        BatchKind::Unlogged => "UNLOGGED",
        BatchKind::Counter => "COUNTER",
    }
}

/// Appends a statement with its values. A separator follows every value but the first, as in fqltool.
fn push_statement<'v>(out: &mut String, text: &str, values: impl Iterator<Item = &'v BoundValue>) {
    let _ = writeln!(out, "Query: {text}");
    out.push_str("Values: \n");
    for (place, value) in values.enumerate() {
        match value {
            BoundValue::Set(bytes) => push_value(out, bytes),
            BoundValue::Null => out.push_str("null\n"),
            BoundValue::Unset => out.push_str("unset\n"),
        }
        if place > 0 {
            out.push_str("-----\n");
        }
    }
}
