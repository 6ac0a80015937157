//! Whole nodes in simulated time: engine, agent, log, flushes, compactions and forwarding of three nodes on one thread, on a store and a
//! network that fail. A seed decides all steps. Each seed runs in a process of its own, so that no state of a former one matters.
//!
//! Each scenario is a test. `HELENUS_SIM_SEED=n` runs one seed only. `HELENUS_SIM_SEEDS=n` runs that number of seeds, from `HELENUS_SIM_FIRST` on.
//! `HELENUS_SIM_SECONDS` and `HELENUS_SIM_WORKLOADS` make runs smaller. `HELENUS_SIM_TRACE=file` writes the log of the seed, with `HELENUS_SIM_LOG` as its filter.
#![cfg(target_os = "linux")]

mod bucket;
mod clients;
mod defect;
mod dice;
mod machine;
mod native_client;
mod network;
mod node;
mod register;
mod scenario;
mod seeds;
mod serializability;
mod size;
mod trace;
mod workload;
mod world;

use std::io::Write;
use std::sync::Mutex;

use seeds::Case;

/// Number of seeds of each scenario in a test run.
const SEEDS: u64 = 2;
/// Number of seeds among which a built-in defect must be found.
const DEFECT_SEEDS: u64 = 40;

/// Seeds that have found defects of the nodes, with their scenario and the seconds under load.
const FOUND: [(&str, u64, u64); 2] = [("random_faults", 8, 60), ("long_outages", 20, 60)];

/// Runs the seeds that the environment names. If it names none, the seeds that have found defects run, too.
fn check(scenario: &str) {
    let case = Case::of(scenario);
    if let Some(seed) = seeds::number("HELENUS_SIM_SEED") {
        let ended = seeds::run(&case, seed);
        println!("{}", ended.printed);
        return ended.check();
    }
    if seeds::number("HELENUS_SIM_SEEDS").is_none() {
        for (_, seed, seconds) in FOUND.into_iter().filter(|(name, _, _)| *name == scenario) {
            let mut case = case.clone();
            case.size.seconds = seconds;
            seeds::run(&case, seed).check();
        }
    }
    let first = seeds::number("HELENUS_SIM_FIRST").unwrap_or(1);
    let count = seeds::number("HELENUS_SIM_SEEDS").unwrap_or(SEEDS);
    let failed = Mutex::new(Vec::new());
    seeds::run_all(&case, first, count, |ended| {
        if !ended.is_good {
            println!("{scenario}: seed {} fails", ended.seed);
            failed.lock().unwrap().push(ended);
        }
        true
    });
    let failed = failed.into_inner().unwrap();
    println!("{scenario}: {} of {count} seeds fail", failed.len());
    failed.iter().for_each(seeds::Ended::check);
}

#[test]
fn random_faults() {
    check("random_faults");
}

#[test]
fn long_outages() {
    check("long_outages");
}

#[test]
fn pauses_past_the_lease() {
    check("pauses_past_the_lease");
}

#[test]
fn late_requests() {
    check("late_requests");
}

#[test]
fn kills() {
    check("kills");
}

#[test]
fn divided() {
    check("divided");
}

#[test]
fn a_seed_takes_the_same_steps_twice() {
    let case = Case::of("random_faults");
    let runs = [seeds::run(&case, 1), seeds::run(&case, 1)];
    runs.iter().for_each(seeds::Ended::check);
    assert_eq!(runs[0].trace, runs[1].trace);
}

#[test]
#[ignore = "takes minutes; run after a change of the simulation"]
fn built_in_defects_are_found() {
    for (name, _) in defect::ALL {
        let scenario = match name {
            "lease-clock-stops" => "pauses_past_the_lease",
            _ => "random_faults",
        };
        let case = Case {
            defect: Some(name.to_owned()),
            ..Case::of(scenario)
        };
        let found = seeds::first_failure(&case, DEFECT_SEEDS);
        println!("{name}: found by seed {found:?}");
        assert!(found.is_some(), "{name} is not found by {DEFECT_SEEDS} seeds");
    }
}

/// Searches for the defect of the environment. `tests/mutants/run.py` starts this.
#[test]
#[ignore = "run by tests/mutants/run.py, on a build with defects"]
fn a_named_defect_is_found() {
    let Ok(name) = std::env::var("HELENUS_SIM_DEFECT") else {
        return;
    };
    let scenario = std::env::var("HELENUS_SIM_SCENARIO").unwrap();
    let case = Case {
        defect: Some(name.clone()),
        ..Case::of(&scenario)
    };
    let count = seeds::number("HELENUS_SIM_SEEDS").unwrap_or(DEFECT_SEEDS);
    match seeds::first_failure(&case, count) {
        // A seed that also fails without the defect shows nothing.
        Some(seed) => {
            seeds::run(&Case::of(&scenario), seed).check();
            println!("found by seed {seed}");
        }
        None => panic!("{name} is not found by {count} seeds of {scenario}"),
    }
}

/// Runs the seed of the environment in this process. The other tests start it.
#[test]
#[ignore = "run by the other tests, one process for each seed"]
fn one_seed() {
    // Runs of all ignored tests include this one, without a seed.
    let Some(seed) = seeds::number("HELENUS_SIM_SEED") else {
        return;
    };
    // From here on, because the first hash map takes the keys of all later ones.
    machine::begin(seed);
    let file = std::env::var_os("HELENUS_SIM_TRACE");
    let (trace, _recording) = trace::Trace::begin(file.is_some());
    let name = std::env::var("HELENUS_SIM_SCENARIO").unwrap();
    let size = size::Size::from_environment();
    let (_, scenario) = scenario::ALL.iter().find(|(known, _)| *known == name).unwrap();
    let result = std::panic::catch_unwind(|| scenario::run(*scenario, seed, &size));
    // A thread that a node had started would take steps that do not follow from the seed. The two are this one and its starter.
    assert_eq!(
        std::fs::read_dir("/proc/self/task").unwrap().count(),
        2,
        "threads"
    );
    if let Some(path) = file {
        let mut file = std::fs::File::create(path).unwrap();
        file.write_all(&trace.lines()).unwrap();
    }
    println!("\ntrace {:016x} {}", trace.digest(), trace.line_count());
    match result {
        Ok(Ok(report)) => println!("{report}"),
        Ok(Err(why)) => panic!("seed {seed}: {why}"),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}
