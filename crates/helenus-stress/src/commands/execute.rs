//! Runs a load from beginning to end, and puts its result together.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, bail};
use chrono::{DateTime, Local, Utc};
use parking_lot::Mutex;

use super::session::Session;
use super::{Ended, hdr};
use crate::cli::options::{LoadArgs, POPULATE_ALL};
use crate::load::job::{Keys, Mix};
use crate::load::pace::{Pace, Schedule, Stop, hand_out};
use crate::load::watch::{Seen, Watched, watch};
use crate::load::{Job, Load, Numbering, Pool, Seeds, drive, recorders};
use crate::monitor::metrics::Scraper;
use crate::monitor::progress::{End, Progress};
use crate::results::run::FORMAT;
use crate::results::{
    LatencySummary, LoadModel, OperationResult, Pacing, RunKind, RunResult, RunWriter, ServerFigure,
};

/// Operations a thread, where neither these nor a time are given.
const DEFAULT_ITERATIONS: u64 = 1_000_000;
/// The part of its rate that an open loop may miss.
const RATE_TOLERANCE: f64 = 0.01;

/// A load that has ended.
pub struct Run {
    pub result: RunResult,
    pub directory: PathBuf,
    pub ended: Ended,
}

impl Run {
    /// Prints the final table.
    pub fn print(&self) -> Result<()> {
        println!("{}", self.result.title());
        for operation in &self.result.operations {
            println!(
                "{:<10} {:>10} {:>10.0}/s mean {:.0} p50 {} p99 {} p99.9 {} max {} µs, errors {}",
                operation.name,
                operation.count,
                operation.rate_per_s,
                operation.response.mean_us,
                operation.response.p50_us,
                operation.response.p99_us,
                operation.response.p99_9_us,
                operation.response.max_us,
                operation.error_count(),
            );
        }
        for figure in &self.result.server {
            println!("{}: {:.1} {}", figure.name, figure.value, figure.unit);
        }
        for note in &self.result.notes {
            println!("{note}");
        }
        println!("Results: {}", self.directory.display());
        Ok(())
    }
}

/// Runs the load that the session's command line asks for.
pub fn execute(session: &Session<'_>, kind: RunKind) -> Result<Run> {
    let args = session.args;
    let mut notes = preface(args);
    if kind == RunKind::Run && args.load.populate.is_some() {
        notes.push(populate_first(session)?);
    }
    let directory = directory(args, session.info.name, kind);
    let started_at = SystemTime::now();
    let warmup = args
        .load
        .warmup
        .filter(|_| kind == RunKind::Run)
        .unwrap_or_default();
    let mut writer = RunWriter::create(&directory, started_at + warmup)?;
    let plan = Plan::new(session, kind, warmup)?;
    let kind_names = plan.names.clone();
    let (load, seen) = drive_and_watch(session, plan, Some(&mut writer))?;
    notes.extend(remarks(&load, kind));
    let result = assemble(
        session,
        kind,
        started_at + warmup,
        &load,
        &seen,
        &kind_names,
        notes,
    );
    writer.finish(&result)?;
    also_write(args, &directory, &seen, &kind_names)?;
    let ended = judge(&result, &load);
    Ok(Run {
        result,
        directory,
        ended,
    })
}

/// `run --populate`: writes the keys, and fails if it can't.
fn populate_first(session: &Session<'_>) -> Result<String> {
    let plan = Plan::new(session, RunKind::Populate, Duration::ZERO)?;
    let (load, seen) = drive_and_watch(session, plan, None)?;
    if load.stop.is_cancelled() {
        bail!("interrupted while populating");
    }
    if let Some((key, why)) = load.bad_keys.lock().first() {
        bail!("key {key} could not be written: {why}");
    }
    Ok(format!(
        "Populated {} keys in {:.1} s beforehand.",
        seen.totals.count(),
        seen.duration.as_secs_f64()
    ))
}

/// What is to be run.
struct Plan {
    pools: Vec<Pool>,
    stop: Stop,
    measure_from: Instant,
    names: Vec<&'static str>,
    end: End,
    title: &'static str,
}

impl Plan {
    fn new(session: &Session<'_>, kind: RunKind, warmup: Duration) -> Result<Self> {
        let start = Instant::now();
        match kind {
            RunKind::Run => Self::mix(session, start, warmup),
            RunKind::Populate | RunKind::Verify => Self::keys(session, start, kind),
        }
    }

