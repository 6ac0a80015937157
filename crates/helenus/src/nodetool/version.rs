//! `nodetool version`.

use std::process::ExitCode;

use super::client::NodeClient;
use super::output::text;

/// Prints the version. `verbose` adds the version of Helenus, in the place of Cassandra's source revision.
pub(super) fn run(node: &NodeClient, verbose: bool) -> anyhow::Result<ExitCode> {
    let report = node.report()?;
    println!("ReleaseVersion: {}", text(&report, "release_version"));
    if verbose {
        println!("HelenusVersion: {}", text(&report, "software_version"));
    }
    Ok(ExitCode::SUCCESS)
}
