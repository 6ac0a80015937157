//! Collects the figures of a running load every second, for the result's files, the progress and the totals.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Result;
use parking_lot::Mutex;

use super::Load;
use super::load_thread::Recorder;
use super::pace::Schedule;
use super::stats::Stats;
use crate::monitor::metrics::{Page, Scraper};
use crate::monitor::process::{self, Usage};
use crate::monitor::progress::{Progress, State};
use crate::results::directory::IntervalHistograms;
use crate::results::{
    Interval, IntervalOperation, LatencyHistogram, RunWriter, ServerSample, new_latency_histogram,
};

const INTERVAL: Duration = Duration::from_secs(1);
/// Time by which the last interval may be longer than the others.
const SLACK: Duration = Duration::from_millis(200);

/// Processes and metrics to monitor beside the load.
#[derive(Clone, Debug, Default)]
pub struct MonitorTargets {
    pub pids: Vec<u32>,
    pub scraper: Option<Scraper>,
}

/// The figures of a whole load and of its server.
#[derive(Debug)]
pub struct LoadSummary {
    pub totals: Stats,
    /// Time from the start of measuring to the end of the last operation.
    pub duration: Duration,
    /// CPU time of the server's processes during the measurement.
    pub server_cpu: Option<Duration>,
    /// CPU time of this process during the measurement.
    pub client_cpu: Option<Duration>,
    pub server_rss_max: Option<u64>,
    /// Bytes of the server's memory at the start of measuring.
    pub server_rss_start: Option<u64>,
    /// The first and the last page of metrics.
    pub pages: Option<(Page, Page)>,
}

/// Collects until `over` reports the end of the load. Blocks, so it needs a thread of its own.
pub fn collect(
    load: &Load,
    recorders: &[Arc<Recorder>],
    names: &[&'static str],
    targets: &MonitorTargets,
    mut writer: Option<&mut RunWriter>,
    mut progress: Progress,
    over: &Receiver<()>,
) -> Result<LoadSummary> {
    let mut collector = Collector::new(load, recorders, names, targets);
    let mut tick = load.measure_from + INTERVAL;
    let scraping = targets.scraper.clone().map(Scraping::start);
    std::thread::sleep(load.measure_from.saturating_duration_since(Instant::now()));
    collector.begin(targets);
    loop {
        if load.stop.deadline.is_some_and(|deadline| deadline < tick + SLACK) {
            // Near the deadline the interval is extended, so that no interval of a few milliseconds follows.
            tick += SLACK;
        }
        let wait = tick.saturating_duration_since(Instant::now());
        let ended = !matches!(over.recv_timeout(wait), Err(RecvTimeoutError::Timeout));
        let page = scraping.as_ref().and_then(Scraping::latest);
        let interval = collector.collect(page);
        if interval.elapsed_s > 0.0 {
            progress.show(&collector.state(&interval));
            if let Some(writer) = writer.as_deref_mut() {
                writer.push(interval, &collector.histograms())?;
            }
        }
        if ended {
            break;
        }
        tick += INTERVAL;
    }
    progress.finish();
    let last = scraping.and_then(Scraping::stop);
    Ok(collector.end(last))
}

struct Collector<'a> {
    load: &'a Load,
    recorders: &'a [Arc<Recorder>],
    names: &'a [&'static str],
    pids: &'a [u32],
    interval: Stats,
    totals: Stats,
    spare: Stats,
    /// Latencies of all kinds of operations in the interval.
    together: LatencyHistogram,
    before: Instant,
    /// Length of the interval.
    length: Duration,
    usage_start: Option<Usage>,
    client_start: Option<Usage>,
    usage_before: Option<Usage>,
    rss_max: Option<u64>,
    first_page: Option<Page>,
}

