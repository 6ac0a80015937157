//! `nodetool netstats`, in the format of Cassandra's. Nodes have no streams and no repairs, and their messages are not counted.

use std::process::ExitCode;

use super::client::NodeClient;
use super::output::text;

pub(super) fn run(node: &NodeClient) -> anyhow::Result<ExitCode> {
    println!("Mode: {}", text(&node.report()?, "state"));
    println!("Not sending any streams.");
    println!("Read Repair Statistics:\nAttempted: 0\nMismatch (Blocking): 0\nMismatch (Background): 0");
    let line = |[name, active, pending, completed, dropped]: [&str; 5]| {
        println!("{name:<25}{active:>10}{pending:>10}{completed:>15}{dropped:>10}");
    };
    line(["Pool Name", "Active", "Pending", "Completed", "Dropped"]);
    for name in ["Large messages", "Small messages", "Gossip messages"] {
        line([name, "n/a", "n/a", "n/a", "n/a"]);
    }
    Ok(ExitCode::SUCCESS)
}
