//! `nodetool compactionstats`, `compactionhistory`, `compact` and the limits of compactions, in the format of Cassandra's.

use std::process::ExitCode;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::client::NodeClient;
use super::output::{Format, columns, file_size, number, text};
use super::settings::{self, Setting};

/// Maximum time that a command waits for compactions.
const COMPACT_TIMEOUT: Duration = Duration::from_secs(24 * 3600);

/// Compacts all tables, because tables share tablets.
pub(super) fn compact(node: &NodeClient) -> anyhow::Result<ExitCode> {
    node.command("/node/compact", "", "/node/challenge", COMPACT_TIMEOUT)?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn stats(node: &NodeClient, human: bool) -> anyhow::Result<ExitCode> {
    let report = node.report()?;
    let throughput = settings::read(node, Setting::CompactionThroughput)?;
    print!(
        "{}",
        stats_page(&report, &node.rows("sstable_tasks")?, &throughput, human)
    );
    Ok(ExitCode::SUCCESS)
}

fn stats_page(report: &Value, tasks: &[Value], throughput: &str, human: bool) -> String {
    let none = Value::Null;
    let figures = report.get("compactions").unwrap_or(&none);
    let ended = number(figures, "ended");
    let size = |bytes: u64| {
        if human {
            file_size(bytes)
        } else {
            bytes.to_string()
        }
    };
    let hours = number(report, "uptime_s").max(1) as f64 / 3600.0;
    let rows = [
        ("pending tasks", number(figures, "pending").to_string()),
        ("compactions completed", ended.to_string()),
        ("data compacted", size(number(figures, "bytes"))),
        ("compactions reduced", "0".to_owned()),
        ("sstables dropped from compaction", "0".to_owned()),
        ("mean rate", format!("{:.2}/hour", ended as f64 / hours)),
        ("compaction throughput (MiB/s)", settings::mib(throughput)),
    ];
    let mut page = columns(&rows.map(|(name, value)| [name.to_owned(), value]));
    if !tasks.is_empty() {
        page += &tasks_table(tasks, &size);
    }
    page
}

fn tasks_table(tasks: &[Value], size: &dyn Fn(u64) -> String) -> String {
    let heads = [
        "id",
        "compaction type",
        "keyspace",
        "table",
        "completed",
        "total",
        "unit",
        "progress",
    ];
    let mut rows = vec![heads.map(str::to_owned)];
    rows.extend(tasks.iter().map(|task| {
        let ratio = task
            .get("completion_ratio")
            .and_then(Value::as_f64)
            .unwrap_or_default();
        [
            text(task, "task_id"),
            text(task, "kind"),
            text(task, "keyspace_name"),
            text(task, "table_name"),
            size(number(task, "progress")),
            size(number(task, "total")),
            text(task, "unit"),
            format!("{:.2}%", ratio * 100.0),
        ]
    }));
    columns(&rows)
}

const HISTORY: [&str; 8] = [
    "id",
    "keyspace_name",
    "columnfamily_name",
    "compacted_at",
    "bytes_in",
    "bytes_out",
    "rows_merged",
    "compaction_properties",
];

pub(super) fn history(node: &NodeClient, format: Option<Format>, human: bool) -> anyhow::Result<ExitCode> {
    let mut rows = node.rows("compaction_history")?;
    rows.sort_by_key(|row| std::cmp::Reverse(text(row, "compacted_at")));
    match format {
        None => print!("{}", history_page(&rows, human)),
        Some(format) => {
            let rows: Vec<Value> = rows.iter().map(history_document).collect();
            print!("{}", format.text(&json!({ "CompactionHistory": rows })));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn history_page(rows: &[Value], human: bool) -> String {
    if rows.is_empty() {
        return "There is no compaction history\n".to_owned();
    }
    let cell = |row: &Value, name: &str| match name {
        "bytes_in" | "bytes_out" if human => file_size(number(row, name)),
        _ => field(row, name),
    };
    let mut table = vec![HISTORY.map(str::to_owned)];
    table.extend(rows.iter().map(|row| HISTORY.map(|name| cell(row, name))));
    format!("Compaction History: \n{}", columns(&table))
}

fn history_document(row: &Value) -> Value {
    let fields = HISTORY.map(|name| {
        let value = match name {
            "bytes_in" | "bytes_out" => number(row, name).into(),
            _ => field(row, name).into(),
        };
        (name.to_owned(), value)
    });
    Value::Object(Map::from_iter(fields))
}

/// Returns a field as text: a time as `2026-01-31T12:00:00.000`, and a map in Java's format.
fn field(row: &Value, name: &str) -> String {
    match row.get(name) {
        Some(Value::Object(map)) => {
            let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let entries: Vec<String> = map
                .iter()
                .map(|(key, value)| format!("{key}:{}", plain(value)))
                .collect();
            format!("{{{}}}", entries.join(", "))
        }
        Some(Value::Null) if name == "rows_merged" => "{}".to_owned(),
        Some(Value::String(time)) if name == "compacted_at" => time.trim_end_matches('Z').replace(' ', "T"),
        _ => text(row, name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_history_has_times_and_maps_as_cassandra_writes_them() {
        let row = json!({
            "id": "i", "keyspace_name": "k", "columnfamily_name": "t", "compacted_at": "2026-11-26 13:53:06.580Z", "bytes_in": 2048,
            "bytes_out": 1024, "rows_merged": {"1": 5, "4": 1}, "compaction_properties": {"compaction_type": "Compaction"},
        });
        let rows = [row];
        assert_eq!(
            history_page(&rows, true).lines().last().unwrap().trim_end(),
            "i  k             t                 2026-11-26T13:53:06.580 2 KiB    1 KiB     {1:5, 4:1}  {compaction_type:Compaction}"
        );
        assert_eq!(history_document(&rows[0])["rows_merged"], "{1:5, 4:1}");
        assert_eq!(history_page(&[], false), "There is no compaction history\n");
    }

    #[test]
    fn compactions_under_way_have_a_table_of_their_own() {
        let report = json!({"uptime_s": 7200, "compactions": {"pending": 1, "ended": 4, "bytes": 3 << 20}});
        let none = stats_page(&report, &[], "64MiB/s", true);
        assert!(none.contains("data compacted                   3 MiB"), "{none}");
        assert!(
            none.contains("mean rate                        2.00/hour"),
            "{none}"
        );
        assert!(none.trim_end().ends_with("64.0"), "{none}");
        let task = json!({"task_id": "x", "kind": "compaction", "keyspace_name": "k", "table_name": "t", "progress": 1, "total": 4, "unit": "bytes", "completion_ratio": 0.25});
        let some = stats_page(&report, &[task], "off", false);
        assert!(
            some.lines().last().unwrap().trim_end().ends_with("bytes 25.00%"),
            "{some}"
        );
        assert!(some.contains("(MiB/s)    0 "), "{some}");
    }
}
