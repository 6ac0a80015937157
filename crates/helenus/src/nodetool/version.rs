//! `nodetool version`.

use std::process::ExitCode;

use super::client::NodeClient;
use super::output::text;

pub(super) fn run(node: &NodeClient) -> anyhow::Result<ExitCode> {
    println!("ReleaseVersion: {}", text(&node.report()?, "release_version"));
    Ok(ExitCode::SUCCESS)
}
