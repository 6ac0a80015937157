//! Metrics that are computed from [`NodeMetrics`] when they are read, in the text format of Prometheus: latencies by kind of statement,
//! the busiest tables, the logs of captured changes, and the requests to the bucket.

use std::fmt::Write;

use helenus_query::engine::change_logs::ChangeLog;
use helenus_query::metrics::histogram::{Snapshot, UPPER_BOUNDS};
use helenus_query::metrics::{NodeMetrics, StatementKind};
use helenus_query::schema::Schema;
use helenus_tablet::{BUCKET_LATENCY_MS, BucketLatency, BucketStats};

const STATEMENTS: &str = "helenus_statement_duration_seconds";
const TABLE_STATEMENTS: &str = "helenus_table_statement_duration_seconds";
const LOG_BYTES: &str = "helenus_cdc_log_bytes";
const LOG_AGE: &str = "helenus_cdc_log_age_seconds";
const BUCKET_DURATION: &str = "helenus_bucket_request_duration_seconds";
const BUCKET_ERRORS: &str = "helenus_bucket_request_errors_total";

/// Maximum number of tables that have metrics of their own. The tables with the most requests are chosen.
const BUSIEST: usize = 20;
/// Maximum number of logs of captured changes that have metrics. The largest ones are chosen.
const LARGEST_LOGS: usize = 20;
/// Every fourth bound of a histogram is shown, from the first bound above 40 µs. Each shown bound is about twice the one before.
const BOUND_STEP: usize = 4;
const BOUND_FIRST_US: u64 = 40;

/// Adds the metrics of statements.
pub(crate) fn write_statements(text: &mut String, metrics: &NodeMetrics) {
    let help = "Latency of statements as this node's clients see it, by kind";
    head(text, STATEMENTS, "histogram", help);
    for kind in StatementKind::ALL {
        let snapshot = metrics.latencies.of(kind).snapshot();
        let labels = format!("kind=\"{}\"", kind.name());
        let shown = UPPER_BOUNDS.iter().filter(|bound| **bound > BOUND_FIRST_US);
        for bound in shown.step_by(BOUND_STEP) {
            let count = snapshot.count_up_to(*bound);
            let _ = writeln!(
                text,
                "{STATEMENTS}_bucket{{{labels},le=\"{}\"}} {count}",
                seconds(*bound)
            );
        }
        let count = snapshot.count;
        let _ = writeln!(text, "{STATEMENTS}_bucket{{{labels},le=\"+Inf\"}} {count}");
        sum_and_count(text, STATEMENTS, &labels, &snapshot);
    }
}

/// Adds the metrics of the tables with the most requests.
pub(crate) fn write_tables(text: &mut String, metrics: &NodeMetrics, schema: &Schema) {
    let help = "Latency of statements about one of the 20 tables that this node's clients use most, by kind";
    head(text, TABLE_STATEMENTS, "summary", help);
    let mut tables: Vec<_> = schema
        .stored_tables()
        .filter_map(|table| Some((table, metrics.table(table.id)?)))
        .collect();
    tables.sort_by_key(|(_, metrics)| std::cmp::Reverse(metrics.statements()));
    for (table, metrics) in tables.iter().take(BUSIEST) {
        for kind in StatementKind::ALL {
            let snapshot = metrics.coordinator.of(kind).snapshot();
            if snapshot.count == 0 {
                continue;
            }
            // Names of keyspaces and tables contain no characters that need escapes.
            let labels = format!(
                "keyspace=\"{}\",table=\"{}\",kind=\"{}\"",
                table.keyspace,
                table.name,
                kind.name()
            );
            for (name, share) in [("0.5", 0.5), ("0.99", 0.99)] {
                let value = seconds(snapshot.quantile(share));
                let _ = writeln!(text, "{TABLE_STATEMENTS}{{{labels},quantile=\"{name}\"}} {value}");
            }
            sum_and_count(text, TABLE_STATEMENTS, &labels, &snapshot);
        }
    }
}

/// Adds the metrics of the largest logs of captured changes.
pub(crate) fn write_change_logs(text: &mut String, logs: &[ChangeLog]) {
    let mut logs: Vec<&ChangeLog> = logs.iter().collect();
    logs.sort_by_key(|log| std::cmp::Reverse(log.bytes));
    logs.truncate(LARGEST_LOGS);
    if logs.is_empty() {
        return;
    }
    let labels =
        |log: &ChangeLog| format!("keyspace=\"{}\",table=\"{}\"", log.table.keyspace, log.table.name);
    let help = "Bytes in SSTables of one of the 20 largest logs of captured changes, on this node";
    head(text, LOG_BYTES, "gauge", help);
    for log in &logs {
        let _ = writeln!(text, "{LOG_BYTES}{{{}}} {}", labels(log), log.bytes);
    }
    let help = "Age of the oldest change in one of the 20 largest logs of captured changes, on this node";
    head(text, LOG_AGE, "gauge", help);
    for log in &logs {
        if let Some(age) = log.oldest_age {
            let _ = writeln!(text, "{LOG_AGE}{{{}}} {}", labels(log), age.as_secs_f64());
        }
    }
}

/// Adds the metrics of requests to the bucket.
pub(crate) fn write_bucket(text: &mut String, bucket: &BucketStats) {
    let help = "From a request to the bucket to the beginning of its answer, retries included, by kind";
    head(text, BUCKET_DURATION, "histogram", help);
    bucket_latency(text, "get", &bucket.get_latency);
    bucket_latency(text, "put", &bucket.put_latency);
    let help = "Requests to the bucket that failed after all retries, by kind";
    head(text, BUCKET_ERRORS, "counter", help);
    for (kind, errors) in [("get", bucket.get_errors), ("put", bucket.put_errors)] {
        let _ = writeln!(text, "{BUCKET_ERRORS}{{kind=\"{kind}\"}} {errors}");
    }
}

fn bucket_latency(text: &mut String, kind: &str, latency: &BucketLatency) {
    let mut count = 0;
    for (bound_ms, more) in BUCKET_LATENCY_MS.iter().zip(latency.buckets) {
        count += more;
        let bound = *bound_ms as f64 / 1e3;
        let _ = writeln!(
            text,
            "{BUCKET_DURATION}_bucket{{kind=\"{kind}\",le=\"{bound}\"}} {count}"
        );
    }
    let BucketLatency { count, sum_us, .. } = latency;
    let sum = *sum_us as f64 / 1e6;
    let _ = writeln!(
        text,
        "{BUCKET_DURATION}_bucket{{kind=\"{kind}\",le=\"+Inf\"}} {count}"
    );
    let _ = writeln!(text, "{BUCKET_DURATION}_sum{{kind=\"{kind}\"}} {sum}");
    let _ = writeln!(text, "{BUCKET_DURATION}_count{{kind=\"{kind}\"}} {count}");
}

fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn sum_and_count(text: &mut String, name: &str, labels: &str, snapshot: &Snapshot) {
    let sum = snapshot.sum as f64 / 1e9;
    let _ = writeln!(text, "{name}_sum{{{labels}}} {sum}");
    let _ = writeln!(text, "{name}_count{{{labels}}} {}", snapshot.count);
}

/// Converts microseconds to seconds.
fn seconds(us: u64) -> f64 {
    us as f64 / 1e6
}
