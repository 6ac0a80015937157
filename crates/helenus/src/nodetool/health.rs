//! `nodetool health`.

use std::process::ExitCode;

use anyhow::Context;
use serde_json::Value;

use super::client::{NodeClient, TIMEOUT, agent_for_any_status};
use super::output::{list, text};

pub(super) fn run(node: &NodeClient) -> anyhow::Result<ExitCode> {
    let url = node.url("/health/ready");
    let answer = agent_for_any_status(TIMEOUT).get(&url).call();
    let mut answer = answer.with_context(|| format!("no answer from {url}"))?;
    let health = node.parse("/health/ready", &answer.body_mut().read_to_string()?)?;
    println!("{}", text(&health, "status"));
    for trouble in list(&health, "troubles").iter().filter_map(Value::as_str) {
        println!("{trouble}");
    }
    Ok(match answer.status().is_success() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}
