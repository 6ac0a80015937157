//! E: rows that are inserted and soon deleted (Target).

use super::figures::{bytes, figure, gauge, growth, operation, rate_and_mean, server, step, time};
use super::{Done, Experiment, Run, Scale, Step};
use crate::results::{PublishedFigure, RunKind};

pub const EXPERIMENT: Experiment = Experiment {
    letter: "E",
    name: "tombstones",
    steps,
    figures,
};

/// Number of products in 200 GB: 13 rows of about 190 B per product.
const PRODUCTS: f64 = 200e9 / (13.0 * 190.0);
/// Seconds of each phase. The report gives no duration.
const PHASE_S: f64 = 6000.0;
/// Bytes of a live row: key, location, quantity and 150 letters, without a store's overhead.
const ROW_BYTES: f64 = 11.0 + 4.0 + 4.0 + 150.0;

fn steps(scale: &Scale) -> Vec<Step> {
    let (products, seconds) = (scale.count(PRODUCTS, 1000), scale.seconds(PHASE_S));
    let step = |name: &str, keyspace, kind, rest: &str| {
        Step::new(name, keyspace, kind, format!("tombstones -p {products} {rest}"))
    };
    let for_seconds = |rest: &str| format!("-t 8 -c 8 {rest} -d {seconds}");
    vec![
        step("never-deleted-load", "kept", RunKind::Populate, "-t 8 -c 8"),
        step("never-deleted", "kept", RunKind::Run, &for_seconds("-r 1")),
        step("load", "deleted", RunKind::Populate, "-t 8 -c 8"),
        step("deleting", "deleted", RunKind::Run, &for_seconds("-r 0.2")),
        step("after-deleting", "deleted", RunKind::Run, &for_seconds("-r 1")),
        // One thread reads each product once, so the number of rows read is the number of live rows.
        step(
            "live-rows",
            "deleted",
            RunKind::Run,
            &format!("-t 1 -c 64 -r 1 --pg sequence -n {products}"),
        ),
    ]
}

fn figures(done: &[Done], step_name: &str, run: &Run) -> Vec<PublishedFigure> {
    match step_name {
        "deleting" => deleting(run),
        "after-deleting" => after_deleting(done, run),
        "live-rows" => live_rows(run),
        _ => Vec::new(),
    }
}

fn deleting(run: &Run) -> Vec<PublishedFigure> {
    let mut figures = Vec::new();
    if let Some(read) = operation(run, "read") {
        figures.push(figure(
            "reads while deleting",
            "15 ms, then 4 ms",
            rate_and_mean(read),
        ));
        figures.push(figure(
            "slowest read",
            "10 s (GC pauses)",
            time(read.response.max_us as f64),
        ));
        let blocks = growth(run, "helenus_block_cache_misses_total");
        figures.extend(blocks.map(|blocks| {
            figure(
                "blocks read from disk a read",
                "-",
                format!("{:.2}", blocks / read.count.max(1) as f64),
            )
        }));
    }
    let most = server(run, "memory at most");
    figures.extend(most.map(|most| figure("memory at most", "OOM in compaction", bytes(most))));
    figures
}

fn after_deleting(done: &[Done], run: &Run) -> Vec<PublishedFigure> {
    let kept = step(done, "never-deleted").and_then(|kept| operation(kept, "read"));
    let Some((kept, read)) = kept.zip(operation(run, "read")) else {
        return Vec::new();
    };
    let ratio = read.service.mean_us / kept.service.mean_us.max(1.0);
    vec![
        figure("reads where nothing was deleted", "-", rate_and_mean(kept)),
        figure("reads after deleting", "4 ms", rate_and_mean(read)),
        figure(
            "their mean against where nothing was deleted",
            "-",
            format!("{ratio:.2}"),
        ),
    ]
}

fn live_rows(run: &Run) -> Vec<PublishedFigure> {
    let Some(rows) = operation(run, "read").map(|read| read.rows as f64) else {
        return Vec::new();
    };
    let live = rows * ROW_BYTES;
    let mut figures = vec![figure("live rows", "-", format!("{rows:.0}, {}", bytes(live)))];
    if let Some(disk) = gauge(run, "helenus_store_data_bytes") {
        let over = format!(
            "{} over {}: {:.2}",
            bytes(disk),
            bytes(live),
            disk / live.max(1.0)
        );
        figures.push(figure("on disk over live", "2.1 (200 GB, then 95 GB)", over));
    }
    figures
}
