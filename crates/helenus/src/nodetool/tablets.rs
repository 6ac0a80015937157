//! `nodetool tablets`.

use std::process::ExitCode;

use serde_json::Value;

use super::client::NodeClient;
use super::output::{list, owner, table, text};

pub(super) fn run(node: &NodeClient) -> anyhow::Result<ExitCode> {
    let cluster = node.cluster()?;
    let row = |tablet: &Value| {
        [
            text(tablet, "id"),
            text(tablet, "first_token"),
            text(tablet, "last_token"),
            owner(&cluster, tablet),
            text(tablet, "epoch"),
            text(tablet, "state"),
        ]
    };
    table(
        ["Tablet", "From token", "To token", "Owner", "Epoch", "State"],
        list(&cluster, "tablets").iter().map(row),
    );
    Ok(ExitCode::SUCCESS)
}
