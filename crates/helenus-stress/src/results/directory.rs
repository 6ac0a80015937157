//! A result folder. It is written while the load runs, and read by `report`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::comparison::Comparison;
use super::histograms::{HistogramLogWriter, LatencyHistogram, read_totals, response_tag, service_tag};
use super::interval::{Interval, IntervalsWriter, read_intervals};
use super::run::{FORMAT, RunResult};

pub const RUN_FILE: &str = "run.json";
pub const INTERVALS_FILE: &str = "intervals.csv";
pub const HISTOGRAMS_FILE: &str = "histograms.hlog";
pub const COMPARISON_FILE: &str = "compare.json";
pub const REPORT_FILE: &str = "report.html";

/// Latencies of one operation in one interval.
pub struct IntervalHistograms<'a> {
    pub operation: &'a str,
    pub response: &'a LatencyHistogram,
    pub service: &'a LatencyHistogram,
}

/// Writer of a run's folder: intervals when they end, and the result at the end.
pub struct RunWriter {
    directory: PathBuf,
    intervals: IntervalsWriter,
    histograms: HistogramLogWriter<BufWriter<File>>,
    /// Seconds from the run's start to the end of the last interval.
    elapsed_s: f64,
}

impl RunWriter {
    /// Creates the folder. Files of an earlier run in it are replaced.
    pub fn create(directory: &Path, started_at: SystemTime) -> Result<Self> {
        fs::create_dir_all(directory).with_context(|| format!("can't make {}", directory.display()))?;
        let path = directory.join(HISTOGRAMS_FILE);
        let log = File::create(&path).with_context(|| format!("can't write {}", path.display()))?;
        Ok(Self {
            directory: directory.to_owned(),
            intervals: IntervalsWriter::create(&directory.join(INTERVALS_FILE))?,
            histograms: HistogramLogWriter::begin(BufWriter::new(log), started_at)?,
            elapsed_s: 0.0,
        })
    }

    /// Appends an interval with its latencies.
    pub fn push(&mut self, interval: Interval, histograms: &[IntervalHistograms<'_>]) -> Result<()> {
        let start = Duration::from_secs_f64(self.elapsed_s);
        let duration = Duration::from_secs_f64((interval.elapsed_s - self.elapsed_s).max(0.0));
        for of in histograms {
            self.histograms
                .append(&response_tag(of.operation), start, duration, of.response)?;
            self.histograms
                .append(&service_tag(of.operation), start, duration, of.service)?;
        }
        self.histograms.flush()?;
        self.elapsed_s = interval.elapsed_s;
        self.intervals.push(interval)
    }

    /// Writes `run.json`.
    pub fn finish(mut self, result: &RunResult) -> Result<()> {
        self.histograms.flush()?;
        write_json(&self.directory.join(RUN_FILE), result)
    }
}

/// Writes `compare.json`. Creates its folder if necessary.
pub fn write_comparison(directory: &Path, comparison: &Comparison) -> Result<()> {
    fs::create_dir_all(directory).with_context(|| format!("can't make {}", directory.display()))?;
    write_json(&directory.join(COMPARISON_FILE), comparison)
}

/// Content of a run's folder.
#[derive(Debug)]
pub struct LoadedRun {
    pub directory: PathBuf,
    pub result: RunResult,
    pub intervals: Vec<Interval>,
    /// Histograms of the whole run, by tag.
    pub histograms: BTreeMap<String, LatencyHistogram>,
}

impl LoadedRun {
    /// Reads a run's folder. Intervals and histograms may be missing; a broken file is an error.
    pub fn read(directory: &Path) -> Result<Self> {
        let result: RunResult = read_json(&directory.join(RUN_FILE))?;
        check_format(result.format, directory)?;
        let intervals = directory.join(INTERVALS_FILE);
        let histograms = directory.join(HISTOGRAMS_FILE);
        Ok(Self {
            directory: directory.to_owned(),
            result,
            intervals: optional(&intervals, read_intervals)?,
            histograms: optional(&histograms, |path| read_totals(&fs::read(path)?))?,
        })
    }
}

/// The content of a folder.
#[derive(Debug)]
pub enum Loaded {
    Run(Box<LoadedRun>),
    Comparison(Box<Comparison>),
}

impl Loaded {
    /// Reads a folder of either kind.
    pub fn read(directory: &Path) -> Result<Self> {
        let comparison = directory.join(COMPARISON_FILE);
        if comparison.exists() {
            let comparison: Comparison = read_json(&comparison)?;
            check_format(comparison.format, directory)?;
            return Ok(Loaded::Comparison(Box::new(comparison)));
        }
        if !directory.join(RUN_FILE).exists() {
            bail!(
                "{} holds neither {RUN_FILE} nor {COMPARISON_FILE}",
                directory.display()
            );
        }
        Ok(Loaded::Run(Box::new(LoadedRun::read(directory)?)))
    }
}

fn check_format(format: u32, directory: &Path) -> Result<()> {
    if format != FORMAT {
        bail!(
            "{} was written in format {format}; this version reads {FORMAT}",
            directory.display()
        );
    }
    Ok(())
}

fn optional<T: Default>(path: &Path, read: impl FnOnce(&Path) -> Result<T>) -> Result<T> {
    if !path.exists() {
        return Ok(T::default());
    }
    read(path).with_context(|| format!("can't read {}", path.display()))
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value)? + "\n";
    fs::write(path, text).with_context(|| format!("can't write {}", path.display()))
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let text = fs::read_to_string(path).with_context(|| format!("can't read {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("can't read {}", path.display()))
}

#[cfg(test)]
#[path = "directory_tests.rs"]
mod tests;
