//! `repro`: repeats published experiments at a scale, and prints the published figures beside the measured ones.

mod batch_mutate;
mod dense_kv;
mod figures;
mod many_tables;
mod overload;
mod table_count;
mod tombstones;
mod user_quorum;

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use chrono::Local;
use tokio::runtime::Runtime;

use super::execute::{Run, execute};
use super::session::{PreparedWorkload, Session};
use super::{Ended, print};
use crate::cli;
use crate::cli::options::{LoadArgs, ReproArgs};
use crate::results::{PublishedFigure, RunKind};

/// An experiment: a published one, or one of the project's own.
struct Experiment {
    /// The experiment's letter in the project's documents.
    letter: &'static str,
    name: &'static str,
    steps: fn(&Scale) -> Vec<Step>,
    /// Returns the figures of a step with their published values. Its arguments are the steps before, the step's name and its run.
    figures: fn(&[Done], &str, &Run) -> Vec<PublishedFigure>,
}

static ALL: [Experiment; 7] = [
    many_tables::EXPERIMENT,
    dense_kv::EXPERIMENT,
    batch_mutate::EXPERIMENT,
    user_quorum::EXPERIMENT,
    tombstones::EXPERIMENT,
    overload::EXPERIMENT,
    table_count::EXPERIMENT,
];

/// A part of an experiment, with its own load.
struct Step {
    /// Letters, digits and hyphens. The step's folder has this name too.
    name: String,
    /// Steps with the same keyspace share its data. The keyspace is dropped after the last of them.
    keyspace: &'static str,
    kind: RunKind,
    /// The command's arguments.
    line: String,
    /// The step's rate, if it depends on an earlier step.
    rate: Option<Rate>,
    /// True if the step reuses the connections, statements and state of the keyspace's previous step. Both must have the same workload and
    /// keys.
    goes_on: bool,
    /// True if the rate exceeds the server's capacity. OVERLOADED and a missed rate are no failures then.
    sheds: bool,
}

/// A multiple of the rate of an earlier step.
#[derive(Clone, Copy, Debug)]
struct Rate {
    of: &'static str,
    factor: f64,
}

impl Step {
    /// Returns a step without a rate limit, which reuses nothing.
    fn new(name: impl Into<String>, keyspace: &'static str, kind: RunKind, line: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            keyspace,
            kind,
            line: line.into(),
            rate: None,
            goes_on: false,
            sheds: false,
        }
    }

    /// Returns the command's arguments, with the rate if there is one.
    fn arguments(&self, done: &[Done]) -> Result<String> {
        let Some(Rate { of, factor }) = self.rate else {
            return Ok(self.line.clone());
        };
        let before = figures::step(done, of).with_context(|| format!("there was no step {of}"))?;
        let per_s: f64 = before.result.operations.iter().map(|of| of.rate_per_s).sum();
        if per_s < 1.0 {
            bail!("nothing was done in step {of}");
        }
        Ok(format!("{} --rate {:.0}", self.line, per_s * factor))
    }

    /// Returns the exit status of a step. A step that exceeds the server's capacity may miss its rate.
    fn exit_status(&self, run: &Run) -> Ended {
        let mut errors = run.result.operations.iter().flat_map(|of| &of.errors);
        match run.ended {
            Ended::WithErrors | Ended::RateMissed
                if self.sheds && errors.all(|error| error.code == Some(OVERLOADED)) =>
            {
                Ended::Well
            }
            ended => ended,
        }
    }
}

/// The protocol's error code of an overloaded server.
const OVERLOADED: u32 = 0x1001;

/// A completed step.
struct Done {
    name: String,
    run: Run,
    ended: Ended,
}

/// Size of an experiment.
#[derive(Clone, Copy, Debug)]
struct Scale {
    factor: f64,
    duration: Option<Duration>,
}

impl Scale {
    /// Scales a number of the report. The result is at least `least`.
    fn count(self, full: f64, least: u64) -> u64 {
        ((full * self.factor).round() as u64).max(least)
    }

    /// Returns the seconds of a step that took `full` seconds in the report, at least 5. A duration on the command line takes precedence.
    fn seconds(self, full: f64) -> f64 {
        self.duration.map_or_else(
            || (full * self.factor).max(5.0),
            |explicit| explicit.as_secs_f64(),
        )
    }
}