impl<'a> Collector<'a> {
    fn new(
        load: &'a Load,
        recorders: &'a [Arc<Recorder>],
        names: &'a [&'static str],
        targets: &'a MonitorTargets,
    ) -> Self {
        Self {
            load,
            recorders,
            names,
            pids: &targets.pids,
            interval: Stats::new(load.kinds),
            totals: Stats::new(load.kinds),
            spare: Stats::new(load.kinds),
            together: new_latency_histogram(),
            before: load.measure_from,
            length: Duration::ZERO,
            usage_start: None,
            client_start: None,
            usage_before: None,
            rss_max: None,
            first_page: None,
        }
    }

    fn begin(&mut self, targets: &MonitorTargets) {
        self.usage_start = process::usage(&targets.pids);
        self.usage_before = self.usage_start;
        self.client_start = process::usage(&[std::process::id()]);
        self.first_page = targets.scraper.as_ref().and_then(|scraper| scraper.scrape().ok());
        self.rss_max = self.usage_start.map(|usage| usage.rss_bytes);
    }

    /// Takes the recorders' figures, and returns them as the next interval.
    fn collect(&mut self, page: Option<Page>) -> Interval {
        self.interval.clear();
        for recorder in self.recorders {
            self.spare.clear();
            recorder.swap(&mut self.spare);
            self.interval.add(&self.spare);
        }
        self.totals.add(&self.interval);
        let now = Instant::now();
        self.length = now.saturating_duration_since(self.before);
        self.before = now;
        let server = self.server(page);
        let lag = lag(self.load);
        Interval {
            elapsed_s: now
                .saturating_duration_since(self.load.measure_from)
                .as_secs_f64(),
            lag_ms: lag.map(|lag| lag.as_secs_f64() * 1e3),
            operations: self.operations(),
            server,
        }
    }

    /// Returns the interval's figures of the operations that have occurred so far.
    fn operations(&self) -> std::collections::BTreeMap<String, IntervalOperation> {
        let met = self
            .totals
            .operations
            .iter()
            .map(|total| total.count() + total.error_count() > 0);
        self.names
            .iter()
            .zip(&self.interval.operations)
            .zip(met)
            .filter(|(_, met)| *met)
            .map(|((name, stats), _)| {
                let at = |quantile| {
                    stats
                        .response
                        .value_at_quantile(quantile)
                        .min(stats.response.max())
                };
                let operation = IntervalOperation {
                    ops: stats.count(),
                    errors: stats.error_count(),
                    p50_us: at(0.5),
                    p99_us: at(0.99),
                    p99_9_us: at(0.999),
                    max_us: stats.response.max(),
                };
                ((*name).to_owned(), operation)
            })
            .collect()
    }

    fn server(&mut self, page: Option<Page>) -> ServerSample {
        let usage = process::usage(self.pids);
        let cpu_cores = usage.zip(self.usage_before).map(|(now, before)| {
            now.cpu.saturating_sub(before.cpu).as_secs_f64() / self.length.as_secs_f64().max(1e-3)
        });
        self.usage_before = usage.or(self.usage_before);
        self.rss_max = self.rss_max.max(usage.map(|usage| usage.rss_bytes));
        ServerSample {
            cpu_cores,
            rss_bytes: usage.map(|usage| usage.rss_bytes),
            gauges: page.map(|page| page.gauges).unwrap_or_default(),
        }
    }

    fn histograms(&self) -> Vec<IntervalHistograms<'_>> {
        self.names
            .iter()
            .zip(&self.interval.operations)
            .map(|(operation, stats)| IntervalHistograms {
                operation,
                response: &stats.response,
                service: &stats.service,
            })
            .collect()
    }

    fn state(&mut self, interval: &Interval) -> State {
        self.together.reset();
        for operation in &self.interval.operations {
            if !operation.response.is_empty() {
                let _ = self.together.add(&operation.response);
            }
        }
        State {
            elapsed: Duration::from_secs_f64(interval.elapsed_s),
            per_s: self.interval.count() as f64 / self.length.as_secs_f64().max(1e-3),
            p50_us: self.together.value_at_quantile(0.5),
            p99_us: self.together.value_at_quantile(0.99),
            errors: self.totals.error_count(),
            lag: lag(self.load),
            done: self.totals.count(),
        }
    }

    fn end(self, last: Option<Page>) -> LoadSummary {
        let usage = process::usage(self.pids).or(self.usage_before);
        let client = process::usage(&[std::process::id()]);
        let spent = |end: Option<Usage>, start: Option<Usage>| Some(end?.cpu.saturating_sub(start?.cpu));
        LoadSummary {
            duration: self.before.saturating_duration_since(self.load.measure_from),
            server_cpu: spent(usage, self.usage_start),
            client_cpu: spent(client, self.client_start),
            server_rss_max: self.rss_max,
            server_rss_start: self.usage_start.map(|usage| usage.rss_bytes),
            pages: self.first_page.zip(last),
            totals: self.totals,
        }
    }
}

/// Returns the lag of the slowest pool. `None` if all loops are closed.
fn lag(load: &Load) -> Option<Duration> {
    load.schedules().map(Schedule::lag).max()
}

/// A thread that reads a page of metrics every second. A slow page does not delay the collection.
struct Scraping {
    latest: Arc<Mutex<Option<Page>>>,
    over: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Scraping {
    fn start(scraper: Scraper) -> Self {
        let latest = Arc::new(Mutex::new(None));
        let over = Arc::new(AtomicBool::new(false));
        let thread = std::thread::spawn({
            let (latest, over) = (latest.clone(), over.clone());
            move || {
                while !over.load(Ordering::Relaxed) {
                    let begun = Instant::now();
                    *latest.lock() = scraper.scrape().ok();
                    std::thread::park_timeout(INTERVAL.saturating_sub(begun.elapsed()));
                }
                *latest.lock() = scraper.scrape().ok();
            }
        });
        Self { latest, over, thread }
    }

    fn latest(&self) -> Option<Page> {
        self.latest.lock().clone()
    }

    /// Ends the thread. Returns the final page.
    fn stop(self) -> Option<Page> {
        self.over.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        self.thread.join().ok()?;
        self.latest.lock().take()
    }
}
