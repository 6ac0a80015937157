//! `nodetool version`.

use std::process::ExitCode;

use super::client::NodeClient;
use super::output::text;

/// `verbose` adds the version of Helenus, where Cassandra has that of its sources.
pub(super) fn run(node: &NodeClient, verbose: bool) -> anyhow::Result<ExitCode> {
    let report = node.report()?;
    println!("ReleaseVersion: {}", text(&report, "release_version"));
    if verbose {
        println!("HelenusVersion: {}", text(&report, "software_version"));
    }
    Ok(ExitCode::SUCCESS)
}