/// Runs an experiment.
pub fn repro(args: &ReproArgs) -> Result<Ended> {
    let experiment = find(&args.name)?;
    let scale = Scale {
        factor: args.scale,
        duration: args.duration,
    };
    let steps = (experiment.steps)(&scale);
    let directory = args.output.out.clone().unwrap_or_else(|| {
        let time = Local::now().format("%Y%m%d-%H%M%S");
        PathBuf::from("stress-results").join(format!("repro-{}-{time}", experiment.name))
    });
    let runtime = Runtime::new()?;
    let mut done: Vec<Done> = Vec::new();
    let mut prepared: HashMap<&str, PreparedWorkload> = HashMap::new();
    for (number, step) in steps.iter().enumerate() {
        let line = step.arguments(&done)?;
        let load = step_args(args, step, &line, &directory)?;
        println!(
            "\n── {} of {}: helenus-stress {} {line}",
            number + 1,
            steps.len(),
            step.kind.name(),
        );
        let session = match prepared.remove(step.keyspace).filter(|_| step.goes_on) {
            Some(workload) => Session::over(workload, &runtime, &load),
            None => Session::open(&runtime, &load, step.kind)?,
        };
        let run = execute(&session, step.kind, |run| {
            run.result.published = (experiment.figures)(&done, &step.name, run);
        })?;
        let is_last = steps[number + 1..]
            .iter()
            .all(|next| next.keyspace != step.keyspace);
        if run.interrupted || is_last {
            runtime.block_on(session.drop_keyspace())?;
        }
        if run.interrupted {
            bail!("interrupted in step {}", step.name);
        }
        print::run(&run)?;
        prepared.insert(step.keyspace, session.into_prepared());
        done.push(Done {
            name: step.name.clone(),
            ended: step.exit_status(&run),
            run,
        });
    }
    summary(experiment, args.scale, &done)?;
    println!("Results: {}", directory.display());
    Ok(done.iter().map(|done| done.ended).max().unwrap_or(Ended::Well))
}

fn find(name: &str) -> Result<&'static Experiment> {
    let is = |known: &str| known.eq_ignore_ascii_case(name);
    ALL.iter()
        .find(|experiment| is(experiment.name) || is(experiment.letter))
        .with_context(|| {
            let names: Vec<String> = ALL
                .iter()
                .map(|known| format!("{} ({})", known.name, known.letter))
                .collect();
            format!("no experiment {name:?}; there are {}", names.join(", "))
        })
}

/// Returns the step's arguments, with the connection, schema and server of the command line.
fn step_args(args: &ReproArgs, step: &Step, line: &str, directory: &Path) -> Result<LoadArgs> {
    let mut load = cli::run_arguments(line.split_whitespace().map(OsString::from))?;
    let level = load.connect.cl;
    load.connect = args.connect.clone();
    if step.line.contains("--cl ") {
        load.connect.cl = level;
    }
    load.schema = args.schema.clone();
    load.schema.keyspace = format!("{}_{}", args.schema.keyspace, step.keyspace);
    load.server = args.server.clone();
    load.output = args.output.clone();
    load.output.out = Some(directory.join(&step.name));
    Ok(load)
}

fn summary(experiment: &Experiment, scale: f64, done: &[Done]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "\n{} ({}) at scale {scale}",
        experiment.name, experiment.letter
    )?;
    writeln!(out, "{:<48} {:<28} measured", "", "published")?;
    for figure in done.iter().flat_map(|done| &done.run.result.published) {
        let note = figure
            .note
            .as_deref()
            .map_or(String::new(), |note| format!("  ({note})"));
        writeln!(
            out,
            "{:<48} {:<28} {}{note}",
            figure.name, figure.published, figure.measured
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::plan;
    use crate::workloads::{self, Setup};

    #[test]
    fn every_step_is_a_command_line_that_its_workload_understands() {
        for factor in [1.0, 1e-6] {
            let scale = Scale {
                factor,
                duration: None,
            };
            for experiment in &ALL {
                for step in (experiment.steps)(&scale) {
                    let words = step.line.split_whitespace().map(OsString::from);
                    let load =
                        cli::run_arguments(words).unwrap_or_else(|error| panic!("{}: {error}", step.line));
                    let info = workloads::find(&load.workload).unwrap();
                    let setup = Setup::new(info, &load.load).unwrap();
                    plan::mixes(info, &setup, &load.load).unwrap();
                }
            }
        }
    }

    #[test]
    fn experiments_are_known_by_name_and_letter() {
        assert_eq!(find("a").unwrap().name, "many-tables");
        assert_eq!(find("Tombstones").unwrap().letter, "E");
        assert!(find("z").is_err());
    }
}
