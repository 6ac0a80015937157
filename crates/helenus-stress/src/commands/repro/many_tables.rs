//! A: the more tables, the slower (The Last Pickle, 2020).

use super::figures::{bytes, count, figure, server, step, time};
use super::{Done, Experiment, Run, Scale, Step};
use crate::results::{PublishedFigure, RunKind};

pub const EXPERIMENT: Experiment = Experiment {
    letter: "A",
    name: "many-tables",
    steps,
    figures,
};

/// Each number of tables with its keyspace, and the writes in 30 minutes that were published.
const TABLES: [(u64, &str, Option<f64>); 4] = [
    (10, "t10", Some(68e6)),
    (100, "t100", None),
    (500, "t500", None),
    (1000, "t1000", Some(48e6)),
];
const MINUTES_30_S: f64 = 1800.0;

fn steps(scale: &Scale) -> Vec<Step> {
    let (keys, seconds) = (scale.count(10e6, 1000), scale.seconds(MINUTES_30_S));
    let step = |tables: u64, keyspace| Step {
        name: name(tables),
        keyspace,
        kind: RunKind::Run,
        line: format!("many-tables --workload.tables={tables} -t 8 -c 50 -p {keys} -r 0.2 -d {seconds}"),
    };
    TABLES
        .iter()
        .map(|&(tables, keyspace, _)| step(tables, keyspace))
        .collect()
}

fn name(tables: u64) -> String {
    format!("tables-{tables}")
}

fn figures(done: &[Done], step_name: &str, run: &Run) -> Vec<PublishedFigure> {
    let Some((tables, _, published)) = TABLES.iter().find(|(tables, ..)| name(*tables) == step_name) else {
        return Vec::new();
    };
    let mut figures = Vec::new();
    let mut add = |what: &str, published: &str, measured: Option<String>| {
        figures
            .extend(measured.map(|measured| figure(format!("{what}, {tables} tables"), published, measured)));
    };
    let published = published.map_or("-".to_owned(), count);
    let writes = |run: &Run| {
        run.result
            .operation("write")
            .map(|of| of.rate_per_s * MINUTES_30_S)
    };
    add(
        "writes in 30 min",
        &published,
        writes(run).map(|writes| format!("{} at this rate", count(writes))),
    );
    if let Some((few, many)) = step(done, &name(10)).and_then(writes).zip(writes(run)) {
        let published = if *tables == 1000 { "-29%" } else { "-" };
        add(
            "writes against 10 tables",
            published,
            Some(format!("{:+.1}%", (many / few - 1.0) * 100.0)),
        );
    }
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
    let lost = if *tables >= 500 { "lost" } else { "-" };
    let page = server(run, "page of metrics").zip(server(run, "reading that page"));
    add(
        "metrics",
        lost,
        page.map(|(size, took)| format!("{} in {}", bytes(size), time(took))),
    );
    let at_rest = |run: &Run| server(run, "memory at the start");
    add("memory before the load", "-", at_rest(run).map(bytes));
    if let Some((few, many)) = step(done, &name(10)).and_then(at_rest).zip(at_rest(run)) {
        let each = (many - few) / (*tables - 10) as f64;
        add(
            "memory a table, against 10",
            "1 MB of heap",
            Some(bytes(each.max(0.0))),
        );
    }
    figures
}
