//! `nodetool pointintime`: shows the length of the history that can be read, and its size. Cassandra has no such command.

use std::process::ExitCode;
use std::time::{Duration, UNIX_EPOCH};

use serde_json::Value;

use super::client::NodeClient;
use super::output::{file_size, number};

pub(super) fn run(node: &NodeClient) -> anyhow::Result<ExitCode> {
    print!("{}", page(&node.request("/node/history")?));
    Ok(ExitCode::SUCCESS)
}

fn page(report: &Value) -> String {
    let Some(window_ms) = report.get("window_ms").and_then(Value::as_u64) else {
        return "History is not kept: see the setting point_in_time_window\n".to_owned();
    };
    let earliest = match report.get("earliest_ms").and_then(Value::as_u64) {
        Some(time_ms) => {
            let time = UNIX_EPOCH + Duration::from_millis(time_ms);
            humantime::format_rfc3339_millis(time).to_string()
        }
        None => "nothing yet".to_owned(),
    };
    let lines = [
        (
            "Window",
            humantime::format_duration(Duration::from_millis(window_ms)).to_string(),
        ),
        ("Can be read from", earliest),
        ("Moments kept", number(report, "bases").to_string()),
        ("Logs kept", file_size(number(report, "log_bytes"))),
        ("SSTables kept", file_size(number(report, "table_bytes"))),
    ];
    lines
        .iter()
        .map(|(name, value)| format!("{name:<16} : {value}\n"))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_page_says_how_far_back_and_what_it_takes() {
        let report = json!({
            "window_ms": 604_800_000u64,
            "earliest_ms": 1_764_000_000_123u64,
            "bases": 3,
            "log_bytes": 2_097_152,
            "table_bytes": 0,
        });
        assert_eq!(
            page(&report),
            "Window           : 7days\n\
             Can be read from : 2025-11-24T16:00:00.123Z\n\
             Moments kept     : 3\n\
             Logs kept        : 2 MiB\n\
             SSTables kept    : 0 bytes\n"
        );
        assert!(page(&json!({ "window_ms": null })).contains("point_in_time_window"));
    }
}