    fn mix(session: &Session<'_>, start: Instant, warmup: Duration) -> Result<Self> {
        let (info, load) = (session.info, &session.args.load);
        let deadline = load.duration.map(|duration| start + warmup + duration);
        let iterations = load
            .iterations
            .or((deadline.is_none()).then_some(DEFAULT_ITERATIONS));
        let threads = match info.pools {
            Some(pools) => pools(&session.setup)?
                .into_iter()
                .map(|of| Ok((of.threads, of.in_flight, Mix::only(info.operations, of.class)?)))
                .collect::<Result<Vec<_>>>()?,
            None => {
                let mix = Mix::new(info.operations, load.readrate, load.deleterate)?;
                vec![(load.threads, load.concurrency, mix)]
            }
        };
        let all: f64 = threads
            .iter()
            .map(|(threads, in_flight, _)| slots(*threads, *in_flight))
            .sum();
        let mut operations = 0;
        let pools = threads
            .into_iter()
            .map(|(threads, in_flight, mix)| {
                let total = iterations.map(|iterations| iterations * u64::from(threads));
                operations += total.unwrap_or_default();
                let rate = load.rate * slots(threads, in_flight) / all;
                Pool {
                    threads,
                    in_flight,
                    job: Job::Mix(mix),
                    pace: pace(start, rate, total),
                }
            })
            .collect();
        let end = match load.duration {
            Some(duration) => End::Time(duration.as_millis() as u64),
            None => End::Count(operations),
        };
        Ok(Self {
            pools,
            stop: Stop::new(deadline, iterations),
            measure_from: start + warmup,
            names: info.operations.iter().map(|operation| operation.name).collect(),
            end,
            title: info.name,
        })
    }

    fn keys(session: &Session<'_>, start: Instant, kind: RunKind) -> Result<Self> {
        let load = &session.args.load;
        let all = session.setup.keys.partitions;
        let meant = match load.populate {
            Some(count) if count != POPULATE_ALL => count.clamp(1, all),
            _ => all,
        };
        let numbering = Numbering { meant, all };
        let total = meant.saturating_mul(session.setup.keys.threads);
        let (from, to) = load.range.unwrap_or((0, None));
        let to = to.unwrap_or(total).min(total);
        if from >= to {
            bail!("no keys to {}: there are {total}", kind.name());
        }
        let (threads, in_flight) = (load.threads, load.concurrency);
        let keys = Arc::new(Keys::new(from..to, slots(threads, in_flight) as u64));
        // Keys are repeated when they fail, so a limit on operations would end it too early.
        let pace = pace(start, load.rate, None);
        let (name, job) = match kind {
            RunKind::Verify => ("verify", Job::Verify { keys, numbering }),
            _ => ("populate", Job::Populate { keys, numbering }),
        };
        Ok(Self {
            pools: vec![Pool {
                threads,
                in_flight,
                job,
                pace,
            }],
            stop: Stop::new(None, None),
            measure_from: start,
            names: vec![name],
            end: End::Count(to - from),
            title: name,
        })
    }
}

fn slots(threads: u32, in_flight: u32) -> f64 {
    f64::from(threads) * f64::from(in_flight)
}

fn pace(start: Instant, rate: f64, total: Option<u64>) -> Pace {
    if rate > 0.0 {
        Pace::Open(Schedule::new(start, rate, total))
    } else {
        Pace::Closed
    }
}

