use std::collections::BTreeMap;

use super::*;
use crate::results::{LoadedRun, samples};

fn loaded(result: RunResult) -> LoadedRun {
    LoadedRun {
        directory: "x".into(),
        result,
        intervals: Vec::new(),
        histograms: BTreeMap::new(),
    }
}

fn texts(runs: &[LoadedRun]) -> Vec<(Level, String)> {
    let run_series: Vec<RunSeries<'_>> = runs
        .iter()
        .map(|run| RunSeries::new(run.result.label.clone(), vec![run]))
        .collect();
    notices(&run_series)
        .into_iter()
        .map(|notice| (notice.level, notice.text))
        .collect()
}

#[test]
fn the_worst_is_said_first() {
    let mut run = samples::run("x", 1.0);
    run.pacing.as_mut().unwrap().achieved_per_s = 500.25;
    let said = texts(&[loaded(run)]);
    assert_eq!(
        said[0],
        (
            Level::Bad,
            "reads did not find what was written: 7 missing, 3 corrupt.".into()
        )
    );
    assert_eq!(
        said[1],
        (
            Level::Warning,
            "the rate was missed: 500/s of 1,001/s requested (50%).".into()
        )
    );
    assert_eq!(said[2], (Level::Warning, "the disk was busy".into()));
    assert_eq!(said.len(), 3);
}

#[test]
fn a_closed_loop_says_what_its_latencies_are_once() {
    let mut run = samples::run("x", 1.0);
    run.load = LoadModel::Closed {
        threads: 8,
        in_flight_per_thread: 50,
    };
    run.notes.clear();
    run.reads = None;
    let mut other = run.clone();
    other.label = "y".into();
    let said = texts(&[loaded(run), loaded(other)]);
    assert_eq!(said.len(), 1);
    assert_eq!(said[0].0, Level::Info);
    assert!(said[0].1.starts_with("Closed loop:"));
}

#[test]
fn tiles_show_what_went_wrong() {
    let tiles = tiles(&samples::run("x", 1.0));
    let bad: Vec<_> = tiles
        .iter()
        .filter(|tile| tile.bad)
        .map(|tile| tile.label.as_str())
        .collect();
    assert_eq!(bad, ["Hit rate", "Errors"]);
    assert_eq!(tiles[0].detail, "of 1,001/s requested");
}

#[test]
fn service_times_have_a_row_of_their_own_where_they_differ() {
    let mut run = samples::run("x", 1.0);
    run.operations[1].service.p50_us = 1;
    (run.operations[0].count, run.operations[0].rows) = (0, 0);
    let run = loaded(run);
    let run_series = [RunSeries::new("x".into(), vec![&run])];
    let (heads, rows) = summary(&run_series);
    let names: Vec<_> = rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["read", "write", "write service time"]);
    assert!(
        rows.iter()
            .all(|row| row.cells.len() == heads.len() && row.series.is_none())
    );
    assert_eq!(rows[0].cells[2], "–");
    assert_eq!(rows[1].cells[10], "7");
}

#[test]
fn errors_are_listed_with_their_codes_most_frequent_first() {
    let mut run = samples::run("x", 1.0);
    run.operations[1].errors[1].count = 9;
    let run = loaded(run);
    let rows = errors(&[RunSeries::new("x".into(), vec![&run])]);
    let shown: Vec<_> = rows
        .iter()
        .map(|row| (row.name.as_str(), row.code.as_str(), row.count.as_str()))
        .collect();
    assert_eq!(
        shown,
        [("client timeout", "–", "9"), ("OVERLOADED", "0x1001", "5")]
    );
}
