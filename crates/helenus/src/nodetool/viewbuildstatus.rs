//! `nodetool viewbuildstatus`, in the format of Cassandra's. Exits with 1 while a view is being built.

use std::process::ExitCode;

use anyhow::bail;
use serde_json::Value;

use super::client::NodeClient;
use super::output::{columns, text};

/// Prints the build status of a view. The view is given as two words, or as one with a dot.
pub(super) fn run(node: &NodeClient, keyspace: &str, view: Option<&str>) -> anyhow::Result<ExitCode> {
    let Some((keyspace, view)) = view
        .map(|view| (keyspace, view))
        .or_else(|| keyspace.split_once('.'))
    else {
        bail!("viewbuildstatus requires keyspace and view name arguments");
    };
    let rows = node.rows("view_build_status")?;
    let is_requested =
        |row: &&Value| text(row, "keyspace_name") == keyspace && text(row, "view_name") == view;
    let rows: Vec<&Value> = rows.iter().filter(is_requested).collect();
    if rows.is_empty() {
        bail!("there is no view {keyspace}.{view}");
    }
    if rows.iter().all(|row| text(row, "status") == "SUCCESS") {
        println!("{keyspace}.{view} has finished building");
        return Ok(ExitCode::SUCCESS);
    }
    println!("{keyspace}.{view} has not finished building; node status is below.\n");
    let mut table = vec![["Host", "Info"].map(str::to_owned)];
    table.extend(rows.iter().map(|row| [text(row, "host_id"), text(row, "status")]));
    print!("{}", columns(&table));
    Ok(ExitCode::FAILURE)
}
