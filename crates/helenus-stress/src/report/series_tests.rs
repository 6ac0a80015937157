use super::*;
use crate::results::{IntervalOperation, samples};

fn interval(elapsed_s: f64, ops: u64, p99_us: u64) -> Interval {
    let operation = IntervalOperation {
        ops,
        p99_us,
        ..IntervalOperation::default()
    };
    Interval {
        elapsed_s,
        operations: BTreeMap::from([("read".to_owned(), operation)]),
        ..Interval::default()
    }
}

fn run(intervals: Vec<Interval>) -> LoadedRun {
    LoadedRun {
        directory: "x".into(),
        result: samples::run("x", 1.0),
        intervals,
        histograms: BTreeMap::new(),
    }
}

fn rates(series: &RunSeries<'_>) -> Vec<(u64, Option<f64>)> {
    let times: Vec<u64> = series.times().collect();
    let line = series.line(&times, |row| row.rate(Some("read")));
    times
        .into_iter()
        .zip(
            line.middle
                .into_iter()
                .map(|value| value.map(|number| number.0.round())),
        )
        .collect()
}

#[test]
fn intervals_fall_on_whole_steps_and_rates_are_per_second() {
    let run = run(vec![
        interval(1.002, 100, 1),
        interval(2.001, 200, 1),
        interval(2.999, 300, 1),
    ]);
    let series = RunSeries::new("x".into(), vec![&run]);
    assert_eq!(
        rates(&series),
        [(1000, Some(100.0)), (2000, Some(200.0)), (3000, Some(301.0))]
    );
}

#[test]
fn a_short_end_joins_the_row_before() {
    let run = run(vec![
        interval(1.0, 100, 1),
        interval(2.0, 100, 5),
        interval(2.01, 1, 9),
    ]);
    let series = RunSeries::new("x".into(), vec![&run]);
    assert_eq!(rates(&series), [(1000, Some(100.0)), (2000, Some(100.0))]);
    let worst = series.line(&[2000], |row| Some(row.interval.operations["read"].p99_us as f64));
    assert_eq!(worst.middle[0].map(|number| number.0), Some(9.0));
}

#[test]
fn rounds_give_a_median_and_a_band() {
    let runs = [100, 300, 200].map(|ops| run(vec![interval(1.0, ops, 1)]));
    let series = RunSeries::new("x".into(), runs.iter().collect());
    let line = series.line(&[1000, 2000], |row| row.rate(None));
    assert_eq!(line.middle, [Some(Number(200.0)), None]);
    assert_eq!(
        line.band,
        Some((vec![Some(Number(100.0)), None], vec![Some(Number(300.0)), None]))
    );
}

#[test]
fn a_day_is_merged_without_losing_an_operation() {
    let run = run((1..=86_400)
        .map(|second| interval(f64::from(second), 10, 1))
        .collect());
    let series = RunSeries::new("x".into(), vec![&run]);
    let rates = rates(&series);
    assert!(
        rates.len() <= MOST_ROWS && rates.len() > MOST_ROWS / 2,
        "{}",
        rates.len()
    );
    assert!(rates.iter().all(|(_, rate)| *rate == Some(10.0)));
    assert_eq!(series.step_ms(), 11_000);
}

#[test]
fn no_intervals_give_no_rows() {
    let run = run(Vec::new());
    let series = RunSeries::new("x".into(), vec![&run]);
    assert_eq!((series.times().count(), series.step_ms()), (0, 0));
}
