//! `nodetool health`.

use std::process::ExitCode;

use anyhow::Context;

use super::client::{NodeClient, default_agent};

pub(super) fn run(node: &NodeClient) -> anyhow::Result<ExitCode> {
    let url = node.url("/health");
    match default_agent().get(&url).call() {
        Ok(_) => println!("up"),
        Err(ureq::Error::StatusCode(503)) => {
            println!("stopping");
            return Ok(ExitCode::FAILURE);
        }
        Err(error) => return Err(error).with_context(|| format!("no answer from {url}")),
    }
    Ok(ExitCode::SUCCESS)
}
