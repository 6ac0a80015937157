//! The cost of a request by the number of nodes: the CPU time of all nodes, and the number of nodes that the request touches.
//!
//! Requests are sent to any node, as by a driver without tokens. Requests for one partition are also sent directly to its owner: the
//! difference is the cost of forwarding. The CPU time of idle nodes is measured separately and subtracted.
//!
//! With more nodes, the same rate gives each node fewer requests to batch. `--per-node` gives each node a fixed rate, tablets, rows and
//! connections, as when nodes are added for more load.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use helenus_row::murmur3_token;
use helenus_stress::raw::Outcome;

use crate::Common;
use crate::load::{self, Keys, Load, Operation, Values, key};
use crate::node::{self, Cluster, Node, Store};

const VALUE_BYTES: usize = 256;
/// Number of connections to all nodes together, or to each node.
const CONNECTIONS: usize = 60;
const CONNECTIONS_PER_NODE: usize = 6;
/// Number of tablets and rows per node.
const TABLETS_PER_NODE: u16 = 4;
const KEYS_PER_NODE: u64 = 2_000;
/// Number of single requests with which touched tablets are counted.
const PROBES: u64 = 40;
/// Metrics that count the accesses to a tablet.
const TOUCHES: [&str; 3] = [
    "helenus_store_gets_total",
    "helenus_store_scans_total",
    "helenus_store_operands_total",
];
const MEASURED: [Operation; 4] = [
    Operation::Write,
    Operation::Read,
    Operation::Lwt,
    Operation::IndexRead,
];
const SETTLE_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Args, Debug)]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// Numbers of nodes, ascending
    #[arg(long, value_delimiter = ',', default_values_t = [1, 3, 5, 10])]
    nodes: Vec<u8>,
    /// Seconds of each phase
    #[arg(long, default_value_t = 3)]
    seconds: u64,
    /// Requests per second of all nodes together; must be low enough that the cores are not the bottleneck
    #[arg(long, default_value_t = 1000)]
    rate: u32,
    /// Requests per second for each node instead, with four tablets, 2,000 rows and six connections per node
    #[arg(long, conflicts_with_all = ["rate", "keys", "tablets"])]
    per_node: Option<u32>,
    /// Rows
    #[arg(long, default_value_t = 20_000)]
    keys: u64,
    /// Number of tablets, which must not change: with fewer than four per node they would be split
    #[arg(long, default_value_t = 40)]
    tablets: u16,
}

/// Size of the load for a number of nodes.
#[derive(Clone, Copy)]
struct Size {
    rate: u32,
    connections: usize,
    keys: u64,
    tablets: u16,
    seconds: u64,
}

impl Options {
    fn size(&self, nodes: u8) -> Size {
        let seconds = self.seconds;
        match self.per_node {
            None => Size {
                rate: self.rate,
                connections: CONNECTIONS,
                keys: self.keys,
                tablets: self.tablets,
                seconds,
            },
            Some(rate) => Size {
                rate: rate * u32::from(nodes),
                connections: CONNECTIONS_PER_NODE * usize::from(nodes),
                keys: KEYS_PER_NODE * u64::from(nodes),
                tablets: TABLETS_PER_NODE * u16::from(nodes),
                seconds,
            },
        }
    }
}

/// A store and the nodes that share it.
struct Fleet {
    nodes: Vec<Node>,
    store: Store,
    common: Common,
}

impl Fleet {
    fn new(options: &Options, size: Size) -> Result<Fleet> {
        let mut common = options.common.clone();
        common.set.push(format!("tablet_count={}", size.tablets));
        Ok(Fleet {
            nodes: Vec::new(),
            store: Store::start(&common, None)?,
            common,
        })
    }

    /// Starts nodes until there are `count`. Returns the owners of all tablets after the last move.
    async fn grow(&mut self, count: u8, log: &Path) -> Result<Cluster> {
        while self.nodes.len() < usize::from(count) {
            let number = self.nodes.len() as u8 + 1;
            let mut node = Node::shared(&self.common, number, &self.store, log)?;
            node.wait_until_ready().await?;
            self.nodes.push(node);
        }
        let first = self.nodes.first().context("no node was started")?;
        Ok(node::settled(first, self.nodes.len(), SETTLE_TIMEOUT).await?.0)
    }

