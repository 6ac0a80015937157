//! Whole nodes in simulated time: engine, agent, log, flushes, compactions and forwarding of three nodes on one thread, on a store and a
//! network that fail. A seed decides all steps. Each seed runs in a process of its own, so that no state of a former one matters.
//!
//! Each scenario is a test. `HELENUS_SIM_SEED=n` runs one seed only. `HELENUS_SIM_SEEDS=n` runs that number of seeds, from `HELENUS_SIM_FIRST` on.
//! `HELENUS_SIM_TRACE=file` writes the log of the seed, with `HELENUS_SIM_LOG` as its filter.
#![cfg(target_os = "linux")]

mod bucket;
mod clients;
mod defect;
mod dice;
mod machine;
mod network;
mod node;
mod register;
mod scenario;
mod seeds;
mod serializability;
mod trace;
mod transfers;
mod world;

use std::io::Write;
use std::sync::Mutex;

use seeds::Case;

/// Number of seeds of each scenario in a test run.
const SEEDS: u64 = 2;
/// Number of seeds among which a built-in defect must be found.
const DEFECT_SEEDS: u64 = 40;

/// Runs the seeds that the environment names.
fn check(scenario: &'static str) {
    let case = Case {
        scenario,
        defect: None,
    };
    if let Some(seed) = seeds::number("HELENUS_SIM_SEED") {
        let ended = seeds::run(case, seed);
        println!("{}", ended.printed);
        return ended.check();
    }
    let first = seeds::number("HELENUS_SIM_FIRST").unwrap_or(1);
    let count = seeds::number("HELENUS_SIM_SEEDS").unwrap_or(SEEDS);
    let failed = Mutex::new(Vec::new());
    seeds::run_all(case, first, count, |ended| {
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
fn pauses_past_the_lease() {
    check("pauses_past_the_lease");
}

#[test]
fn late_requests() {
    check("late_requests");
}

#[test]
fn transfers_random_faults() {
    check("transfers_random_faults");
}

#[test]
fn transfers_late_requests() {
    check("transfers_late_requests");
}

#[test]
fn transfers_kills() {
    check("transfers_kills");
}

#[test]
fn transfers_divided() {
    check("transfers_divided");
}

#[test]
fn a_seed_takes_the_same_steps_twice() {
    let case = Case {
        scenario: "random_faults",
        defect: None,
    };
    let runs = [seeds::run(case, 1), seeds::run(case, 1)];
    runs.iter().for_each(seeds::Ended::check);
    assert_eq!(runs[0].trace, runs[1].trace);
}

#[test]
#[ignore = "takes minutes; run after a change of the simulation"]
fn built_in_defects_are_found() {
    for (name, _) in defect::ALL {
        let case = Case {
            scenario: if name == "lease-clock-stops" {
                "pauses_past_the_lease"
            } else {
                "random_faults"
            },
            defect: Some(name),
        };
        let found = Mutex::new(None);
        seeds::run_all(case, 1, DEFECT_SEEDS, |ended| {
            if !ended.is_good {
                found.lock().unwrap().get_or_insert(ended.seed);
            }
            ended.is_good
        });
        let found = found.into_inner().unwrap();
        println!("{name}: found by seed {found:?}");
        assert!(found.is_some(), "{name} is not found by {DEFECT_SEEDS} seeds");
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
    let named = |of: &[(&str, scenario::Scenario)]| {
        let found = of.iter().find(|(known, _)| *known == name);
        found.map(|(_, scenario)| *scenario)
    };
    let result = std::panic::catch_unwind(|| match named(&transfers::ALL) {
        Some(scenario) => transfers::run(scenario, seed),
        None => scenario::run(named(&scenario::ALL).unwrap(), seed),
    });
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
