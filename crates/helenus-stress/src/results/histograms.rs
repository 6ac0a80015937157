//! `histograms.hlog`: an HdrHistogram interval log, which its Java tools can read.
//!
//! Tags are `OPERATION.response` and `OPERATION.service`. Values are microseconds. Timestamps count from the run's start.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, anyhow};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::interval_log::{
    IntervalLogIterator, IntervalLogWriterBuilder, LogEntry, Tag,
};
use hdrhistogram::serialization::{Deserializer, V2DeflateSerializer};
use serde::{Deserialize, Serialize};

/// A histogram of latencies in microseconds.
pub type LatencyHistogram = Histogram<u64>;

/// Precision of a histogram. With three digits the error of a percentile is at most a thousandth.
const SIGNIFICANT_DIGITS: u8 = 3;
/// Maximum latency, an hour. Longer ones are recorded as an hour.
pub const MAX_LATENCY_US: u64 = 3_600_000_000;

/// Returns an empty histogram of latencies up to an hour. Use `saturating_record` to record.
pub fn new_latency_histogram() -> LatencyHistogram {
    Histogram::new_with_bounds(1, MAX_LATENCY_US, SIGNIFICANT_DIGITS)
        .unwrap_or_else(|error| unreachable!("constant bounds are valid: {error}"))
}

/// Figures of a latency histogram for tables. All are zero if nothing was recorded.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq)]
pub struct LatencySummary {
    pub mean_us: f64,
    pub p50_us: u64,
    pub p90_us: u64,
    pub p95_us: u64,
    pub p99_us: u64,
    pub p99_9_us: u64,
    pub p99_99_us: u64,
    pub max_us: u64,
}

impl From<&LatencyHistogram> for LatencySummary {
    fn from(histogram: &LatencyHistogram) -> Self {
        // The upper end of a bucket may be above the largest recorded value.
        let at = |quantile| histogram.value_at_quantile(quantile).min(histogram.max());
        Self {
            mean_us: histogram.mean(),
            p50_us: at(0.5),
            p90_us: at(0.9),
            p95_us: at(0.95),
            p99_us: at(0.99),
            p99_9_us: at(0.999),
            p99_99_us: at(0.9999),
            max_us: histogram.max(),
        }
    }
}

/// Returns the tag of an operation's response times.
pub fn response_tag(operation: &str) -> String {
    format!("{operation}.response")
}

/// Returns the tag of an operation's service times.
pub fn service_tag(operation: &str) -> String {
    format!("{operation}.service")
}

/// Writer of an interval log.
pub struct HistogramLogWriter<W> {
    writer: W,
    serializer: V2DeflateSerializer,
}

impl<W: Write> HistogramLogWriter<W> {
    /// Writes the head of the log.
    pub fn begin(mut writer: W, started_at: SystemTime) -> Result<Self> {
        let mut serializer = V2DeflateSerializer::new();
        IntervalLogWriterBuilder::new()
            .add_comment("[Histogram log format version 1.3]")
            .add_comment("helenus-stress: microseconds; tags are OPERATION.response and OPERATION.service")
            .with_start_time(started_at)
            .with_base_time(started_at)
            .begin_log_with(&mut writer, &mut serializer)?;
        Ok(Self { writer, serializer })
    }

    /// Appends the histogram of an interval, unless it is empty. `start` counts from the run's start.
    pub fn append(
        &mut self,
        tag: &str,
        start: Duration,
        duration: Duration,
        histogram: &LatencyHistogram,
    ) -> Result<()> {
        if histogram.is_empty() {
            return Ok(());
        }
        let tag = Tag::new(tag).with_context(|| format!("{tag:?} can't be a histogram's tag"))?;
        // A builder without settings writes no second head.
        IntervalLogWriterBuilder::new()
            .begin_log_with(&mut self.writer, &mut self.serializer)?
            .write_histogram(histogram, start, duration, Some(tag))?;
        Ok(())
    }

    /// Writes buffered data to the file.
    pub fn flush(&mut self) -> Result<()> {
        Ok(self.writer.flush()?)
    }
}

/// Reads a log, and adds up the intervals of each tag.
pub fn read_totals(log: &[u8]) -> Result<BTreeMap<String, LatencyHistogram>> {
    let mut totals = BTreeMap::new();
    let mut deserializer = Deserializer::new();
    for entry in IntervalLogIterator::new(log) {
        let LogEntry::Interval(interval) =
            entry.map_err(|error| anyhow!("not an interval log: {error:?}"))?
        else {
            continue;
        };
        let encoded = base64_decode(interval.encoded_histogram())?;
        let histogram: LatencyHistogram = deserializer
            .deserialize(&mut encoded.as_slice())
            .map_err(|error| anyhow!("a damaged histogram: {error}"))?;
        let tag = interval
            .tag()
            .map_or(String::new(), |tag| tag.as_str().to_owned());
        totals
            .entry(tag)
            .or_insert_with(new_latency_histogram)
            .add(histogram)?;
    }
    Ok(totals)
}

fn base64_decode(text: &str) -> Result<Vec<u8>> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD
        .decode(text)
        .context("a damaged histogram")
}

#[cfg(test)]
#[path = "histograms_tests.rs"]
mod tests;
