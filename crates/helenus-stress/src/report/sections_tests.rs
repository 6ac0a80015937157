use std::collections::BTreeMap;

use super::*;
use crate::results::{Interval, LoadedRun, ServerSample, new_latency_histogram, samples};

fn loaded(label: &str) -> LoadedRun {
    let operation = IntervalOperation {
        ops: 10,
        errors: 1,
        p50_us: 1,
        p99_us: 2,
        p99_9_us: 3,
        max_us: 4,
    };
    let second = |second: u32| Interval {
        elapsed_s: f64::from(second),
        lag_ms: Some(0.5),
        operations: BTreeMap::from([("read".to_owned(), operation), ("write".to_owned(), operation)]),
        server: ServerSample {
            cpu_cores: Some(0.5),
            rss_bytes: None,
            gauges: BTreeMap::from([("cache_bytes".to_owned(), 7.0)]),
        },
    };
    let mut histogram = new_latency_histogram();
    (1..=1000).for_each(|value| histogram.saturating_record(value));
    let mut service = histogram.clone();
    service.saturating_record(5);
    LoadedRun {
        directory: label.into(),
        result: samples::run(label, 1.0),
        intervals: (1..=5).map(second).collect(),
        histograms: BTreeMap::from([
            ("read.response".to_owned(), histogram.clone()),
            ("read.service".to_owned(), service),
            ("write.response".to_owned(), histogram.clone()),
            ("write.service".to_owned(), histogram),
        ]),
    }
}

fn build(runs: &[LoadedRun]) -> (Vec<Section>, ChartData) {
    let run_series: Vec<RunSeries<'_>> = runs
        .iter()
        .map(|run| RunSeries::new(run.result.label.clone(), vec![run]))
        .collect();
    Builder::new(&run_series).build()
}

fn section<'a>(sections: &'a [Section], id: &str) -> &'a Section {
    sections.iter().find(|section| section.id == id).unwrap()
}

fn labels(chart: &Chart) -> Vec<&str> {
    chart.series.iter().map(|series| series.label.as_str()).collect()
}

#[test]
fn one_run_tells_its_operations_apart() {
    let (sections, data) = build(&[loaded("x")]);
    let charts = |id: &str| &section(&sections, id).charts;
    assert_eq!(
        labels(&charts("throughput")[0].1),
        ["read", "write", "all", "target"]
    );
    assert_eq!(labels(&charts("latency")[1].1), ["p50", "p99", "p99.9", "max"]);
    assert_eq!(
        labels(&charts("percentiles")[0].1),
        ["read response", "read service", "write"]
    );
    assert_eq!(labels(&charts("errors")[0].1), ["read", "write"]);
    assert_eq!(labels(&charts("lag")[0].1), ["x"]);
    assert_eq!(
        charts("server")
            .iter()
            .map(|(_, chart)| chart.title.as_str())
            .collect::<Vec<_>>(),
        ["CPU cores in use", "cache_bytes"],
        "resident memory was not known, so it has no chart"
    );
    assert_eq!(charts("throughput")[0].1.marks.len(), 1);
    assert_eq!((data.time.len(), data.percentile.len()), (5, 122));
    assert!(sections.iter().all(|section| section.switch.is_empty()));
}

#[test]
fn several_runs_are_told_apart_and_switched() {
    let mut late = loaded("y");
    late.intervals.truncate(3);
    let (sections, data) = build(&[loaded("x"), late]);
    let throughput = &section(&sections, "throughput").charts;
    assert_eq!(
        throughput
            .iter()
            .map(|(_, c)| c.title.as_str())
            .collect::<Vec<_>>(),
        ["All operations", "read", "write"]
    );
    assert_eq!(labels(&throughput[0].1), ["x", "y", "target"]);
    assert_eq!(
        throughput[0].1.series[1].variants[0].middle[2..],
        [Some(Number(20.0)), None, None]
    );
    let latency = section(&sections, "latency");
    assert_eq!(latency.switch.iter().position(|choice| choice.chosen), Some(1));
    assert!(
        latency
            .charts
            .iter()
            .all(|(_, chart)| chart.series.iter().all(|s| s.variants.len() == 4))
    );
    assert_eq!(section(&sections, "percentiles").switch.len(), 2);
    let places: Vec<usize> = sections
        .iter()
        .flat_map(|section| &section.charts)
        .map(|(place, _)| *place)
        .collect();
    assert_eq!(places, (0..data.charts.len()).collect::<Vec<_>>());
}

#[test]
fn a_closed_loop_has_no_lag_and_no_target() {
    let mut run = loaded("x");
    run.result.load = LoadModel::Closed {
        threads: 1,
        in_flight_per_thread: 1,
    };
    let (sections, _) = build(&[run]);
    assert!(sections.iter().all(|section| section.id != "lag"));
    assert_eq!(
        labels(&section(&sections, "throughput").charts[0].1),
        ["read", "write", "all"]
    );
}

#[test]
fn nothing_measured_is_said_instead_of_drawn() {
    let mut run = loaded("x");
    run.intervals.clear();
    run.histograms.clear();
    run.result
        .operations
        .iter_mut()
        .for_each(|operation| operation.errors.clear());
    run.result.load = LoadModel::Closed {
        threads: 1,
        in_flight_per_thread: 1,
    };
    let (sections, data) = build(&[run]);
    assert!(data.charts.is_empty());
    assert_eq!(section(&sections, "errors").empty, "No operation failed.");
    assert_eq!(
        section(&sections, "throughput").empty,
        "The folder holds no intervals."
    );
}

#[test]
fn second_without_answers_is_latency_gap_and_zero_rate() {
    let mut run = loaded("x");
    run.intervals[2]
        .operations
        .insert("read".to_owned(), IntervalOperation::default());
    let (sections, _) = build(&[run]);
    let first = |id: &str| section(&sections, id).charts[0].1.series[0].variants[0].middle[2];
    assert_eq!((first("latency"), first("throughput")), (None, Some(Number(0.0))));
}
