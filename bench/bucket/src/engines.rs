//! The cost of a request on three nodes that share a bucket, beside the same request on one node with a folder.
//!
//! Both servers run all the time and get the same load in turn. The load is sent to any node, as by a driver without tokens. The CPU time
//! is that of all nodes, including forwarding and idle time, without the object store.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use clap::Args;

use crate::Common;
use crate::load::{self, Keys, Load, Operation, Values};
use crate::node::{self, Node, Store};

const NODES: u8 = 3;
const VALUE_BYTES: usize = 256;
/// Number of connections to all nodes together.
const CONNECTIONS: usize = 6;
const SETTLE_TIMEOUT: Duration = Duration::from_secs(60);
const MEASURED: [(&str, Operation); 5] = [
    ("write", Operation::Write),
    ("read", Operation::Read),
    ("four-indexes-write", Operation::FourIndexesWrite),
    ("index-read", Operation::IndexRead),
    ("lwt", Operation::Lwt),
];
/// Maximum ratio of the CPU time on a bucket to that on a folder: with fewer requests in flight than [`MANY`], and with as many.
const MOST: f64 = 3.0;
const MOST_WITH_MANY: f64 = 1.5;
const MANY: usize = 512;

#[derive(Args, Debug)]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// Rounds, each of which measures both servers
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Seconds of each phase, after a warm-up of half that time
    #[arg(long, default_value_t = 4)]
    seconds: u64,
    /// Rows
    #[arg(long, default_value_t = 50_000)]
    keys: u64,
    /// Requests in flight
    #[arg(long, value_delimiter = ',', default_values_t = [512, 64])]
    in_flight: Vec<usize>,
    /// Measured operations [default: all]: write, read, four-indexes-write, index-read, lwt
    #[arg(long, value_delimiter = ',')]
    operations: Vec<String>,
}

/// Nodes of one store.
struct Server {
    name: &'static str,
    nodes: Vec<Node>,
}

/// The results of one phase.
struct Phase {
    cpu_us: f64,
    per_s: f64,
    p50_ms: f64,
    /// Forwarded statements, and those of them that were relayed, for an operation.
    forwarded: f64,
    relayed: f64,
}

/// One operation with one number of requests in flight.
struct Case {
    operation: Operation,
    in_flight: usize,
    most: f64,
    /// Phases by server and round.
    phases: Vec<Vec<Phase>>,
}

pub async fn run(options: Options) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let store = Store::start(&options.common, None)?;
    let servers = [
        local(&options, folder.path()).await?,
        shared(&options, &store, folder.path()).await?,
    ];
    for server in &servers {
        server.fill(&options).await?;
    }
    let mut cases = cases(&options);
    for round in 1..=options.rounds {
        for case in &mut cases {
            for (server, phases) in servers.iter().zip(&mut case.phases) {
                let phase = server.measure(&options, case.operation, case.in_flight).await?;
                println!(
                    "round {round}  {:>3} in flight  {:<40} {:<10} {:>7.1} us  {:>8.0}/s  p50 {:>7.2} ms  forwarded {:.2}, relayed {:.2}",
                    case.in_flight,
                    case.operation.name(),
                    server.name,
                    phase.cpu_us,
                    phase.per_s,
                    phase.p50_ms,
                    phase.forwarded,
                    phase.relayed
                );
                phases.push(phase);
            }
        }
    }
    println!("\nmedians of CPU time an operation");
    cases.iter().for_each(print);
    Ok(())
}

fn cases(options: &Options) -> Vec<Case> {
    let requested =
        |name: &&str| options.operations.is_empty() || options.operations.iter().any(|one| one == name);
    let operations: Vec<Operation> = MEASURED
        .iter()
        .filter(|(name, _)| requested(name))
        .map(|(_, operation)| *operation)
        .collect();
    let cases = options.in_flight.iter().flat_map(|&in_flight| {
        operations.iter().map(move |&operation| Case {
            operation,
            in_flight,
            most: if in_flight >= MANY { MOST_WITH_MANY } else { MOST },
            phases: vec![Vec::new(), Vec::new()],
        })
    });
    cases.collect()
}

