//! Trace steps of requests: those recorded with [`step`] while a traced request is polled, and those of SlateDB's reads, for tablets in an
//! object store.
//!
//! SlateDB names the filters, indexes and blocks of a read in spans of `tracing` that carry the id of the read, if it has one; [`layer`] turns
//! them into steps. Without the layer, traces lack them.

use std::borrow::Cow;
use std::fmt;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use hashbrown::HashMap;
use parking_lot::Mutex;
use slatedb::config::TracingOptions;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use crate::work;
use crate::work::StoreWork;

/// Steps of one request that are kept; the others are counted.
const STEPS_MAX: usize = 400;
/// The prefix of the names of SlateDB's read spans.
const SPANS: &str = "slatedb.read.";

/// Something that a traced request did.
#[derive(Clone, Debug)]
pub struct Step {
    pub at: Instant,
    pub what: Cow<'static, str>,
    /// The thread that did it.
    pub thread: Box<str>,
}

/// The recorded steps of one request.
#[derive(Debug, Default)]
struct TraceSteps {
    kept: Vec<Step>,
    left_out: usize,
    blocks_from_cache: u64,
    blocks_from_disk: u64,
}

impl TraceSteps {
    fn add(&mut self, at: Instant, what: Cow<'static, str>) {
        if self.kept.len() >= STEPS_MAX {
            self.left_out += 1;
            return;
        }
        let thread = std::thread::current();
        self.kept.push(Step {
            at,
            what,
            thread: thread.name().unwrap_or_default().into(),
        });
    }
}

static RECORDINGS: LazyLock<Mutex<HashMap<u64, TraceSteps>>> = LazyLock::new(Mutex::default);
static LAST_RECORDING: AtomicU64 = AtomicU64::new(0);

/// A traced request's steps while it runs.
#[derive(Debug)]
pub struct TraceRecorder {
    id: u64,
}

impl TraceRecorder {
    /// Begins to record the steps that are taken while `work` is in the thread.
    pub fn begin(work: &mut StoreWork) -> TraceRecorder {
        let id = LAST_RECORDING.fetch_add(1, Ordering::Relaxed) + 1;
        RECORDINGS.lock().insert(id, TraceSteps::default());
        work.recording = id;
        TraceRecorder { id }
    }

    /// The steps, in order of time.
    pub fn finish(self) -> Vec<Step> {
        let steps = RECORDINGS.lock().remove(&self.id).unwrap_or_default();
        let blocks = steps.blocks_from_cache + steps.blocks_from_disk;
        let (from_cache, from_disk, left_out) =
            (steps.blocks_from_cache, steps.blocks_from_disk, steps.left_out);
        let sums = [
            (blocks > 0)
                .then(|| format!("Blocks in all: {from_cache} from the block cache, {from_disk} from disk")),
            (left_out > 0).then(|| format!("{left_out} more steps are not shown")),
        ];
        let mut kept = steps.kept;
        kept.sort_by_key(|step| step.at);
        for sum in sums.into_iter().flatten() {
            if let Some(last) = kept.last().cloned() {
                let what = sum.into();
                kept.push(Step { what, ..last });
            }
        }
        kept
    }
}

impl Drop for TraceRecorder {
    fn drop(&mut self) {
        RECORDINGS.lock().remove(&self.id);
    }
}

/// Adds a step to the request that this thread polls, if it is traced.
pub fn step<T: Into<Cow<'static, str>>>(what: impl FnOnce() -> T) {
    if is_recording() {
        step_at(Instant::now(), what().into());
    }
}

/// True if the request that this thread polls is traced.
pub fn is_recording() -> bool {
    work::recording() != 0
}

/// Adds a step that was taken then.
pub fn step_at(at: Instant, what: Cow<'static, str>) {
    if let Some(steps) = RECORDINGS.lock().get_mut(&work::recording()) {
        steps.add(at, what);
    }
}

/// The options that make SlateDB trace a read, if the request is traced.
pub(crate) fn read_options() -> Option<TracingOptions> {
    match work::recording() {
        0 => None,
        recording => Some(TracingOptions::new(recording.to_string())),
    }
}

/// Takes the steps of reads from SlateDB's spans. All other spans and events pass it by.
pub fn layer<S>() -> impl Layer<S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let is_read = |metadata: &Metadata<'_>| metadata.is_span() && metadata.name().starts_with(SPANS);
    ReadSpans.with_filter(filter_fn(is_read).with_max_level_hint(LevelFilter::INFO))
}

