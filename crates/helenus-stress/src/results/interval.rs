//! `intervals.csv`: a row for each interval, below a row of column names.
//!
//! `elapsed_s,lag_ms`, then `OPERATION_ops`, `_errors`, `_p50_us`, `_p99_us`, `_p99_9_us`, `_max_us` for each operation, then
//! `server_cpu_cores`, `server_rss_bytes` and `server_NAME` for each scraped gauge. An empty field means "not known".

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// The figures of one interval, usually a second.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Interval {
    /// Seconds from the run's start to the interval's end.
    pub elapsed_s: f64,
    /// Lag of an open loop, in milliseconds. `None` in a closed loop.
    pub lag_ms: Option<f64>,
    /// Figures of operations by name.
    pub operations: BTreeMap<String, IntervalOperation>,
    pub server: ServerSample,
}

/// One kind of operation in an interval. Latencies are response times of successes, and zero if there were none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IntervalOperation {
    /// Number of successes, not divided by the interval's length.
    pub ops: u64,
    pub errors: u64,
    pub p50_us: u64,
    pub p99_us: u64,
    pub p99_9_us: u64,
    pub max_us: u64,
}

/// The server's figures in an interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerSample {
    /// CPU time divided by wall-clock time.
    pub cpu_cores: Option<f64>,
    pub rss_bytes: Option<u64>,
    /// Other gauges, by a name of letters, digits and underscores.
    pub gauges: BTreeMap<String, f64>,
}

const OPERATION_SUFFIXES: [&str; 6] = ["_ops", "_errors", "_p50_us", "_p99_us", "_p99_9_us", "_max_us"];
const SERVER_PREFIX: &str = "server_";

/// Operations and gauges that have columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Columns {
    operations: BTreeSet<String>,
    gauges: BTreeSet<String>,
}

impl Columns {
    /// Adds the names of an interval. Returns true if one of them is new.
    fn extend(&mut self, interval: &Interval) -> bool {
        let before = (self.operations.len(), self.gauges.len());
        self.operations.extend(interval.operations.keys().cloned());
        self.gauges.extend(interval.server.gauges.keys().cloned());
        before != (self.operations.len(), self.gauges.len())
    }

    fn head(&self) -> Vec<String> {
        let operations = self.operations.iter().flat_map(|name| {
            OPERATION_SUFFIXES
                .iter()
                .map(move |suffix| format!("{name}{suffix}"))
        });
        ["elapsed_s", "lag_ms"]
            .map(str::to_owned)
            .into_iter()
            .chain(operations)
            .chain(["server_cpu_cores", "server_rss_bytes"].map(str::to_owned))
            .chain(self.gauges.iter().map(|name| format!("{SERVER_PREFIX}{name}")))
            .collect()
    }

    fn row(&self, interval: &Interval) -> Vec<String> {
        let mut row = vec![format!("{:.3}", interval.elapsed_s), text(interval.lag_ms)];
        for name in &self.operations {
            let of = interval.operations.get(name).copied().unwrap_or_default();
            row.extend(of.fields().map(|field| field.to_string()));
        }
        row.push(text(interval.server.cpu_cores));
        row.push(text(interval.server.rss_bytes));
        row.extend(
            self.gauges
                .iter()
                .map(|name| text(interval.server.gauges.get(name))),
        );
        row
    }
}

impl IntervalOperation {
    /// Returns the fields in the order of [`OPERATION_SUFFIXES`].
    fn fields(&self) -> [u64; 6] {
        [
            self.ops,
            self.errors,
            self.p50_us,
            self.p99_us,
            self.p99_9_us,
            self.max_us,
        ]
    }

    fn field_mut(&mut self, index: usize) -> &mut u64 {
        match index {
            0 => &mut self.ops,
            1 => &mut self.errors,
            2 => &mut self.p50_us,
            3 => &mut self.p99_us,
            4 => &mut self.p99_9_us,
            _ => &mut self.max_us,
        }
    }
}

