//! `compare`: runs the same load on two servers in alternating rounds.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use chrono::Local;
use rustix::process::{Pid, Signal, kill_process};
use tokio::runtime::Runtime;

use super::Ended;
use super::execute::{Run, execute};
use super::session::Session;
use crate::cli;
use crate::cli::options::{CompareArgs, LoadArgs};
use crate::report;
use crate::results::comparison::Side;
use crate::results::directory::REPORT_FILE;
use crate::results::{Comparison, Round, RunKind, RunResult, table, write_comparison};

/// Minimum number of rounds in which a difference can be distinguished from noise.
const ROUNDS_MIN: u32 = 5;

/// Runs the rounds, and prints and writes the comparison.
pub fn compare(args: &CompareArgs) -> Result<Ended> {
    let directory = args.out.clone().unwrap_or_else(|| {
        let time = Local::now().format("%Y%m%d-%H%M%S");
        PathBuf::from("stress-results").join(format!("compare-{time}"))
    });
    let runtime = Runtime::new()?;
    let sides = [&args.args_a, &args.args_b].map(|more| {
        let words = args
            .run
            .iter()
            .cloned()
            .chain(more.split_whitespace().map(OsString::from));
        cli::run_arguments(words).unwrap_or_else(|error| error.exit())
    });
    let (mut rounds, mut a, mut b) = (Vec::new(), Vec::new(), Vec::new());
    let mut ended = Ended::Well;
    for number in 1..=args.rounds {
        let first = if number % 2 == 1 { Side::A } else { Side::B };
        for side in order(first) {
            let run = one(&runtime, args, &sides[side as usize], side, number, &directory)?;
            ended = ended.max(run.ended);
            if run.interrupted {
                bail!("interrupted in round {number}");
            }
            print_round(number, side, &run.result);
            match side {
                Side::A => a.push(run.result),
                Side::B => b.push(run.result),
            }
        }
        rounds.push(Round {
            first,
            directory_a: folder(number, Side::A),
            directory_b: folder(number, Side::B),
        });
    }
    let mut comparison =
        Comparison::from_runs(std::env::args().collect(), rounds, &a, &b).context("no rounds")?;
    if args.rounds < ROUNDS_MIN {
        let note = format!("Fewer than {ROUNDS_MIN} rounds can't distinguish a difference from noise.");
        comparison.notes.push(note);
    }
    write_comparison(&directory, &comparison)?;
    report::write(std::slice::from_ref(&directory), &directory.join(REPORT_FILE))?;
    print!("\n{}", table::comparison(&comparison));
    println!("Results: {}", directory.display());
    Ok(ended)
}

fn order(first: Side) -> [Side; 2] {
    match first {
        Side::A => [Side::A, Side::B],
        Side::B => [Side::B, Side::A],
    }
}

fn folder(round: u32, side: Side) -> PathBuf {
    PathBuf::from(format!("round-{round}")).join(name(side))
}

fn name(side: Side) -> &'static str {
    match side {
        Side::A => "a",
        Side::B => "b",
    }
}

/// Runs one round of one side, in its own keyspace, which is dropped afterwards.
fn one(
    runtime: &Runtime,
    args: &CompareArgs,
    load: &LoadArgs,
    side: Side,
    round: u32,
    directory: &Path,
) -> Result<Run> {
    let (host, label, pids, metrics, others) = match side {
        Side::A => (&args.a, &args.label_a, &args.pid_a, &args.metrics_a, &args.pid_b),
        Side::B => (&args.b, &args.label_b, &args.pid_b, &args.metrics_b, &args.pid_a),
    };
    let mut load = load.clone();
    load.connect.host = host.split(',').map(str::to_owned).collect();
    load.schema.keyspace = format!("{}_{}{round}", load.schema.keyspace, name(side));
    load.schema.drop = true;
    load.output.out = Some(directory.join(folder(round, side)));
    let own = match side {
        Side::A => &args.args_a,
        Side::B => &args.args_b,
    };
    let named = || format!("{host} {own}").trim_end().to_owned();
    load.output.label = Some(label.clone().unwrap_or_else(named));
    load.server.server_pid = pids.clone();
    load.server.metrics = metrics.clone();
    let _paused = args.pause.then(|| Paused::new(others)).transpose()?;
    let session = Session::open(runtime, &load, RunKind::Run)?;
    let run = execute(&session, RunKind::Run, |_| {})?;
    runtime.block_on(session.drop_keyspace())?;
    Ok(run)
}

/// Processes that are stopped. Dropping this resumes them.
struct Paused(Vec<Pid>);

impl Paused {
    fn new(pids: &[u32]) -> Result<Self> {
        let mut paused = Self(Vec::new());
        for &pid in pids {
            let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
            let pid = pid.context("no process has that number")?;
            kill_process(pid, Signal::STOP).with_context(|| format!("can't stop process {pid:?}"))?;
            paused.0.push(pid);
        }
        Ok(paused)
    }
}

impl Drop for Paused {
    fn drop(&mut self) {
        for &pid in &self.0 {
            let _ = kill_process(pid, Signal::CONT);
        }
    }
}

fn print_round(round: u32, side: Side, result: &RunResult) {
    for operation in &result.operations {
        println!(
            "round {round}  {}  {:<16} {:<14} {:>9.0}/s  p50 {} µs  p99 {} µs  max {} µs  errors {}",
            name(side),
            result.label,
            operation.name,
            operation.rate_per_s,
            operation.response.p50_us,
            operation.response.p99_us,
            operation.response.max_us,
            operation.error_count(),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_run_may_be_left_out_and_pasted() {
        for words in [&["run", "kv", "-t", "3"][..], &["kv", "-t", "3"]] {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            let load = cli::run_arguments(words).unwrap();
            assert_eq!((load.workload.as_str(), load.load.threads), ("kv", 3));
        }
    }

    #[test]
    fn paused_process_makes_no_progress_until_resumed() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let state = |pid: u32| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
            stat.rsplit_once(") ")
                .and_then(|(_, rest)| rest.chars().next())
                .unwrap()
        };
        let becomes = |expected: char| {
            (0..200).any(|_| {
                std::thread::sleep(std::time::Duration::from_millis(5));
                (state(child.id()) == 'T') == (expected == 'T')
            })
        };
        let paused = Paused::new(&[child.id()]).unwrap();
        assert!(becomes('T'));
        drop(paused);
        assert!(becomes('S'));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
