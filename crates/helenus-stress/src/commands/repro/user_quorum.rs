//! D: throughput of reads by index falls when nodes are added (Cassandra, 3 and 5 nodes).

use super::figures::{figure, rate_and_mean, server};
use super::{Done, Experiment, Run, Scale, Step};
use crate::results::{PublishedFigure, RunKind};

pub const EXPERIMENT: Experiment = Experiment {
    letter: "D",
    name: "user-quorum",
    steps,
    figures,
};

/// Number of users, and seconds of each phase. The report gives neither.
const USERS: f64 = 10e6;
const PHASE_S: f64 = 1500.0;

/// Operation of each test, and its published figures for 3 and 5 nodes.
const TESTS: [(&str, &str); 4] = [
    ("write_read", "8,098/s, 11,430/s"),
    ("read_index", "7,848/s 124 ms, 894/s 1.1 s"),
    ("read", "20,099/s, 22,684/s"),
    ("write", "12,805/s, 18,015/s"),
];

fn steps(scale: &Scale) -> Vec<Step> {
    let (users, seconds) = (scale.count(USERS, 1000), scale.seconds(PHASE_S));
    let step = |name: String, kind, line: String| Step::new(name, "users", kind, line);
    let load = format!("user-quorum -p {users} -t 8 -c 16 --cl quorum");
    let test = |operation: &str| {
        let line = format!("user-quorum -p {users} -t 100 -c 10 --only {operation} -d {seconds} --cl quorum");
        step(operation.replace('_', "-"), RunKind::Run, line)
    };
    std::iter::once(step("load".into(), RunKind::Populate, load))
        .chain(TESTS.iter().map(|(operation, _)| test(operation)))
        .collect()
}

fn figures(_: &[Done], step: &str, run: &Run) -> Vec<PublishedFigure> {
    let Some((operation, published)) = TESTS
        .iter()
        .find(|(operation, _)| operation.replace('_', "-") == step)
    else {
        return Vec::new();
    };
    let Some(of) = run.result.operation(operation) else {
        return Vec::new();
    };
    let mut figures = vec![figure(
        format!("{operation}, on 3 and 5 nodes"),
        published,
        rate_and_mean(of),
    )];
    if let Some(cpu) = server(run, "CPU time an operation") {
        figures.push(figure(
            format!("{operation}, CPU time of all nodes"),
            "-",
            format!("{cpu:.1} µs"),
        ));
    }
    figures
}
