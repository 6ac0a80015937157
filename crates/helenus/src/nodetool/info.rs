//! `nodetool info`, in the format of Cassandra's, with the rate of requests to the bucket and their cost.

use std::fmt::Write;
use std::process::ExitCode;

use serde_json::Value;

use super::client::NodeClient;
use super::output::{file_size, list, number, text};

pub(super) fn run(node: &NodeClient, all_tokens: bool) -> anyhow::Result<ExitCode> {
    print!("{}", page(&node.report()?, all_tokens));
    Ok(ExitCode::SUCCESS)
}

/// Returns the report of a node as text.
fn page(report: &Value, all_tokens: bool) -> String {
    let mut page = Page::default();
    state(&mut page, report);
    caches(&mut page, report);
    tokens(&mut page, report, all_tokens);
    membership(&mut page, report);
    if let Some(bucket) = report.get("bucket").filter(|bucket| bucket.is_object()) {
        bucket_cost(&mut page, bucket);
    }
    page.0
}

/// Lines of a label and a value.
#[derive(Default)]
struct Page(String);

impl Page {
    fn line(&mut self, label: &str, value: impl std::fmt::Display) {
        let _ = writeln!(self.0, "{label:<23}: {value}");
    }
}

fn state(page: &mut Page, report: &Value) {
    page.line("ID", text(report, "host_id"));
    page.line("Gossip active", text(report, "in_cluster"));
    page.line("Native Transport active", text(report, "serves_clients"));
    page.line("Load", file_size(number(report, "data_bytes")));
    page.line("Generation No", text(report, "generation_s"));
    page.line("Uptime (seconds)", text(report, "uptime_s"));
    let mib = |name| {
        decimals(
            report.get(name).and_then(Value::as_f64).map(|bytes| bytes / MIB),
            2,
        )
    };
    let memory = format!("{} / {}", mib("memory_bytes"), mib("memory_bytes_max"));
    page.line("Heap Memory (MB)", memory);
    // All memory of the process is shown in the line before.
    page.line("Off Heap Memory (MB)", "0.00");
    page.line("Data Center", text(report, "data_center"));
    page.line("Rack", text(report, "rack"));
    page.line("Exceptions", text(report, "server_errors"));
}

const MIB: f64 = (1 << 20) as f64;

fn caches(page: &mut Page, report: &Value) {
    let none = Value::Null;
    page.line("Key Cache", cache(&none));
    page.line("Row Cache", cache(report.get("row_cache").unwrap_or(&none)));
    page.line("Counter Cache", cache(&none));
    let blocks = report.get("block_cache").unwrap_or(&none);
    let (hits, misses) = (number(blocks, "hits"), number(blocks, "misses"));
    let chunks = format!(
        "capacity {}, {misses} misses, {} requests, {} recent hit rate",
        file_size(number(blocks, "capacity_bytes")),
        hits + misses,
        hit_rate(hits, misses)
    );
    page.line("Chunk Cache", chunks);
    // Always 100 %, because partitions have no replicas that could differ.
    page.line("Percent Repaired", "100.0%");
}

/// Returns a cache in Cassandra's format. All figures of a missing cache are 0.
fn cache(cache: &Value) -> String {
    let (hits, misses) = (number(cache, "hits"), number(cache, "misses"));
    format!(
        "entries {}, size {}, capacity {}, {hits} hits, {} requests, {} recent hit rate, 0 save period in seconds",
        number(cache, "entries"),
        file_size(number(cache, "bytes")),
        file_size(number(cache, "capacity_bytes")),
        hits + misses,
        hit_rate(hits, misses)
    )
}

/// Returns the hit rate as text. NaN without requests, as in Cassandra.
fn hit_rate(hits: u64, misses: u64) -> String {
    decimals(Some(hits as f64 / (hits + misses) as f64), 3)
}

fn tokens(page: &mut Page, report: &Value, all: bool) {
    match list(report, "tokens") {
        [] => page.line("Token", "(node is not joined to the cluster)"),
        tokens if all || tokens.len() == 1 => {
            let tokens = tokens.iter().filter_map(Value::as_str);
            tokens.for_each(|token| page.line("Token", token));
        }
        tokens => {
            let count = tokens.len();
            page.line(
                "Token",
                format!("(invoke with -T/--tokens to see all {count} tokens)"),
            );
        }
    }
}

fn membership(page: &mut Page, report: &Value) {
    let state = text(report, "state");
    let bootstrap = match state.as_str() {
        "JOINING" => "IN_PROGRESS",
        _ => "COMPLETED",
    };
    page.line("Bootstrap state", bootstrap);
    page.line("Bootstrap failed", false);
    page.line("Decommissioning", state == "LEAVING");
    page.line("Decommission failed", false);
}

/// Adds the rates and cost of requests. Dashes are shown in the first seconds, when the rates are not known yet.
fn bucket_cost(page: &mut Page, bucket: &Value) {
    let rates = bucket.get("requests_per_second");
    let rate = |kind| rates.and_then(|rates| rates.get(kind)).and_then(Value::as_f64);
    for (label, kind) in [
        ("Bucket GET/s", "get"),
        ("Bucket PUT/s", "put"),
        ("Bucket LIST/s", "list"),
        ("Bucket DELETE/s", "delete"),
    ] {
        page.line(label, decimals(rate(kind), 2));
    }
    let dollars = bucket.get("dollars_per_month").and_then(Value::as_f64);
    page.line("Bucket USD/month", decimals(dollars, 2));
}

fn decimals(value: Option<f64>, places: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.places$}"))
}

#[cfg(test)]
#[path = "info_tests.rs"]
mod tests;