    async fn fill(&self, size: Size) -> Result<()> {
        let first = self.nodes.first().context("no node was started")?;
        load::prepare(&first.cql).await?;
        fill(size, first).await
    }
}

/// The figures of one operation with a number of nodes.
struct Figures {
    nodes: u8,
    operation: Operation,
    per_s: f64,
    p50_ms: f64,
    /// CPU time of all nodes in µs, without that of idle nodes.
    anywhere_us: f64,
    straight_us: Option<f64>,
    nodes_touched: f64,
    touches: f64,
}

pub async fn run(options: Options) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut kept: Option<Fleet> = None;
    let mut figures = Vec::new();
    for &count in &options.nodes {
        let size = options.size(count);
        // Other numbers of tablets and rows need a new store. The old one is dropped first, because both use the same ports.
        let (mut fleet, is_new) = match kept.take().filter(|_| options.per_node.is_none()) {
            Some(fleet) => (fleet, false),
            None => (Fleet::new(&options, size)?, true),
        };
        let cluster = fleet.grow(count, folder.path()).await?;
        if is_new {
            fleet.fill(size).await?;
        }
        let idle = at_rest(&fleet.nodes).await?;
        println!(
            "{count} nodes at rest: {:.1} ms of CPU a second and node",
            idle * 1e3 / f64::from(count)
        );
        for operation in MEASURED {
            let measured = measure(size, &fleet.nodes, &cluster, operation, idle).await?;
            print(&measured);
            figures.push(measured);
        }
        kept = Some(fleet);
    }
    summary(&figures);
    Ok(())
}

async fn fill(size: Size, node: &Node) -> Result<()> {
    for operation in [Operation::Write, Operation::IndexedWrite] {
        let load = Load {
            operation,
            values: Values::Distinct(VALUE_BYTES),
            in_flight: CONNECTIONS,
            length: None,
            pace: None,
        };
        load.run(&[(node.cql.clone(), Keys::each(size.keys))]).await?;
    }
    Ok(())
}

fn cpu(nodes: &[Node]) -> Result<f64> {
    Ok(node::cpu_time_of(nodes)?.as_secs_f64())
}

/// Returns the CPU seconds per second that the nodes use without requests.
async fn at_rest(nodes: &[Node]) -> Result<f64> {
    const SECONDS: u64 = 4;
    let before = cpu(nodes)?;
    tokio::time::sleep(Duration::from_secs(SECONDS)).await;
    Ok((cpu(nodes)? - before) / SECONDS as f64)
}

async fn measure(
    size: Size,
    nodes: &[Node],
    cluster: &Cluster,
    operation: Operation,
    idle: f64,
) -> Result<Figures> {
    let load = Load {
        operation,
        values: Values::Distinct(VALUE_BYTES),
        in_flight: 1,
        length: Some(Duration::from_secs(size.seconds)),
        pace: Some(Duration::from_secs(1) * size.connections as u32 / size.rate),
    };
    let anywhere: Vec<(String, Keys)> = nodes
        .iter()
        .map(|node| (node.cql.clone(), Keys::Any(0..size.keys)))
        .collect();
    let anywhere = spread(size, &anywhere);
    let timed = async |targets: &[(String, Keys)]| -> Result<(Outcome, f64)> {
        let warming = Load {
            length: Some(Duration::from_secs(1)),
            ..load.clone()
        };
        warming.run(targets).await?;
        let before = cpu(nodes)?;
        let outcome = load.run(targets).await?;
        let used = cpu(nodes)? - before - idle * outcome.elapsed.as_secs_f64();
        let each_us = used * 1e6 / outcome.operations.max(1) as f64;
        Ok((outcome, each_us))
    };
    let (outcome, anywhere_us) = timed(&anywhere).await?;
    let straight_us = match operation {
        Operation::IndexRead | Operation::IndexedWrite | Operation::FourIndexesWrite | Operation::Count => {
            None
        }
        Operation::Write | Operation::Read | Operation::Lwt => {
            Some(timed(&spread(size, &straight(size, nodes, cluster))).await?.1)
        }
    };
    let (nodes_touched, touches) = probe(size, nodes, operation).await?;
    Ok(Figures {
        nodes: nodes.len() as u8,
        operation,
        per_s: outcome.operations_per_s(),
        p50_ms: outcome.quantile_ms(0.5),
        anywhere_us,
        straight_us,
        nodes_touched,
        touches,
    })
}

