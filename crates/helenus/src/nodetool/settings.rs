//! The commands that show and change one setting of a running node: timeouts and the throughput of compactions.

use std::process::ExitCode;

use anyhow::{Context, bail};
use serde_json::Value;

use super::client::{NodeClient, TIMEOUT};
use super::output::text;

const SETTINGS: &str = "/node/settings";

/// A setting that one of Cassandra's commands shows or changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Setting {
    CompactionThroughput,
    Timeout(&'static str),
}

impl Setting {
    fn name(self) -> &'static str {
        match self {
            Setting::CompactionThroughput => "compaction_throughput",
            Setting::Timeout(name) => name,
        }
    }
}

/// Cassandra's names of timeouts, with the settings here. `None` if there is no such timeout. A truncation has the timeout of other
/// requests.
const TIMEOUTS: [(&str, Option<&str>); 10] = [
    ("read", Some("read_request_timeout")),
    ("range", Some("range_request_timeout")),
    ("write", Some("write_request_timeout")),
    ("counterwrite", Some("counter_write_request_timeout")),
    ("cascontention", Some("cas_contention_timeout")),
    ("truncate", Some("request_timeout")),
    ("internodeconnect", None),
    ("internodeuser", None),
    ("internodestreaminguser", None),
    ("misc", Some("request_timeout")),
];

/// Returns the value of a setting as text, such as `10s` or `64MiB/s`.
pub(super) fn read(node: &NodeClient, setting: Setting) -> anyhow::Result<String> {
    let settings = node.request(SETTINGS)?;
    let settings = settings.as_array().map_or(&[][..], Vec::as_slice);
    let found = settings.iter().find(|one| text(one, "name") == setting.name());
    let value = found.and_then(|one| one.get("value")).and_then(Value::as_str);
    let value = value.with_context(|| format!("the node does not report the setting {}", setting.name()))?;
    Ok(value.to_owned())
}

fn write(node: &NodeClient, setting: Setting, value: &str) -> anyhow::Result<()> {
    let body = format!("{} {value}", setting.name());
    node.command(SETTINGS, &body, "/node/challenge", TIMEOUT)?;
    Ok(())
}

/// Returns the setting of a timeout. `None` if Helenus has no such timeout.
fn timeout(kind: &str) -> anyhow::Result<Option<Setting>> {
    match TIMEOUTS.into_iter().find(|(known, _)| *known == kind) {
        Some((_, setting)) => Ok(setting.map(Setting::Timeout)),
        None => bail!(
            "Timeout type requires one of (read, range, write, counterwrite, cascontention, truncate, internodeconnect, internodeuser, internodestreaminguser, misc (general rpc_timeout_in_ms))"
        ),
    }
}

fn without_setting(command: &str, kind: &str) -> ExitCode {
    println!(
        "nodetool {command} {kind}: nothing to do: connections between nodes have no timeout of their own."
    );
    ExitCode::SUCCESS
}

pub(super) fn show_timeout(node: &NodeClient, kind: &str) -> anyhow::Result<ExitCode> {
    let Some(setting) = timeout(kind)? else {
        return Ok(without_setting("gettimeout", kind));
    };
    println!(
        "Current timeout for type {kind}: {} ms",
        millis(&read(node, setting)?)?
    );
    Ok(ExitCode::SUCCESS)
}

pub(super) fn set_timeout(node: &NodeClient, kind: &str, millis: u64) -> anyhow::Result<ExitCode> {
    let Some(setting) = timeout(kind)? else {
        return Ok(without_setting("settimeout", kind));
    };
    write(node, setting, &format!("{millis}ms"))?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the throughput of compactions. `precise` shows fractions (`-d`).
pub(super) fn show_throughput(node: &NodeClient, precise: bool) -> anyhow::Result<ExitCode> {
    let value = mib(&read(node, Setting::CompactionThroughput)?);
    let number: f64 = value.parse().unwrap_or_default();
    match precise {
        true => println!("Current compaction throughput: {number:.1} MiB/s"),
        false => println!("Current compaction throughput: {} MB/s", number.round()),
    }
    Ok(ExitCode::SUCCESS)
}

/// Sets the throughput of compactions in MiB/s. 0 is no limit.
pub(super) fn set_throughput(node: &NodeClient, mib: u32) -> anyhow::Result<ExitCode> {
    let value = match mib {
        0 => "off".to_owned(),
        mib => format!("{mib}MiB/s"),
    };
    write(node, Setting::CompactionThroughput, &value)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns a time such as `10s` in milliseconds.
fn millis(time: &str) -> anyhow::Result<u64> {
    let (number, unit) = measure(time);
    let factor = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        _ => bail!("the node reported a timeout of {time:?}, where ms, s or m was expected"),
    };
    Ok(number.parse::<u64>()? * factor)
}

/// Returns a rate such as `64MiB/s` in MiB per second, with a decimal. 0 if there is no limit.
pub(super) fn mib(rate: &str) -> String {
    let (number, unit) = measure(rate);
    let factor = match unit.trim_end_matches("/s") {
        "GiB" => 1024.0,
        "MiB" => 1.0,
        "KiB" => 1.0 / 1024.0,
        _ => 1.0 / f64::from(1 << 20),
    };
    match number.parse::<f64>() {
        Ok(number) => format!("{:.1}", number * factor),
        Err(_) => "0".to_owned(),
    }
}

fn measure(text: &str) -> (&str, &str) {
    let end = text.find(|character: char| !character.is_ascii_digit() && character != '.');
    text.split_at(end.unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_rates_parse_as_reported_by_node() {
        assert_eq!(millis("5s").unwrap(), 5000);
        assert_eq!(millis("1800ms").unwrap(), 1800);
        assert_eq!(millis("2m").unwrap(), 120_000);
        assert!(millis("off").is_err());
        assert_eq!(
            [mib("64MiB/s"), mib("1GiB/s"), mib("512KiB/s"), mib("off")],
            ["64.0", "1024.0", "0.5", "0"]
        );
    }

    #[test]
    fn unknown_timeout_kind_is_refused_as_by_cassandra() {
        let refused = timeout("nonsense").unwrap_err().to_string();
        assert!(
            refused.starts_with("Timeout type requires one of (read, range,"),
            "{refused}"
        );
        assert_eq!(timeout("internodeuser").unwrap(), None);
    }
}
