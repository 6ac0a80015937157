//! `helenus nodetool`: what a node tells of its cluster over HTTP, as tables.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, anyhow};
use clap::{Args, Subcommand};
use helenus_server::node::commands::authorization;
use helenus_server::rpc::auth::Secret;
use serde_json::Value;
use tabled::builder::Builder;
use tabled::settings::Style;

/// How long a node may take to answer; to hand its tablets over, much longer.
const TIMEOUT: Duration = Duration::from_secs(10);
const DRAIN_TIMEOUT: Duration = Duration::from_secs(120);

const CLUSTER: &str = "/cluster";
const DRAIN: &str = "/cluster/drain";

#[derive(Args, Debug)]
pub struct NodetoolArgs {
    /// Where a node serves HTTP
    #[arg(
        long,
        value_name = "HOST:PORT",
        default_value = "127.0.0.1:9180",
        global = true
    )]
    http: String,
    /// The cluster's secret, for commands to a node on another machine
    #[arg(
        long,
        value_name = "SECRET",
        env = "HELENUS_CLUSTER_SECRET",
        hide_env_values = true,
        global = true
    )]
    secret: Option<String>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Clone, Copy, Debug, PartialEq, Eq)]
enum Command {
    /// The nodes: whether they are up, where they are, what they own
    Status,
    /// The tokens at which tablets end, and whose they are
    Ring,
    /// The tablets: ranges, owners, what they go through
    Tablets,
    /// The cluster as a whole
    Describecluster,
    /// Whether the node serves; exits with 1 if not
    Health,
    /// Hand this node's tablets over and end it
    Drain,
    /// The same as drain: a node keeps nothing that would have to be moved
    Decommission,
}

/// Runs a command.
pub fn run(args: &NodetoolArgs) -> anyhow::Result<ExitCode> {
    if matches!(args.command, Command::Drain | Command::Decommission) {
        return drain(args);
    }
    if args.command == Command::Health {
        return health(&args.http);
    }
    let cluster = read(&args.http)?;
    match args.command {
        Command::Status => status(&cluster),
        Command::Ring => ring(&cluster),
        Command::Tablets => tablets(&cluster),
        Command::Describecluster => describe(&cluster),
        Command::Health | Command::Drain | Command::Decommission => {}
    }
    Ok(ExitCode::SUCCESS)
}

fn drain(args: &NodetoolArgs) -> anyhow::Result<ExitCode> {
    let mut command = agent(DRAIN_TIMEOUT).post(format!("http://{}{DRAIN}", args.http));
    if let Some(secret) = &args.secret {
        let challenge = get(&args.http, "/cluster/challenge")?;
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
            args.http
        )),
        Err(ureq::Error::StatusCode(404)) => Err(alone(&args.http)),
        Err(error) => {
            Err(error).with_context(|| format!("the node at {} has not handed its tablets over", args.http))
        }
    }
}

fn health(http: &str) -> anyhow::Result<ExitCode> {
    let url = format!("http://{http}/health");
    match agent(TIMEOUT).get(&url).call() {
        Ok(_) => println!("up"),
        Err(ureq::Error::StatusCode(503)) => {
            println!("stopping");
            return Ok(ExitCode::FAILURE);
        }
        Err(error) => return Err(error).with_context(|| format!("no answer from {url}")),
    }
    Ok(ExitCode::SUCCESS)
}

fn alone(http: &str) -> anyhow::Error {
    anyhow!("the node at {http} is alone: its store is a local folder")
}

fn agent(timeout: Duration) -> ureq::Agent {
    ureq::Agent::config_builder()
        .timeout_global(Some(timeout))
        .build()
        .into()
}

fn read(http: &str) -> anyhow::Result<Value> {
    let text = get(http, CLUSTER)?;
    serde_json::from_str(&text).with_context(|| format!("http://{http}{CLUSTER} has answered something else"))
}

/// What a node among others answers at a path.
fn get(http: &str, path: &str) -> anyhow::Result<String> {
    let url = format!("http://{http}{path}");
    let mut answer = match agent(TIMEOUT).get(&url).call() {
        Err(ureq::Error::StatusCode(404)) => return Err(alone(http)),
        answer => answer.with_context(|| format!("no answer from {url}"))?,
    };
    Ok(answer.body_mut().read_to_string()?)
}

fn list<'v>(cluster: &'v Value, name: &str) -> &'v [Value] {
    cluster
        .get(name)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

fn text(value: &Value, name: &str) -> String {
    match value.get(name) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => "-".to_owned(),
        Some(other) => other.to_string(),
    }
}

fn table<const N: usize>(heads: [&str; N], rows: impl IntoIterator<Item = [String; N]>) {
    let mut builder = Builder::default();
    builder.push_record(heads);
    rows.into_iter().for_each(|row| builder.push_record(row));
    println!("{}", builder.build().with(Style::blank()));
}

/// Up or down, normal or leaving, as in Cassandra's tool.
fn letters(node: &Value) -> String {
    let up = if node.get("alive").and_then(Value::as_bool) == Some(true) {
        "U"
    } else {
        "D"
    };
    let state = if text(node, "state") == "leaving" {
        "L"
    } else {
        "N"
    };
    format!("{up}{state}")
}

fn share(value: &Value, name: &str) -> String {
    let share = value.get(name).and_then(Value::as_f64).unwrap_or_default();
    format!("{:.1}%", share * 100.0)
}

fn status(cluster: &Value) {
    let row = |node: &Value| {
        [
            letters(node),
            text(node, "cql_address"),
            text(node, "tablets"),
            share(node, "owns"),
            text(node, "host_id"),
            text(node, "data_center"),
            text(node, "rack"),
            text(node, "name"),
        ]
    };
    println!("Up/Down, Normal/Leaving");
    table(
        [
            "",
            "Address",
            "Tablets",
            "Owns",
            "Host ID",
            "Data center",
            "Rack",
            "Name",
        ],
        list(cluster, "nodes").iter().map(row),
    );
}

/// The address of the node that owns a tablet.
fn owner(cluster: &Value, tablet: &Value) -> String {
    let id = text(tablet, "owner");
    let owner = list(cluster, "nodes")
        .iter()
        .find(|node| text(node, "host_id") == id);
    owner.map_or(id, |node| text(node, "cql_address"))
}

fn ring(cluster: &Value) {
    let row = |tablet: &Value| [text(tablet, "last_token"), owner(cluster, tablet)];
    table(["Token", "Address"], list(cluster, "tablets").iter().map(row));
}

fn tablets(cluster: &Value) {
    let row = |tablet: &Value| {
        [
            text(tablet, "id"),
            text(tablet, "first_token"),
            text(tablet, "last_token"),
            owner(cluster, tablet),
            text(tablet, "epoch"),
            text(tablet, "state"),
        ]
    };
    table(
        ["Tablet", "From token", "To token", "Owner", "Epoch", "State"],
        list(cluster, "tablets").iter().map(row),
    );
}

fn describe(cluster: &Value) {
    let nodes = list(cluster, "nodes");
    let up = nodes.iter().filter(|node| letters(node).starts_with('U')).count();
    println!("Cluster          {}", text(cluster, "cluster_name"));
    println!("Document version {}", text(cluster, "version"));
    println!("This node        {}", text(cluster, "state"));
    println!("Schema version   {}", text(cluster, "schema_version"));
    println!("Nodes            {} ({up} up)", nodes.len());
    println!("Tablets          {}", list(cluster, "tablets").len());
    println!("Partitioner      org.apache.cassandra.dht.Murmur3Partitioner");
}
