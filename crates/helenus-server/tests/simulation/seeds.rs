//! Runs seeds, each in a process of its own.

use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::machine::fix_addresses_of_children;

/// Variables that the process of a seed inherits. Others could move its stack, and so change the seeds of hash maps.
const INHERITED: [&str; 3] = ["HELENUS_SIM_LOG", "HELENUS_SIM_TRACE", "RUST_BACKTRACE"];

/// A scenario with its name, and the name of the defect that is built in, if any.
#[derive(Clone, Copy)]
pub struct Case {
    pub scenario: &'static str,
    pub defect: Option<&'static str>,
}

/// Returns the number in a variable of the environment. `None` if it is not set.
pub fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name}={text} is not a number")),
    )
}

/// The outcome of a seed.
pub struct Ended {
    pub case: Case,
    pub seed: u64,
    pub is_good: bool,
    /// The digest of the trace and the number of its lines. Empty if the process ended before.
    pub trace: String,
    /// The output of the process.
    pub printed: String,
}

impl Ended {
    /// Panics with what the process has printed, and with the command that repeats the run, if the seed has failed.
    pub fn check(&self) {
        let (seed, scenario) = (self.seed, self.case.scenario);
        assert!(
            self.is_good,
            "{}\nto repeat: HELENUS_SIM_SEED={seed} cargo test -p helenus-server --test simulation {scenario}",
            self.printed
        );
    }
}

/// Runs one seed in another process.
pub fn run(case: Case, seed: u64) -> Ended {
    fix_addresses_of_children();
    let inherited = INHERITED
        .iter()
        .filter_map(|name| Some((name, std::env::var_os(name)?)));
    let output = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "one_seed",
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .env_clear()
        .envs(inherited)
        .env("HELENUS_SIM_SEED", format!("{seed:020}"))
        .env("HELENUS_SIM_SCENARIO", case.scenario)
        .envs(case.defect.map(|name| ("HELENUS_SIM_DEFECT", name)))
        .output()
        .unwrap();
    let printed = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let printed = printed.join("\n");
    let trace = printed.lines().find_map(|line| line.strip_prefix("trace "));
    Ended {
        case,
        seed,
        is_good: output.status.success(),
        trace: trace.unwrap_or_default().to_owned(),
        printed,
    }
}

/// Runs `count` seeds from `first` on, one on each core at a time, and passes each outcome to `ended`, which returns true if more seeds are
/// wanted.
pub fn run_all(case: Case, first: u64, count: u64, ended: impl Fn(Ended) -> bool + Sync) {
    let next = AtomicU64::new(first);
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + count {
                return;
            }
            if !ended(run(case, seed)) {
                next.store(first + count, Ordering::Relaxed);
            }
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    std::thread::scope(|scope| {
        (0..cores).for_each(|_| {
            scope.spawn(work);
        });
    });
}