/// Returns the targets of all connections, with the nodes in turn.
fn spread(size: Size, nodes: &[(String, Keys)]) -> Vec<(String, Keys)> {
    nodes.iter().cycle().take(size.connections).cloned().collect()
}

/// Returns each node with the keys that it owns.
fn straight(size: Size, nodes: &[Node], cluster: &Cluster) -> Vec<(String, Keys)> {
    let mut keys: HashMap<&str, Vec<u64>> = HashMap::new();
    for number in 0..size.keys {
        if let Some(owner) = cluster.owner(murmur3_token(&key(number))) {
            keys.entry(owner).or_default().push(number);
        }
    }
    let of = |node: &Node| {
        let own = keys.remove(node.cql.as_str()).unwrap_or_default();
        (node.cql.clone(), Keys::Of(Arc::from(own)))
    };
    nodes.iter().map(of).collect()
}

/// Returns the average number of nodes that a request touches, and of its accesses to tablets.
async fn probe(size: Size, nodes: &[Node], operation: Operation) -> Result<(f64, f64)> {
    let counted = || -> Result<Vec<f64>> {
        let sum = |node: &Node| -> Result<f64> {
            let metrics = node.metrics()?;
            Ok(TOUCHES.iter().map(|name| metrics.sum(name)).sum())
        };
        nodes.iter().map(sum).collect()
    };
    let load = Load {
        operation,
        values: Values::Distinct(VALUE_BYTES),
        in_flight: 1,
        length: None,
        pace: None,
    };
    let (mut touched, mut touches) = (0.0, 0.0);
    for probe in 0..PROBES {
        let number = probe * size.keys / PROBES;
        let Some(node) = nodes.get(probe as usize % nodes.len()) else {
            continue;
        };
        let before = counted()?;
        load.run(&[(node.cql.clone(), Keys::times(number, 1))]).await?;
        for (before, after) in before.iter().zip(counted()?) {
            touched += f64::from(u8::from(after > *before));
            touches += after - before;
        }
    }
    Ok((touched / PROBES as f64, touches / PROBES as f64))
}

fn print(figures: &Figures) {
    let straight = figures.straight_us.map_or(String::new(), |straight| {
        format!("  straight to the owner {straight:>6.1} us")
    });
    println!(
        "{:>3} nodes  {:<24} {:>7.0}/s  p50 {:>6.2} ms  CPU {:>6.1} us{straight}  touches {:.2} nodes, {:.2} times",
        figures.nodes,
        figures.operation.name(),
        figures.per_s,
        figures.p50_ms,
        figures.anywhere_us,
        figures.nodes_touched,
        figures.touches
    );
}

/// Prints the cost of forwarding, and the CPU time relative to that of the fewest nodes.
fn summary(figures: &[Figures]) {
    println!("\nAgainst the fewest nodes, forwarding left out:");
    for operation in MEASURED {
        let of: Vec<&Figures> = figures.iter().filter(|of| of.operation == operation).collect();
        let forwarding: Vec<f64> = of
            .iter()
            .filter(|of| of.nodes > 1)
            .filter_map(|of| {
                let forwarded = 1.0 - 1.0 / f64::from(of.nodes);
                Some((of.anywhere_us - of.straight_us?) / forwarded)
            })
            .collect();
        let each = forwarding.iter().sum::<f64>() / forwarding.len().max(1) as f64;
        let Some(base) = of.first() else { continue };
        let cost = |of: &Figures| of.straight_us.unwrap_or(of.anywhere_us);
        let ratios: Vec<String> = of
            .iter()
            .map(|of| format!("{}: {:.2}", of.nodes, cost(of) / cost(base)))
            .collect();
        let note = match operation {
            Operation::IndexRead => "whole, forwarding too".to_owned(),
            _ => format!("a forwarded one takes {each:.1} us more"),
        };
        println!("{:<24} {}   ({note})", operation.name(), ratios.join("  "));
    }
}
