//! B: far more data than memory (YugabyteDB).

use super::figures::{bytes, figure, gauge, growth, rate_and_mean, server};
use super::{Done, Experiment, Run, Scale, Step};
use crate::results::{PublishedFigure, RunKind};

pub const EXPERIMENT: Experiment = Experiment {
    letter: "B",
    name: "dense-kv",
    steps,
    figures,
};

/// Seconds of each phase. The report gives no duration.
const PHASE_S: f64 = 6000.0;

fn steps(scale: &Scale) -> Vec<Step> {
    let (keys, seconds) = (scale.count(20e9, 1000), scale.seconds(PHASE_S));
    let step = |name: &str, kind, line: String| Step::new(name, "dense", kind, line);
    vec![
        step(
            "load",
            RunKind::Populate,
            format!("dense-kv -p {keys} -t 8 -c 8 --cl quorum"),
        ),
        step(
            "read-heavy",
            RunKind::Run,
            format!("dense-kv -p {keys} --workload.readers=32 --workload.writers=2 -d {seconds} --cl quorum"),
        ),
        step(
            "write-only",
            RunKind::Run,
            format!("dense-kv -p {keys} --workload.readers=0 --workload.writers=64 -d {seconds} --cl quorum"),
        ),
    ]
}

fn figures(_: &[Done], step: &str, run: &Run) -> Vec<PublishedFigure> {
    let of = |name: &str| run.result.operation(name).map(rate_and_mean);
    let mut figures = Vec::new();
    let mut add = |name: &str, published: &str, measured: Option<String>| {
        figures.extend(measured.map(|measured| figure(name, published, measured)));
    };
    match step {
        "load" => {
            let load = run.result.operation("populate");
            add(
                "load",
                "38.6K/s",
                load.map(|load| format!("{:.0}/s", load.rate_per_s)),
            );
            add(
                "data on disk",
                "18 TB on 4 nodes",
                gauge(run, "helenus_store_data_bytes").map(bytes),
            );
        }
        "read-heavy" => {
            add("reads, 32 readers and 2 writers", "19K/s at 1.3 ms", of("read"));
            add("writes beside them", "-", of("write"));
            add(
                "CPU",
                "under 7% of 64 cores",
                server(run, "CPU").map(|cores| format!("{cores:.2} cores")),
            );
            let blocks = growth(run, "helenus_block_cache_misses_total");
            let reads = run.result.operation("read").map(|read| read.count as f64);
            let a_read = blocks
                .zip(reads)
                .map(|(blocks, reads)| format!("{:.2}", blocks / reads.max(1.0)));
            add("blocks read from disk a read", "1", a_read);
            add(
                "memory at most",
                "data 150 × cache",
                server(run, "memory at most").map(bytes),
            );
        }
        _ => add("writes, 64 writers", "20-25K/s at 3-4 ms", of("write")),
    }
    figures
}
