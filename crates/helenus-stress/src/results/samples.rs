//! Synthetic results for tests.

use super::run::*;
use super::{LatencySummary, new_latency_histogram};

/// Returns a run of reads and writes with every part filled in. `factor` multiplies its latencies and divides its rates.
pub fn run(label: &str, factor: f64) -> RunResult {
    RunResult {
        format: FORMAT,
        tool_version: "0.1.0".into(),
        workload: "kv".into(),
        label: label.into(),
        kind: RunKind::Run,
        command_line: ["helenus-stress", "run", "kv", "--host", "127.0.0.1"]
            .map(str::to_owned)
            .into(),
        config: serde_json::Map::from_iter([
            ("threads".to_owned(), 8.into()),
            ("read_ratio".into(), 0.2.into()),
        ]),
        endpoint: Endpoint {
            addresses: vec!["127.0.0.1:9042".into()],
            release_version: "5.0.5".into(),
            cluster_name: "Test Cluster".into(),
            driver: "scylla 1.3.0".into(),
        },
        load: LoadModel::Open { rate_per_s: 1000.5 },
        started_at: "2025-06-01T12:30:00.250Z".parse().expect("a valid time"),
        duration_s: 60.0,
        operations: vec![
            operation("read", 12_000, factor),
            operation("write", 48_000, factor),
        ],
        reads: Some(ReadOutcome {
            hits: 11_000,
            misses: 990,
            missing: 7,
            corrupt: 3,
        }),
        pacing: Some(Pacing {
            target_per_s: 1000.5,
            achieved_per_s: 999.9,
            lag_max_ms: 12.5,
            lag_end_ms: 0.25,
        }),
        phases: vec![Phase {
            name: "warm".into(),
            start_s: 0.0,
            duration_s: 10.0,
            count: 10_000,
        }],
        notes: vec!["the disk was busy".into()],
        published: vec![PublishedFigure {
            name: "writes in 30 minutes".into(),
            published: "68M".into(),
            measured: "48k".into(),
            note: None,
        }],
        server: vec![ServerFigure {
            name: "CPU time an operation".into(),
            value: 11.5 * factor,
            unit: "µs".into(),
        }],
    }
}

fn operation(name: &str, count: u64, factor: f64) -> OperationResult {
    let mut histogram = new_latency_histogram();
    for i in 1..=count {
        histogram.saturating_record(((100 + i / 10) as f64 * factor) as u64);
    }
    let errors = vec![
        ErrorCount {
            code: Some(0x1001),
            name: "OVERLOADED".into(),
            count: 5,
            example: Some("busy".into()),
        },
        ErrorCount {
            code: None,
            name: "client timeout".into(),
            count: 2,
            example: None,
        },
    ];
    OperationResult {
        name: name.into(),
        count,
        rows: count,
        rate_per_s: count as f64 / 60.0 / factor,
        response: LatencySummary::from(&histogram),
        service: LatencySummary::from(&histogram),
        errors: if name == "write" { errors } else { Vec::new() },
    }
}
