//! `nodetool getlogginglevels` and `nodetool setlogginglevel`, in the format of Cassandra's.

use std::process::ExitCode;

use serde_json::Value;

use super::client::{NodeClient, TIMEOUT};

const LEVELS: &str = "/node/log_level";

pub(super) fn show(node: &NodeClient) -> anyhow::Result<ExitCode> {
    let levels = node.request(LEVELS)?;
    println!();
    println!("{:<50}{:>10}", "Logger Name", "Log Level");
    for level in levels.as_array().map_or(&[][..], Vec::as_slice) {
        let text = |name: &str| level.get(name).and_then(Value::as_str);
        let name = text("target").unwrap_or("ROOT");
        println!(
            "{name:<50}{:>10}",
            text("level").unwrap_or_default().to_uppercase()
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Sets the level of a target. Without a target, restores the levels that the node started with.
pub(super) fn set(node: &NodeClient, target: Option<&str>, level: Option<&str>) -> anyhow::Result<ExitCode> {
    let words: Vec<&str> = target.into_iter().chain(level).collect();
    node.command(LEVELS, &words.join(" "), "/node/challenge", TIMEOUT)?;
    Ok(ExitCode::SUCCESS)
}
