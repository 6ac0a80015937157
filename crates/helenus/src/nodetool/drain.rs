//! `nodetool drain` and `nodetool decommission`.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, anyhow};
use helenus_server::node::admin_auth::authorization;
use helenus_server::rpc::secret::Secret;

use super::client::{NodeClient, agent};

/// How long a node may take to hand its tablets over.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(120);

const DRAIN: &str = "/cluster/drain";

pub(super) fn run(node: &NodeClient) -> anyhow::Result<ExitCode> {
    let mut command = agent(DRAIN_TIMEOUT).post(node.url(DRAIN));
    if let Some(secret) = &node.secret {
        let challenge = node.get("/cluster/challenge")?;
        let (secret, drain) = (Secret::new(secret.as_str()), format!("POST {DRAIN}"));
        command = command.header("authorization", authorization(&secret, &drain, &challenge));
    }
    match command.send_empty() {
        Ok(_) => {
            println!("The node has handed its tablets over and leaves.");
            Ok(ExitCode::SUCCESS)
        }
        Err(ureq::Error::StatusCode(403)) => Err(anyhow!(
            "the node at {} takes commands from its own machine, as localhost or 127.0.0.1, or with the cluster's secret: give it by --secret or HELENUS_CLUSTER_SECRET",
            node.address()
        )),
        Err(ureq::Error::StatusCode(404)) => Err(node.is_alone()),
        Err(error) => Err(error)
            .with_context(|| format!("the node at {} has not handed its tablets over", node.address())),
    }
}
