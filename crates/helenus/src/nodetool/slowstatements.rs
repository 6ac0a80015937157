//! `nodetool slowstatements`: shows the last slow requests of a node, with the time of each stage. Cassandra has no such command.

use std::cmp::Reverse;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use super::client::{NodeClient, TIMEOUT};
use super::output::{Format, columns_apart, text};

const SLOW_STATEMENTS: &str = "/node/slow_statements";

const HEADS: [&str; 8] = [
    "Time",
    "Milliseconds",
    "Stages",
    "Table",
    "Rows",
    "Tombstones",
    "Client",
    "Statement",
];

#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub(super) struct SlowStatementsArgs {
    /// Number of requests to list
    #[arg(short = 'k', value_name = "COUNT", default_value_t = 20)]
    count: usize,
    /// List the requests that took longest, not the last ones
    #[arg(long)]
    longest: bool,
    /// Write a document with all fields of each request
    #[arg(short = 'F', long, value_name = "FORMAT")]
    format: Option<Format>,
}

pub(super) fn run(node: &NodeClient, args: &SlowStatementsArgs) -> anyhow::Result<ExitCode> {
    let answer = node.command(SLOW_STATEMENTS, "", "/node/challenge", TIMEOUT)?;
    let kept = node.parse(SLOW_STATEMENTS, &answer)?;
    let mut kept = kept.as_array().cloned().unwrap_or_default();
    if args.longest {
        kept.sort_by_key(|one| Reverse(tenths(one)));
    }
    kept.truncate(args.count);
    match args.format {
        None => print!("{}", page(&kept)),
        Some(format) => print!("{}", format.text(&json!({ "SlowStatements": kept }))),
    }
    Ok(ExitCode::SUCCESS)
}

fn tenths(request: &Value) -> u64 {
    let total_ms = request
        .get("total_ms")
        .and_then(Value::as_f64)
        .unwrap_or_default();
    (total_ms * 10.0) as u64
}

fn page(kept: &[Value]) -> String {
    if kept.is_empty() {
        return "There are no slow statements\n".to_owned();
    }
    let mut rows = vec![HEADS.map(str::to_owned)];
    rows.extend(kept.iter().map(row));
    columns_apart(&rows)
}

fn row(request: &Value) -> [String; HEADS.len()] {
    let table = match text(request, "table").as_str() {
        "" => "-".to_owned(),
        table => format!("{}.{table}", text(request, "keyspace")),
    };
    [
        text(request, "at"),
        text(request, "total_ms"),
        stages(request),
        table,
        text(request, "live_rows"),
        text(request, "tombstones"),
        text(request, "client"),
        // Line breaks are replaced, so that each request is one line.
        text(request, "statement")
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" "),
    ]
}

/// Returns the stages with their milliseconds, the longest first: `log 12.3, run 0.4`.
fn stages(request: &Value) -> String {
    let stages = request.get("stages_ms").and_then(Value::as_object);
    let stages = stages.into_iter().flatten();
    let mut stages: Vec<(&String, f64)> = stages
        .map(|(name, took)| (name, took.as_f64().unwrap_or_default()))
        .collect();
    stages.sort_by(|left, right| right.1.total_cmp(&left.1));
    let shown = stages.iter().map(|(name, took)| format!("{name} {took:.1}"));
    shown.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_statement_is_a_line_with_its_longest_stage_first() {
        let request = json!({
            "at": "2026-01-31 12:00:00.000Z", "total_ms": 17.5, "stages_ms": {"log": 12.3, "read": 0.1, "run": 5.1}, "client": "10.0.0.1:4000",
            "keyspace": "shop", "table": "carts", "owner": null, "statement": "SELECT *\n  FROM carts", "live_rows": 3, "tombstones": 40,
        });
        let page = page(&[request]);
        let lines: Vec<&str> = page.lines().map(str::trim_end).collect();
        assert_eq!(
            lines[0].split_whitespace().collect::<Vec<_>>(),
            HEADS.join(" ").split(' ').collect::<Vec<_>>()
        );
        assert!(
            lines[1].contains("log 12.3, run 5.1, read 0.1  shop.carts  3 "),
            "{page}"
        );
        assert!(lines[1].ends_with("SELECT * FROM carts"), "{page}");
    }

    #[test]
    fn a_node_without_slow_statements_says_so() {
        assert_eq!(page(&[]), "There are no slow statements\n");
    }
}