fn text(value: Option<impl ToString>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

/// Writer of a file of intervals. If an interval has a new operation or gauge, the file is written again with more columns.
pub struct IntervalsWriter {
    path: PathBuf,
    writer: csv::Writer<File>,
    columns: Columns,
    written: Vec<Interval>,
}

impl IntervalsWriter {
    /// Creates the file, or empties it.
    pub fn create(path: &Path) -> Result<Self> {
        let columns = Columns::default();
        let writer = begin(path, &columns)?;
        Ok(Self {
            path: path.to_owned(),
            writer,
            columns,
            written: Vec::new(),
        })
    }

    /// Appends one interval, and flushes it to the file.
    pub fn push(&mut self, interval: Interval) -> Result<()> {
        if self.columns.extend(&interval) {
            self.writer = begin(&self.path, &self.columns)?;
            for earlier in &self.written {
                self.writer.write_record(self.columns.row(earlier))?;
            }
        }
        self.writer.write_record(self.columns.row(&interval))?;
        self.writer.flush()?;
        self.written.push(interval);
        Ok(())
    }
}

fn begin(path: &Path, columns: &Columns) -> Result<csv::Writer<File>> {
    let mut writer =
        csv::Writer::from_path(path).with_context(|| format!("can't write {}", path.display()))?;
    writer.write_record(columns.head())?;
    writer.flush()?;
    Ok(writer)
}

/// Reads a file of intervals.
pub fn read_intervals(path: &Path) -> Result<Vec<Interval>> {
    let mut reader = csv::Reader::from_path(path)?;
    let columns = reader
        .headers()?
        .iter()
        .map(Column::parse)
        .collect::<Result<Vec<_>>>()?;
    reader
        .records()
        .map(|record| parse_row(&columns, &record?))
        .collect()
}

/// The content of a column of the file.
enum Column {
    Elapsed,
    Lag,
    Operation { name: String, field: usize },
    CpuCores,
    RssBytes,
    Gauge(String),
}

impl Column {
    fn parse(head: &str) -> Result<Self> {
        Ok(match head {
            "elapsed_s" => Column::Elapsed,
            "lag_ms" => Column::Lag,
            "server_cpu_cores" => Column::CpuCores,
            "server_rss_bytes" => Column::RssBytes,
            _ => match head.strip_prefix(SERVER_PREFIX) {
                Some(name) => Column::Gauge(name.to_owned()),
                None => Self::operation(head)?,
            },
        })
    }

    fn operation(head: &str) -> Result<Self> {
        for (field, suffix) in OPERATION_SUFFIXES.iter().enumerate() {
            if let Some(name) = head.strip_suffix(suffix) {
                return Ok(Column::Operation {
                    name: name.to_owned(),
                    field,
                });
            }
        }
        bail!("a column of unknown meaning: {head:?}")
    }
}

fn parse_row(columns: &[Column], record: &csv::StringRecord) -> Result<Interval> {
    let mut interval = Interval::default();
    for (column, field) in columns.iter().zip(record).filter(|(_, field)| !field.is_empty()) {
        set(&mut interval, column, field)
            .with_context(|| format!("{field:?} in row {}", record.position().map_or(0, |at| at.line())))?;
    }
    Ok(interval)
}

fn set(interval: &mut Interval, column: &Column, field: &str) -> Result<()> {
    match column {
        Column::Elapsed => interval.elapsed_s = field.parse()?,
        Column::Lag => interval.lag_ms = Some(field.parse()?),
        Column::CpuCores => interval.server.cpu_cores = Some(field.parse()?),
        Column::RssBytes => interval.server.rss_bytes = Some(field.parse()?),
        Column::Gauge(name) => {
            interval.server.gauges.insert(name.clone(), field.parse()?);
        }
        Column::Operation { name, field: index } => {
            let operation = interval.operations.entry(name.clone()).or_default();
            *operation.field_mut(*index) = field.parse()?;
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "interval_tests.rs"]
mod tests;
