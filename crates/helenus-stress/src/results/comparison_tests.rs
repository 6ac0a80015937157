use super::super::{Loaded, ServerFigure, samples, write_comparison};
use super::*;

fn comparison(factors_a: [f64; 5], factors_b: [f64; 5]) -> Comparison {
    let runs = |label, factors: [f64; 5]| factors.map(|factor| samples::run(label, factor));
    let rounds = (1..=5)
        .map(|round| Round {
            first: if round % 2 == 1 { Side::A } else { Side::B },
            directory_a: format!("round-{round}-a").into(),
            directory_b: format!("round-{round}-b").into(),
        })
        .collect();
    let (a, b) = (runs("helenus", factors_a), runs("cassandra", factors_b));
    Comparison::from_runs(vec!["helenus-stress".into()], rounds, &a, &b).unwrap()
}

fn figure<'a>(comparison: &'a Comparison, name: &str) -> &'a ComparedFigure {
    comparison
        .figures
        .iter()
        .find(|figure| figure.name == name)
        .unwrap()
}

#[test]
fn slower_side_is_detected() {
    let comparison = comparison([1.0, 1.01, 0.99, 1.02, 0.98], [2.0, 2.02, 1.98, 2.04, 1.96]);
    for name in [
        "write rate",
        "write response p99",
        "read response max",
        "CPU time an operation",
    ] {
        assert_eq!(figure(&comparison, name).verdict, Verdict::ABetter, "{name}");
    }
    let rate = figure(&comparison, "write rate");
    assert!((rate.ratio.unwrap() - 0.5).abs() < 1e-9);
    assert_eq!((rate.a.rounds.len(), rate.a.median), (5, 800.0));
    assert_eq!(figure(&comparison, "errors").verdict, Verdict::WithinNoise);
}

#[test]
fn a_figure_of_unknown_direction_only_differs() {
    let with_hits = |label, hits: f64| {
        let mut run = samples::run(label, 1.0);
        run.server[0] = ServerFigure {
            name: "cache hits".into(),
            value: hits,
            unit: String::new(),
        };
        run
    };
    let runs = |label, hits: f64| {
        (0..5)
            .map(|i| with_hits(label, hits + f64::from(i)))
            .collect::<Vec<_>>()
    };
    let comparison =
        Comparison::from_runs(Vec::new(), Vec::new(), &runs("a", 10.0), &runs("b", 20.0)).unwrap();
    assert_eq!(figure(&comparison, "cache hits").verdict, Verdict::Differs);
}

#[test]
fn overlapping_rounds_are_noise() {
    let comparison = comparison([1.0, 1.1, 0.9, 1.2, 0.8], [1.15, 1.25, 1.05, 1.35, 0.95]);
    assert!(
        comparison
            .figures
            .iter()
            .all(|figure| figure.verdict == Verdict::WithinNoise)
    );
}

#[test]
fn it_reads_back_as_it_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let comparison = comparison([1.0; 5], [2.0; 5]);
    write_comparison(folder.path(), &comparison).unwrap();
    let Loaded::Comparison(read) = Loaded::read(folder.path()).unwrap() else {
        panic!("a comparison")
    };
    assert_eq!(*read, comparison);
}

#[test]
fn a_figure_that_one_side_lacks_is_left_out() {
    let mut b = samples::run("cassandra", 1.0);
    b.server.clear();
    let comparison =
        Comparison::from_runs(Vec::new(), Vec::new(), &[samples::run("helenus", 1.0)], &[b]).unwrap();
    assert!(
        comparison
            .figures
            .iter()
            .all(|figure| figure.name != "CPU time an operation")
    );
    assert!(Comparison::from_runs(Vec::new(), Vec::new(), &[], &[]).is_none());
}
