//! Makes a load's result from its summary.

use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use chrono::{DateTime, Utc};

use super::Ended;
use super::session::Session;
use crate::cli::options::LoadArgs;
use crate::load::collector::LoadSummary;
use crate::load::pace::Schedule;
use crate::load::{Job, Load};
use crate::results::run::FORMAT;
use crate::results::{LatencySummary, LoadModel, OperationResult, Pacing, RunKind, RunResult, ServerFigure};

/// Fraction of its rate that an open loop may miss.
const RATE_TOLERANCE: f64 = 0.01;

/// A finished load and its figures.
pub struct Measured<'a> {
    pub kind: RunKind,
    /// Time when measuring began.
    pub started_at: SystemTime,
    pub load: &'a Load,
    pub summary: &'a LoadSummary,
    /// Names of the kinds of operations.
    pub names: &'a [&'static str],
}

/// Returns remarks on the command line.
pub fn preface(session: &Session<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    let ignored = session.args.load.ignored.given();
    if !ignored.is_empty() {
        notes.push(format!("Without effect here: {}.", ignored.join(", ")));
    }
    notes
}

/// Returns remarks on the course of the load.
pub fn remarks(measured: &Measured<'_>) -> Vec<String> {
    let (load, kind) = (measured.load, measured.kind);
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

/// Assembles the result of a run.
pub fn result(session: &Session<'_>, measured: &Measured<'_>, notes: Vec<String>) -> RunResult {
    let (args, load, summary) = (session.args, measured.load, measured.summary);
    let duration_s = summary.duration.as_secs_f64();
    let label = args.output.label.clone();
    RunResult {
        format: FORMAT,
        tool_version: env!("CARGO_PKG_VERSION").into(),
        workload: session.info.name.into(),
        label: label.unwrap_or_else(|| session.db.endpoint.addresses.join(",")),
        kind: measured.kind,
        command_line: std::env::args().collect(),
        config: config(session),
        endpoint: session.db.endpoint.clone(),
        load: load_model(load, args),
        started_at: DateTime::<Utc>::from(measured.started_at),
        duration_s,
        operations: operations(summary, measured.names, duration_s),
        reads: Some(summary.totals.reads).filter(|reads| reads.hit_rate().is_some()),
        pacing: pacing(load, args, summary),
        phases: Vec::new(),
        notes,
        published: Vec::new(),
        server: server_figures(session, summary),
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

fn operations(summary: &LoadSummary, names: &[&str], duration_s: f64) -> Vec<OperationResult> {
    names
        .iter()
        .zip(&summary.totals.operations)
        .filter(|(_, stats)| stats.count() + stats.error_count() > 0)
        .map(|(name, stats)| OperationResult {
            name: (*name).to_owned(),
            count: stats.count(),
            rows: stats.rows,
            rate_per_s: stats.count() as f64 / duration_s.max(1e-9),
            response: LatencySummary::from(&stats.response),
            service: LatencySummary::from(&stats.service),
            errors: stats.errors.clone(),
        })
        .collect()
}

fn pacing(load: &Load, args: &LoadArgs, summary: &LoadSummary) -> Option<Pacing> {
    let lag = |of: fn(&Schedule) -> Duration| load.schedules().map(of).max();
    let answered = summary.totals.count() + summary.totals.error_count();
    Some(Pacing {
        target_per_s: args.load.rate,
        achieved_per_s: answered as f64 / summary.duration.as_secs_f64().max(1e-9),
        lag_max_ms: lag(Schedule::lag_max)?.as_secs_f64() * 1e3,
        lag_end_ms: lag(Schedule::lag)?.as_secs_f64() * 1e3,
    })
}

fn server_figures(session: &Session<'_>, summary: &LoadSummary) -> Vec<ServerFigure> {
    let mut figures = Vec::new();
    let mut add = |name: &str, value: Option<f64>, unit: &str| {
        figures.extend(value.map(|value| ServerFigure {
            name: name.into(),
            value,
            unit: unit.into(),
        }));
    };
    let count = Some(summary.totals.count() as f64).filter(|count| *count > 0.0);
    let an_operation = |cpu: Option<Duration>| Some(micros(cpu?) / count?);
    add("CPU time an operation", an_operation(summary.server_cpu), "µs");
    let cores = summary
        .server_cpu
        .map(|cpu| cpu.as_secs_f64() / summary.duration.as_secs_f64().max(1e-9));
    add("CPU", cores, "cores");
    add(
        "client's CPU time an operation",
        an_operation(summary.client_cpu),
        "µs",
    );
    add(
        "memory at the start",
        summary.server_rss_start.map(|bytes| bytes as f64),
        "bytes",
    );
    add(
        "memory at most",
        summary.server_rss_max.map(|bytes| bytes as f64),
        "bytes",
    );
    if let Some((_, page)) = &summary.pages {
        add("page of metrics", Some(page.bytes as f64), "bytes");
        add("reading that page", Some(micros(page.took)), "µs");
    }
    let setup = &session.setup_times;
    if setup.created > 1 {
        add(
            &format!("making {} tables and indexes", setup.created),
            Some(micros(setup.create)),
            "µs",
        );
        add("preparing their statements", Some(micros(setup.prepare)), "µs");
        add(
            "connecting, the schema read",
            setup.connect_with_schema.map(micros),
            "µs",
        );
        add(
            "memory that making them took",
            setup.memory_bytes.map(|bytes| bytes as f64),
            "bytes",
        );
    }
    figures
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

/// Returns the worst problem of a run, as its exit status.
pub fn exit_status(result: &RunResult, load: &Load) -> Ended {
    let mut ended = Ended::Well;
    let failed = match result.kind {
        RunKind::Run => result.error_count() > 0,
        // Failed operations are retried by these commands, so only the final failures count.
        RunKind::Populate | RunKind::Verify => load.given_up.load(Ordering::Relaxed) > 0,
    };
    if failed {
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
