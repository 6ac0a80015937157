//! Runs seeds, each in a process of its own.

use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::machine::fix_addresses_of_children;
use crate::size::Size;

/// Variables that the process of a seed inherits. Others could move its stack, and so change the seeds of hash maps.
const INHERITED: [&str; 3] = ["HELENUS_SIM_LOG", "HELENUS_SIM_TRACE", "RUST_BACKTRACE"];

/// A scenario with its name, the name of the defect that is built in, if any, and the size of the run.
#[derive(Clone)]
pub struct Case {
    pub scenario: String,
    pub defect: Option<String>,
    pub size: Size,
}

impl Case {
    /// Returns a scenario without defects, in the size that the environment names.
    pub fn of(scenario: &str) -> Case {
        Case {
            scenario: scenario.to_owned(),
            defect: None,
            size: Size::from_environment(),
        }
    }

    /// Returns the command that runs a seed.
    fn command(&self, seed: u64) -> String {
        let size = self.size.variables();
        let size = size.map(|(name, value)| format!("{name}={value} ")).concat();
        let scenario = &self.scenario;
        format!("{size}HELENUS_SIM_SEED={seed} cargo test -p helenus-server --test simulation {scenario}")
    }
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
    /// Panics with what the process has printed, and with the commands that repeat the run as it was and in its smallest size, if the seed
    /// has failed.
    pub fn check(&self) {
        if self.is_good {
            return;
        }
        // Further runs would overwrite the trace.
        let smallest = match std::env::var_os("HELENUS_SIM_TRACE") {
            Some(_) => self.case.command(self.seed),
            None => shrunk(&self.case, self.seed).command(self.seed),
        };
        panic!(
            "{}\nto repeat: {}\nsmallest:  {smallest}",
            self.printed,
            self.case.command(self.seed)
        );
    }
}

/// Returns the smallest case in which a failed seed fails, too: fewer workloads, and less time.
fn shrunk(failed: &Case, seed: u64) -> Case {
    let mut smallest = failed.clone();
    let fails = |size: &Size| {
        let case = Case {
            size: size.clone(),
            ..failed.clone()
        };
        !run(&case, seed).is_good
    };
    while let Some(smaller) = smallest.size.smaller().into_iter().find(fails) {
        smallest.size = smaller;
    }
    smallest
}

/// Returns the first seed that fails, of `count` seeds. `None` if none fails.
pub fn first_failure(case: &Case, count: u64) -> Option<u64> {
    let found = Mutex::new(None);
    run_all(case, 1, count, |ended| {
        if !ended.is_good {
            found.lock().unwrap().get_or_insert(ended.seed);
        }
        ended.is_good
    });
    found.into_inner().unwrap()
}

/// Runs one seed in another process.
pub fn run(case: &Case, seed: u64) -> Ended {
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
        .env("HELENUS_SIM_SCENARIO", &case.scenario)
        .envs(case.defect.as_ref().map(|name| ("HELENUS_SIM_DEFECT", name)))
        .envs(case.size.variables())
        .output()
        .unwrap();
    let printed = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let printed = printed.join("\n");
    let trace = printed.lines().find_map(|line| line.strip_prefix("trace "));
    Ended {
        case: case.clone(),
        seed,
        is_good: output.status.success(),
        trace: trace.unwrap_or_default().to_owned(),
        printed,
    }
}

/// Runs `count` seeds from `first` on, one on each core at a time, and passes each outcome to `ended`, which returns true if more seeds are
/// wanted.
pub fn run_all(case: &Case, first: u64, count: u64, ended: impl Fn(Ended) -> bool + Sync) {
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