struct ReadSpans;

/// The fields of a span, as far as they are of use.
#[derive(Debug, Default)]
struct ReadSpan {
    recording: u64,
    sst: String,
    level: String,
    /// The filter says that the key may be there.
    may_be_there: bool,
    cached: bool,
    cache_hits: u64,
    cache_misses: u64,
}

impl Visit for ReadSpan {
    fn record_debug(&mut self, _field: &Field, _value: &dyn fmt::Debug) {}

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "trace_id" => self.recording = value.parse().unwrap_or(0),
            "sst_id" => value.clone_into(&mut self.sst),
            "sst_level" => value.clone_into(&mut self.level),
            _ => {}
        }
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        match field.name() {
            "result" => self.may_be_there = value,
            "cached" => self.cached = value,
            _ => {}
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "cache_hits" => self.cache_hits = value,
            "cache_misses" => self.cache_misses = value,
            _ => {}
        }
    }
}

impl ReadSpan {
    /// The step for the span's end, if it is worth one.
    fn step(&self, name: &str) -> Option<String> {
        let sstable = Sstable {
            id: &self.sst,
            run: self.level.strip_prefix("sorted_run:"),
        };
        match name.strip_prefix(SPANS)? {
            "read_filters" if !self.cached => Some(format!("Read the filter of {sstable} from disk")),
            "evaluate_filter" if !self.may_be_there => Some(skipped(sstable)),
            "read_index" if !self.cached => Some(format!("Read the index of {sstable} from disk")),
            "read_blocks" => Some(blocks(sstable, self.cache_hits, self.cache_misses)),
            _ => None,
        }
    }
}

/// Names an SSTable by its run, if it is not of level 0, and its id.
pub(crate) struct Sstable<I, R> {
    pub id: I,
    pub run: Option<R>,
}

impl<I: fmt::Display, R: fmt::Display> fmt::Display for Sstable<I, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.run {
            Some(run) => write!(f, "SSTable {} of run {run}", self.id),
            None => write!(f, "SSTable {} of level 0", self.id),
        }
    }
}

/// The step for an SSTable that its filter excludes.
pub(crate) fn skipped(sstable: impl fmt::Display) -> String {
    format!("Bloom filter allows skipping {sstable}")
}

/// The step for a block that was read.
fn blocks(sstable: impl fmt::Display, cached: u64, from_disk: u64) -> String {
    match (cached, from_disk) {
        (1, 0) => format!("Read a block of {sstable} from the block cache"),
        (0, 1) => format!("Read a block of {sstable} from disk"),
        (cached, read) => format!(
            "Read {} blocks of {sstable}: {cached} from the block cache, {read} from disk",
            cached + read
        ),
    }
}

/// Adds that a block was read to the request that this thread polls, if it is traced.
pub(crate) fn block(sstable: impl fmt::Display, is_cached: bool) {
    if !is_recording() {
        return;
    }
    let (cached, from_disk) = (u64::from(is_cached), u64::from(!is_cached));
    if let Some(steps) = RECORDINGS.lock().get_mut(&work::recording()) {
        steps.blocks_from_cache += cached;
        steps.blocks_from_disk += from_disk;
        steps.add(Instant::now(), blocks(sstable, cached, from_disk).into());
    }
}

impl<S> Layer<S> for ReadSpans
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, ctx: Context<'_, S>) {
        let mut fields = ReadSpan::default();
        attributes.record(&mut fields);
        if let Some(span) = ctx.span(id) {
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, ctx: Context<'_, S>) {
        if let Some(span) = ctx.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<ReadSpan>()
        {
            values.record(fields);
        }
    }

    fn on_close(&self, id: Id, ctx: Context<'_, S>) {
        let Some(span) = ctx.span(&id) else { return };
        let extensions = span.extensions();
        let Some(fields) = extensions.get::<ReadSpan>() else {
            return;
        };
        let step = fields.step(span.name());
        if let Some(steps) = RECORDINGS.lock().get_mut(&fields.recording) {
            steps.blocks_from_cache += fields.cache_hits;
            steps.blocks_from_disk += fields.cache_misses;
            if let Some(what) = step {
                steps.add(Instant::now(), what.into());
            }
        }
    }
}
