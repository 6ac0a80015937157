//! Runs a load from start to end.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail};
use chrono::Local;
use parking_lot::Mutex;

use super::assemble::{self, Measured};
use super::plan::Plan;
use super::session::Session;
use super::{Ended, hdr};
use crate::cli::options::LoadArgs;
use crate::load::collector::{LoadSummary, MonitorTargets, collect};
use crate::load::pace::hand_out;
use crate::load::{Load, Seeds, drive, recorders};
use crate::monitor::metrics::{Page, Scraper};
use crate::monitor::process;
use crate::monitor::progress::Progress;
use crate::report;
use crate::results::directory::REPORT_FILE;
use crate::results::{RunKind, RunResult, RunWriter};

/// A load that has ended.
pub struct Run {
    pub result: RunResult,
    pub directory: PathBuf,
    pub ended: Ended,
    /// True if the user ended the load early.
    pub interrupted: bool,
    /// The first and the last page of the server's metrics.
    pub pages: Option<(Page, Page)>,
}

/// Runs the load of the session's command line. `complete` may add to the result before it is written.
pub fn execute(session: &Session<'_>, kind: RunKind, complete: impl FnOnce(&mut Run)) -> Result<Run> {
    let args = session.args;
    let mut notes = assemble::preface(session);
    if kind == RunKind::Run && args.load.populate.is_some() {
        notes.push(populate_first(session)?);
    }
    let directory = directory(args, session.info.name, kind);
    let warmup = args
        .load
        .warmup
        .filter(|_| kind == RunKind::Run)
        .unwrap_or_default();
    let started_at = SystemTime::now() + warmup;
    let mut writer = RunWriter::create(&directory, started_at)?;
    let plan = Plan::new(session, kind, warmup)?;
    let names = plan.names.clone();
    let (load, summary) = drive_and_watch(session, plan, Some(&mut writer))?;
    let measured = Measured {
        kind,
        started_at,
        load: &load,
        summary: &summary,
        names: &names,
    };
    notes.extend(assemble::remarks(&measured));
    let result = assemble::result(session, &measured, notes);
    let ended = assemble::exit_status(&result, &load);
    let interrupted = load.stop.is_cancelled();
    let pages = summary.pages.clone();
    let mut run = Run {
        result,
        directory,
        ended,
        interrupted,
        pages,
    };
    complete(&mut run);
    writer.finish(&run.result)?;
    also_write(args, &run.directory, &summary, &names)?;
    report::write(
        std::slice::from_ref(&run.directory),
        &run.directory.join(REPORT_FILE),
    )?;
    Ok(run)
}

/// Writes the keys for `run --populate`. Fails if one cannot be written.
fn populate_first(session: &Session<'_>) -> Result<String> {
    let plan = Plan::new(session, RunKind::Populate, Duration::ZERO)?;
    let (load, summary) = drive_and_watch(session, plan, None)?;
    if load.stop.is_cancelled() {
        bail!("interrupted before all keys were written: run it again");
    }
    if let Some((key, why)) = load.bad_keys.lock().first() {
        bail!("key {key} could not be written: {why}");
    }
    Ok(format!(
        "Populated {} keys in {:.1} s beforehand.",
        summary.totals.count(),
        summary.duration.as_secs_f64()
    ))
}

/// Runs a plan, with threads that pace and watch it.
fn drive_and_watch(
    session: &Session<'_>,
    plan: Plan,
    writer: Option<&mut RunWriter>,
) -> Result<(Arc<Load>, LoadSummary)> {
    let args = session.args;
    let load = Arc::new(Load {
        db: session.db.clone(),
        workload: session.workload.clone(),
        pools: plan.pools,
        stop: plan.stop,
        measure_from: plan.measure_from,
        kinds: plan.names.len(),
        bad_keys: Mutex::default(),
        given_up: AtomicU64::new(0),
    });
    let recorders = recorders(&load);
    let targets = monitor_targets(args)?;
    let progress = Progress::new(plan.title, plan.end, args.output.quiet);
    let interrupt = session.runtime.spawn(cancel_when_interrupted(load.clone()));
    let (over, is_over) = mpsc::channel();
    let (load, names) = (&load, &plan.names);
    let (recorders, targets) = (&recorders, &targets);
    let summary = std::thread::scope(|scope| {
        let collecting =
            scope.spawn(move || collect(load, recorders, names, targets, writer, progress, &is_over));
        let pacing = scope.spawn(|| hand_out(&load.schedules().collect::<Vec<_>>(), &load.stop));
        let picking = args.load.partitiongenerator;
        let picker = |thread| session.setup.picker(picking, thread);
        session
            .runtime
            .block_on(drive(load.clone(), recorders, seeds(args), picker));
        // The pacing of an unlimited schedule does not end by itself.
        load.stop.end();
        let _ = over.send(());
        let _ = pacing.join();
        collecting
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    interrupt.abort();
    Ok((load.clone(), summary?))
}

/// Returns the processes and metrics of the command line. Fails if they cannot be read.
fn monitor_targets(args: &LoadArgs) -> Result<MonitorTargets> {
    let pids = args.server.server_pid.clone();
    if !pids.is_empty() && process::usage(&pids).is_none() {
        bail!("no such process here: --server-pid {pids:?}");
    }
    let scraper = args
        .server
        .metrics
        .as_deref()
        .map(|url| Scraper::new(url, &args.server.gauge));
    if let Some(scraper) = &scraper {
        scraper.scrape()?;
    }
    Ok(MonitorTargets { pids, scraper })
}

async fn cancel_when_interrupted(load: Arc<Load>) {
    if tokio::signal::ctrl_c().await.is_ok() {
        load.stop.cancel();
    }
    // A second Ctrl-C ends the process at once.
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

fn also_write(args: &LoadArgs, directory: &Path, summary: &LoadSummary, names: &[&str]) -> Result<()> {
    if let Some(path) = args.output.csv.as_deref().filter(|path| !path.is_empty()) {
        let intervals = directory.join(crate::results::directory::INTERVALS_FILE);
        std::fs::copy(intervals, path).with_context(|| format!("can't write {path}"))?;
    }
    if let Some(prefix) = &args.output.hdr {
        for (name, stats) in names.iter().zip(&summary.totals.operations) {
            if stats.count() > 0 {
                hdr::write(prefix, name, &stats.response)?;
            }
        }
    }
    Ok(())
}
