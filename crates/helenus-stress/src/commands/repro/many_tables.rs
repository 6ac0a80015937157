//! A: throughput falls with the number of tables (The Last Pickle, 2020).

use super::figures::{bytes, count, figure, server, step, time};
use super::{Done, Experiment, Run, Scale, Step};
use crate::results::{PublishedFigure, RunKind};

pub const EXPERIMENT: Experiment = Experiment {
    letter: "A",
    name: "many-tables",
    steps,
    figures,
};

/// Numbers of tables with their keyspaces, and the published number of writes in 30 minutes.
const TABLES: [(u64, &str, Option<f64>); 4] = [
    (10, "t10", Some(68e6)),
    (100, "t100", None),
    (500, "t500", None),
    (1000, "t1000", Some(48e6)),
];
const MINUTES_30_S: f64 = 1800.0;
/// A repetition of ten tables at the end, which shows the drift over the whole run.
const AGAIN: &str = "tables-10-again";

fn steps(scale: &Scale) -> Vec<Step> {
    let (keys, seconds) = (scale.count(10e6, 1000), scale.seconds(MINUTES_30_S));
    let step = |name: String, tables: u64, keyspace| {
        let line = format!("many-tables --workload.tables={tables} -t 8 -c 50 -p {keys} -r 0.2 -d {seconds}");
        Step::new(name, keyspace, RunKind::Run, line)
    };
    let all = TABLES
        .iter()
        .map(|&(tables, keyspace, _)| step(name(tables), tables, keyspace));
    std::iter::once(step("warm-up".into(), 10, "warm"))
        .chain(all)
        .chain([step(AGAIN.into(), 10, "again")])
        .collect()
}

fn name(tables: u64) -> String {
    format!("tables-{tables}")
}

/// Returns the number of writes in half an hour at the run's rate.
fn writes(run: &Run) -> Option<f64> {
    run.result
        .operation("write")
        .map(|of| of.rate_per_s * MINUTES_30_S)
}

fn figures(done: &[Done], step_name: &str, run: &Run) -> Vec<PublishedFigure> {
    if step_name == AGAIN {
        return against_ten(done, run);
    }
    let known = TABLES.iter().find(|(tables, ..)| name(*tables) == step_name);
    known.map_or_else(Vec::new, |(tables, _, published)| {
        of_step(*tables, *published, run)
    })
}

fn of_step(tables: u64, published: Option<f64>, run: &Run) -> Vec<PublishedFigure> {
    let mut figures = Vec::new();
    let mut add = |what: &str, published: &str, measured: Option<String>| {
        figures
            .extend(measured.map(|measured| figure(format!("{what}, {tables} tables"), published, measured)));
    };
    let published = published.map_or("-".to_owned(), count);
    add(
        "writes in 30 min",
        &published,
        writes(run).map(|writes| format!("{} at this rate", count(writes))),
    );
    let hit_rate = run.result.reads.and_then(|reads| reads.hit_rate());
    add(
        "reads that found something",
        "-",
        hit_rate.map(|rate| format!("{:.2}%", rate * 100.0)),
    );
    add(
        "making them",
        "-",
        server(run, &format!("making {tables} tables and indexes")).map(time),
    );
    add(
        "connecting, the schema read",
        "-",
        server(run, "connecting, the schema read").map(time),
    );
    add(
        "preparing their statements",
        "-",
        server(run, "preparing their statements").map(time),
    );
    let lost = if tables >= 500 { "lost" } else { "-" };
    let page = server(run, "page of metrics").zip(server(run, "reading that page"));
    add(
        "metrics",
        lost,
        page.map(|(size, took)| format!("{} in {}", bytes(size), time(took))),
    );
    let grown = server(run, "memory that making them took");
    add(
        "memory a table",
        "1 MB of heap",
        grown.map(|grown| bytes(grown / tables as f64)),
    );
    figures
}

/// Compares each number of tables with ten. Ten tables were measured before and after the others; their mean is used.
fn against_ten(done: &[Done], again: &Run) -> Vec<PublishedFigure> {
    let before = step(done, &name(10)).and_then(writes);
    let Some(ten) = before
        .zip(writes(again))
        .map(|(before, after)| (before + after) / 2.0)
    else {
        return Vec::new();
    };
    let drift = before
        .zip(writes(again))
        .map(|(before, after)| after / before - 1.0);
    let mut figures: Vec<PublishedFigure> = TABLES[1..]
        .iter()
        .filter_map(|(tables, _, published)| {
            let change = step(done, &name(*tables)).and_then(writes)? / ten - 1.0;
            let published = published.map_or("-", |_| "-29%");
            Some(figure(
                format!("writes, {tables} tables against 10"),
                published,
                percent(change),
            ))
        })
        .collect();
    figures.extend(drift.map(|drift| {
        figure(
            "writes, 10 tables at the end against the beginning",
            "-",
            percent(drift),
        )
    }));
    figures
}

fn percent(change: f64) -> String {
    format!("{:+.1}%", change * 100.0)
}
