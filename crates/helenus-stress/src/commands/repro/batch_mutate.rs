//! C: batches of ten thousand rows (Cassandra, seen by a tracer).

use super::figures::{figure, server, time};
use super::{Done, Experiment, Run, Scale, Step};
use crate::results::{PublishedFigure, RunKind};

pub const EXPERIMENT: Experiment = Experiment {
    letter: "C",
    name: "batch-mutate",
    steps,
    figures,
};

/// Batches that write the rows of the report once.
const BATCHES_A_ROUND: f64 = 15.0;

fn steps(scale: &Scale) -> Vec<Step> {
    let batches = scale.count(10.0 * BATCHES_A_ROUND, BATCHES_A_ROUND as u64);
    vec![Step::new(
        "batches",
        "batches",
        RunKind::Run,
        format!("batch-mutate -p 150k -t 1 -c 1 -n {batches}"),
    )]
}

fn figures(_: &[Done], _: &str, run: &Run) -> Vec<PublishedFigure> {
    let Some(batch) = run.result.operation("batch") else {
        return Vec::new();
    };
    let of = &batch.service;
    let mut figures = vec![
        figure("a batch, median", "75 ms", time(of.p50_us as f64)),
        figure("a batch, p95", "-", time(of.p95_us as f64)),
        figure("a batch, p99", "-", time(of.p99_us as f64)),
        figure("a batch, slowest", "1.5 s", time(of.max_us as f64)),
        figure(
            "p99 over median",
            "-",
            format!("{:.2}", of.p99_us as f64 / of.p50_us.max(1) as f64),
        ),
        figure(
            "150K rows",
            "10 s",
            time(BATCHES_A_ROUND * 1e6 / batch.rate_per_s.max(1e-9)),
        ),
    ];
    if let Some(cpu) = server(run, "client's CPU time an operation") {
        figures.push(figure(
            "client's CPU time for 150K rows",
            "30 ms",
            time(cpu * BATCHES_A_ROUND),
        ));
    }
    if let Some(cpu) = server(run, "CPU time an operation") {
        figures.push(figure(
            "server's CPU time a row",
            "-",
            format!("{:.2} µs", cpu / 10_000.0),
        ));
    }
    figures
}