/// Runs a plan beside the threads that pace and watch it.
fn drive_and_watch(
    session: &Session<'_>,
    plan: Plan,
    writer: Option<&mut RunWriter>,
) -> Result<(Arc<Load>, Seen)> {
    let args = session.args;
    let load = Arc::new(Load {
        db: session.db.clone(),
        workload: session.workload.clone(),
        pools: plan.pools,
        stop: plan.stop,
        measure_from: plan.measure_from,
        kinds: plan.names.len(),
        bad_keys: Mutex::default(),
    });
    let recorders = recorders(&load);
    let watched = Watched {
        pids: args.server.server_pid.clone(),
        scraper: args
            .server
            .metrics
            .as_deref()
            .map(|url| Scraper::new(url, &args.server.gauge)),
    };
    let progress = Progress::new(plan.title, plan.end, args.output.quiet);
    let interrupt = session.runtime.spawn(cancel_when_interrupted(load.clone()));
    let (over, is_over) = mpsc::channel();
    let (load, names) = (&load, &plan.names);
    let (recorders, watched) = (&recorders, &watched);
    let seen = std::thread::scope(|scope| {
        let watching =
            scope.spawn(move || watch(load, recorders, names, watched, writer, progress, &is_over));
        let pacing = scope.spawn(|| hand_out(&load.schedules().collect::<Vec<_>>(), &load.stop));
        let picking = args.load.partitiongenerator;
        let picker = |thread| session.setup.picker(picking, thread);
        session
            .runtime
            .block_on(drive(load.clone(), recorders, seeds(args), picker));
        // The pacing of an unlimited schedule must learn that everything is done.
        load.stop.end();
        let _ = over.send(());
        let _ = pacing.join();
        watching
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    interrupt.abort();
    Ok((load.clone(), seen?))
}

async fn cancel_when_interrupted(load: Arc<Load>) {
    if tokio::signal::ctrl_c().await.is_ok() {
        load.stop.cancel();
    }
    // A second time means it.
    if tokio::signal::ctrl_c().await.is_ok() {
        std::process::exit(130);
    }
}

fn seeds(args: &LoadArgs) -> Seeds {
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    Seeds {
        seed: args.load.seed,
        version: now.as_micros() as u64,
    }
}

fn directory(args: &LoadArgs, workload: &str, kind: RunKind) -> PathBuf {
    args.output.out.clone().unwrap_or_else(|| {
        let verb = if kind == RunKind::Run {
            String::new()
        } else {
            format!("-{}", kind.name())
        };
        let time = Local::now().format("%Y%m%d-%H%M%S");
        PathBuf::from("stress-results").join(format!("{workload}{verb}-{time}"))
    })
}

/// Remarks on the command line.
fn preface(args: &LoadArgs) -> Vec<String> {
    let ignored = args.load.ignored.given();
    if ignored.is_empty() {
        return Vec::new();
    }
    vec![format!("Without effect here: {}.", ignored.join(", "))]
}

/// Remarks on how the load went.
fn remarks(load: &Load, kind: RunKind) -> Vec<String> {
    let mut notes = Vec::new();
    if load.stop.is_cancelled() {
        notes.push("Interrupted before its end.".into());
    }
    for pool in &load.pools {
        if let Job::Populate { keys, .. } | Job::Verify { keys, .. } = &pool.job {
            let (done, end) = (keys.done_to(), keys.range().end);
            if done < end {
                notes.push(format!(
                    "Keys up to {done} are done; go on with: {} --range {done}..{end}",
                    kind.name()
                ));
            }
        }
    }
    for (key, why) in load.bad_keys.lock().iter() {
        notes.push(format!("Key {key}: {why}"));
    }
    let unsent: u64 = load.schedules().map(Schedule::unsent).sum();
    if unsent > 0 && kind == RunKind::Run {
        notes.push(format!(
            "{unsent} operations were due and not sent: no thread had a request to spare."
        ));
    }
    notes
}

fn assemble(
    session: &Session<'_>,
    kind: RunKind,
    started_at: SystemTime,
    load: &Load,
    seen: &Seen,
    names: &[&str],
    notes: Vec<String>,
) -> RunResult {
    let args = session.args;
    let duration_s = seen.duration.as_secs_f64();
    let label = args.output.label.clone();
    RunResult {
        format: FORMAT,
        tool_version: env!("CARGO_PKG_VERSION").into(),
        workload: session.info.name.into(),
        label: label.unwrap_or_else(|| session.db.endpoint.addresses.join(",")),
        kind,
        command_line: std::env::args().collect(),
        config: config(session),
        endpoint: session.db.endpoint.clone(),
        load: load_model(load, args),
        started_at: DateTime::<Utc>::from(started_at),
        duration_s,
        operations: operations(seen, names, duration_s),
        reads: Some(seen.totals.reads).filter(|reads| reads.hit_rate().is_some()),
        pacing: pacing(load, args, seen),
        phases: Vec::new(),
        notes,
        published: Vec::new(),
        server: server_figures(session, seen),
    }
}

fn config(session: &Session<'_>) -> serde_json::Map<String, serde_json::Value> {
    let mut config = match serde_json::to_value(session.args) {
        Ok(serde_json::Value::Object(config)) => config,
        _ => serde_json::Map::new(),
    };
    for parameter in session.info.parameters {
        let value = session.setup.text(parameter.name);
        config.insert(format!("workload.{}", parameter.name), value.into());
    }
    for field in session.info.fields {
        if let Ok(generator) = session.setup.generator(field.name) {
            config.insert(format!("field.{}", field.name), generator.to_string().into());
        }
    }
    for flag in ["workload", "workload_parameter", "field_generator"] {
        config.remove(flag);
    }
    config.retain(|_, value| !value.is_null() && value.as_array().is_none_or(|array| !array.is_empty()));
    config
}

fn load_model(load: &Load, args: &LoadArgs) -> LoadModel {
    if args.load.rate > 0.0 {
        return LoadModel::Open {
            rate_per_s: args.load.rate,
        };
    }
    LoadModel::Closed {
        threads: load.pools.iter().map(|pool| pool.threads).sum(),
        in_flight_per_thread: load
            .pools
            .iter()
            .map(|pool| pool.in_flight)
            .max()
            .unwrap_or_default(),
    }
}

fn operations(seen: &Seen, names: &[&str], duration_s: f64) -> Vec<OperationResult> {
    names
        .iter()
        .zip(&seen.totals.operations)
        .filter(|(_, stats)| stats.count() + stats.error_count() > 0)
        .map(|(name, stats)| OperationResult {
            name: (*name).to_owned(),
            count: stats.count(),
            rate_per_s: stats.count() as f64 / duration_s.max(1e-9),
            response: LatencySummary::from(&stats.response),
            service: LatencySummary::from(&stats.service),
            errors: stats.errors.clone(),
        })
        .collect()
}

fn pacing(load: &Load, args: &LoadArgs, seen: &Seen) -> Option<Pacing> {
    let lag = |of: fn(&Schedule) -> Duration| load.schedules().map(of).max();
    let answered = seen.totals.count() + seen.totals.error_count();
    Some(Pacing {
        target_per_s: args.load.rate,
        achieved_per_s: answered as f64 / seen.duration.as_secs_f64().max(1e-9),
        lag_max_ms: lag(Schedule::lag_max)?.as_secs_f64() * 1e3,
        lag_end_ms: lag(Schedule::lag)?.as_secs_f64() * 1e3,
    })
}

fn server_figures(session: &Session<'_>, seen: &Seen) -> Vec<ServerFigure> {
    let mut figures = Vec::new();
    let mut add = |name: &str, value: Option<f64>, unit: &str| {
        figures.extend(value.map(|value| ServerFigure {
            name: name.into(),
            value,
            unit: unit.into(),
        }));
    };
    let count = seen.totals.count();
    let cpu = seen.server_cpu.map(|cpu| cpu.as_secs_f64());
    add(
        "CPU time an operation",
        cpu.filter(|_| count > 0).map(|cpu| cpu * 1e6 / count as f64),
        "µs",
    );
    add(
        "CPU",
        cpu.map(|cpu| cpu / seen.duration.as_secs_f64().max(1e-9)),
        "cores",
    );
    add(
        "memory at the start",
        seen.server_rss_start.map(|bytes| bytes as f64),
        "bytes",
    );
    add(
        "memory at most",
        seen.server_rss_max.map(|bytes| bytes as f64),
        "bytes",
    );
    if let Some((_, page)) = &seen.pages {
        add("page of metrics", Some(page.bytes as f64), "bytes");
        add("reading that page", Some(page.took.as_secs_f64() * 1e6), "µs");
    }
    if session.took.created > 0 {
        add(
            "making the tables",
            Some(session.took.create.as_secs_f64() * 1e6),
            "µs",
        );
    }
    figures
}

fn also_write(args: &LoadArgs, directory: &std::path::Path, seen: &Seen, names: &[&str]) -> Result<()> {
    if let Some(path) = args.output.csv.as_deref().filter(|path| !path.is_empty()) {
        let intervals = directory.join(crate::results::directory::INTERVALS_FILE);
        std::fs::copy(intervals, path).with_context(|| format!("can't write {path}"))?;
    }
    if let Some(prefix) = &args.output.hdr {
        for (name, stats) in names.iter().zip(&seen.totals.operations) {
            if stats.count() > 0 {
                hdr::write(prefix, name, &stats.response)?;
            }
        }
    }
    Ok(())
}

fn judge(result: &RunResult, load: &Load) -> Ended {
    let mut ended = Ended::Well;
    if result.error_count() > 0 {
        ended = ended.max(Ended::WithErrors);
    }
    let short = |pacing: &Pacing| pacing.achieved_per_s < pacing.target_per_s * (1.0 - RATE_TOLERANCE);
    if result.kind == RunKind::Run && !load.stop.is_cancelled() && result.pacing.as_ref().is_some_and(short) {
        ended = ended.max(Ended::RateMissed);
    }
    if result
        .reads
        .is_some_and(|reads| reads.missing + reads.corrupt > 0)
    {
        ended = ended.max(Ended::Unverified);
    }
    ended
}