async fn local(options: &Options, folder: &Path) -> Result<Server> {
    let mut node = Node::local(&options.common, 1, &folder.join("local"), folder)?;
    node.wait_until_ready().await?;
    Ok(Server {
        name: "folder",
        nodes: vec![node],
    })
}

async fn shared(options: &Options, store: &Store, folder: &Path) -> Result<Server> {
    let mut nodes = Vec::new();
    for number in 1..=NODES {
        // Number 1 is the node with the folder.
        let mut node = Node::shared(&options.common, number + 1, store, folder)?;
        node.wait_until_ready().await?;
        nodes.push(node);
    }
    let server = Server {
        name: "bucket",
        nodes,
    };
    if let Some(first) = server.nodes.first() {
        node::settled(first, server.nodes.len(), SETTLE_TIMEOUT).await?;
    }
    Ok(server)
}

impl Server {
    async fn fill(&self, options: &Options) -> Result<()> {
        let Some(first) = self.nodes.first() else {
            return Ok(());
        };
        load::prepare(&first.cql).await?;
        for operation in [
            Operation::Write,
            Operation::IndexedWrite,
            Operation::FourIndexesWrite,
        ] {
            let keys = Keys::each(options.keys);
            let targets = self.targets(&keys);
            load_of(operation, 512, None).run(&targets).await?;
        }
        Ok(())
    }

    /// Returns the targets of all connections, with the nodes in turn.
    fn targets(&self, keys: &Keys) -> Vec<(String, Keys)> {
        let nodes = self.nodes.iter().map(|node| (node.cql.clone(), keys.clone()));
        nodes.cycle().take(CONNECTIONS).collect()
    }

    async fn measure(&self, options: &Options, operation: Operation, in_flight: usize) -> Result<Phase> {
        // A larger range makes most rows new in the table with four indexes.
        let spread = match operation {
            Operation::FourIndexesWrite => 20,
            _ => 1,
        };
        let targets = self.targets(&Keys::Any(0..options.keys * spread));
        let length = Duration::from_secs(options.seconds);
        load_of(operation, in_flight, Some(length / 2))
            .run(&targets)
            .await?;
        let (forwarded, relayed) = self.forwarded()?;
        let before = node::cpu_time_of(&self.nodes)?;
        let outcome = load_of(operation, in_flight, Some(length)).run(&targets).await?;
        let used = node::cpu_time_of(&self.nodes)?.saturating_sub(before);
        let (forwarded_now, relayed_now) = self.forwarded()?;
        let operations = outcome.operations.max(1) as f64;
        Ok(Phase {
            cpu_us: used.as_secs_f64() * 1e6 / operations,
            per_s: outcome.operations_per_s(),
            p50_ms: outcome.quantile_ms(0.5),
            forwarded: (forwarded_now - forwarded) / operations,
            relayed: (relayed_now - relayed) / operations,
        })
    }

    /// Returns the numbers of statements that the nodes have forwarded and relayed.
    fn forwarded(&self) -> Result<(f64, f64)> {
        let mut sums = (0.0, 0.0);
        for node in &self.nodes {
            let metrics = node.metrics()?;
            sums.0 += metrics.sum("helenus_cluster_remote_total{kind=\"statement\",outcome=\"done\"}");
            sums.1 += metrics.sum("helenus_cluster_relayed_total");
        }
        Ok(sums)
    }
}

fn load_of(operation: Operation, in_flight: usize, length: Option<Duration>) -> Load {
    Load {
        operation,
        values: Values::Distinct(VALUE_BYTES),
        in_flight: in_flight.div_ceil(CONNECTIONS),
        length,
        pace: None,
    }
}

fn print(case: &Case) {
    let median = |phases: &Vec<Phase>| {
        let mut figures: Vec<f64> = phases.iter().map(|phase| phase.cpu_us).collect();
        figures.sort_by(f64::total_cmp);
        figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
    };
    let medians: Vec<f64> = case.phases.iter().map(median).collect();
    if let [folder, bucket] = medians.as_slice() {
        println!(
            "{:>3} in flight  {:<40} folder {folder:>7.1} us  bucket {bucket:>7.1} us  {:.2} times, at most {:.1} wanted",
            case.in_flight,
            case.operation.name(),
            bucket / folder,
            case.most
        );
    }
}
