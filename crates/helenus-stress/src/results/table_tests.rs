use std::path::Path;

use super::super::{LoadModel, Round, samples};
use super::*;

/// Compares a text with a file in testdata. `GOLDEN=write` writes the file again.
fn golden(name: &str, text: &str) {
    let path = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"))
        .join("testdata")
        .join(name);
    if std::env::var("GOLDEN").is_ok_and(|value| value == "write") {
        std::fs::write(&path, text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text, expected, "\n{text}");
}

#[test]
fn an_open_loop_with_errors() {
    let mut result = samples::run("helenus", 1.0);
    result.operations[1].service.p50_us = 120;
    result.operations[1].errors[0].example = Some("busy\nvery".into());
    golden("table-open.txt", &run(&result));
}

#[test]
fn a_closed_loop_of_batches() {
    let mut result = samples::run("cassandra", 12.0);
    result.load = LoadModel::Closed {
        threads: 8,
        in_flight_per_thread: 50,
    };
    result.operations.remove(0);
    result.operations[0].rows = result.operations[0].count * 10_000;
    result.operations[0].errors.clear();
    (result.pacing, result.reads) = (None, None);
    result.notes.clear();
    result.published.clear();
    result.server.clear();
    golden("table-closed.txt", &run(&result));
}

#[test]
fn nothing_done() {
    let mut result = samples::run("helenus", 1.0);
    result.operations.truncate(1);
    result.operations[0].count = 0;
    result.operations[0].rows = 0;
    let text = run(&result);
    let row = text
        .lines()
        .find(|line| line.trim_start().starts_with("read "))
        .unwrap();
    assert_eq!(row.matches(NONE).count(), 8, "{row}");
}

#[test]
fn a_comparison_and_its_rounds() {
    let runs = |label, slower: f64| {
        (0..5)
            .map(|i| samples::run(label, slower + f64::from(i) / 100.0))
            .collect::<Vec<_>>()
    };
    let rounds = (1..=5)
        .map(|round| Round {
            first: Side::A,
            directory_a: format!("round-{round}/a").into(),
            directory_b: format!("round-{round}/b").into(),
        })
        .collect();
    let (a, b) = (runs("helenus", 1.0), runs("cassandra", 2.0));
    let of = Comparison::from_runs(Vec::new(), rounds, &a, &b).unwrap();
    golden("table-comparison.txt", &comparison(&of));
}
