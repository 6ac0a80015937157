//! Results of a target: a file in which each line is the result of a query as JSON.
//!
//! `{"columns":[["keyspace","table","name","type"],…],"rows":[["hex or null",…],…]}`; the result of a failed query has `"error"`.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Lines, Write};
use std::path::Path;

use anyhow::{Context, Result};
use bytes::Bytes;
use helenus_cql::frame::{ColumnSpec, Rows};
use serde_json::{Value, json};

const FILE: &str = "results.jsonl";

/// Writer of the results of a target.
pub struct ResultsWriter(BufWriter<File>);

impl ResultsWriter {
    /// Creates the file of results.
    ///
    /// # Errors
    /// Fails if the folder cannot be written.
    pub fn create(folder: &Path) -> Result<ResultsWriter> {
        let unwritable = || format!("can't write {}", folder.display());
        fs::create_dir_all(folder).with_context(unwritable)?;
        let file = File::create(folder.join(FILE)).with_context(unwritable)?;
        Ok(ResultsWriter(BufWriter::new(file)))
    }

    /// Writes the result of a query. `pages` is empty if the result has no rows.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn write(&mut self, pages: &[Rows]) -> Result<()> {
        let columns: Vec<Value> = pages
            .first()
            .map(|rows| rows.metadata.columns.iter().map(column).collect())
            .unwrap_or_default();
        write!(self.0, "{{\"columns\":{},\"rows\":[", Value::Array(columns))?;
        let rows = pages.iter().flat_map(|page| page.content.iter());
        for (place, row) in rows.enumerate() {
            let cells = row.iter().map(|cell| cell.as_ref().map(hex)).collect::<Vec<_>>();
            let comma = if place > 0 { "," } else { "" };
            write!(self.0, "{comma}{}", json!(cells))?;
        }
        Ok(writeln!(self.0, "]}}")?)
    }

    /// Writes the error of a query.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn write_error(&mut self, error: &str) -> Result<()> {
        Ok(writeln!(self.0, "{}", json!({ "error": error }))?)
    }

    /// Writes buffered results.
    ///
    /// # Errors
    /// Fails if they cannot be written.
    pub fn finish(mut self) -> Result<()> {
        Ok(self.0.flush()?)
    }
}

fn column(spec: &ColumnSpec) -> Value {
    json!([*spec.keyspace, *spec.table, *spec.name, spec.ty.to_string()])
}

fn hex(bytes: &Bytes) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reader of the results of a target.
pub struct ResultsReader(Lines<BufReader<File>>);

impl ResultsReader {
    /// Opens the results in a folder.
    ///
    /// # Errors
    /// Fails if the folder has no results.
    pub fn open(folder: &Path) -> Result<ResultsReader> {
        let path = folder.join(FILE);
        let file = File::open(&path).with_context(|| format!("can't read {}", path.display()))?;
        Ok(ResultsReader(BufReader::new(file).lines()))
    }

    /// Returns the next result. `None` at the end.
    ///
    /// # Errors
    /// Fails if it cannot be read.
    pub fn next(&mut self) -> Result<Option<Value>> {
        let Some(line) = self.0.next() else {
            return Ok(None);
        };
        Ok(Some(serde_json::from_str(&line?)?))
    }
}
