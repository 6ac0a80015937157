//! `nodetool reloadconfig`: has the node read its settings file again.

use std::process::ExitCode;

use serde_json::Value;

use super::client::{NodeClient, TIMEOUT};

pub(super) fn run(node: &NodeClient) -> anyhow::Result<ExitCode> {
    const PATH: &str = "/node/reload_config";
    let answer = node.command(PATH, "", "/node/challenge", TIMEOUT)?;
    let answer = node.parse(PATH, &answer)?;
    let names = |field: &str| {
        let names = answer.get(field).and_then(Value::as_array);
        let names = names.into_iter().flatten().filter_map(Value::as_str);
        names.collect::<Vec<&str>>().join(", ")
    };
    match names("changed") {
        none if none.is_empty() => println!("No setting that can change while the node runs has changed."),
        changed => println!("Changed: {changed}"),
    }
    let waiting = names("waiting");
    if !waiting.is_empty() {
        println!("After a restart: {waiting}");
    }
    Ok(ExitCode::SUCCESS)
}
