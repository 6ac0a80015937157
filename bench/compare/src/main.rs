//! Runs the same load on Helenus and Apache Cassandra in alternating rounds. Prints throughput, latency percentiles, the server's CPU time
//! per operation and its resident memory for each, and the ratios of the medians.
//!
//! Client and servers share the cores of the machine, so CPU time per operation is the figure that shows capacity. Both servers run all the
//! time. The one that is not measured is stopped (SIGSTOP), so that it uses no CPU. Its dirty pages are written before the other is
//! measured.

mod captured;
mod instructions;
mod load;
mod operation;
mod report;
mod server;
mod stalls;
mod vectors;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;
use helenus_stress::monitor::process::Usage;
use helenus_stress::raw;

use instructions::InstructionCounter;
use load::{EndedCycles, Load};
use operation::{MAIN_OPERATIONS, Operation, STATEMENTS, Sizes};
use report::{Figures, Phase};
use server::Server;
use stalls::StallDetector;

#[derive(Parser, Debug)]
#[command(about = "Helenus against Apache Cassandra: the same operations on both, in alternating rounds")]
struct Args {
    /// Alternating rounds, over which medians are taken
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds of each measured phase
    #[arg(long, default_value_t = 15)]
    seconds: u64,
    /// Seconds of warm-up for each server and operation, before the first round
    #[arg(long, default_value_t = 20)]
    warmup: u64,
    /// Operations to measure [default: write,read; eight with --instructions]
    #[arg(long, value_enum, value_delimiter = ',')]
    operations: Vec<Operation>,
    /// Also print CPU time and instructions of an operation, in user space and in the kernel apart; needs `perf`
    #[arg(long)]
    instructions: bool,
    /// Requests in flight
    #[arg(long, default_value_t = 64)]
    in_flight: usize,
    /// Rates of the requests; each operation is measured at each of them
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["full", "shared"])]
    pace: Vec<Pace>,
    /// Requests per second of the shared pace [default: half of what the slowest server reached in the warm-up]
    #[arg(long)]
    rate: Option<f64>,
    /// Also measure each operation while this one runs on another connection, one request after the other
    #[arg(long, value_enum)]
    beside: Option<Operation>,
    /// Connections
    #[arg(long, default_value_t = 4)]
    connections: usize,
    /// Distinct keys
    #[arg(long, default_value_t = 500_000)]
    keys: u64,
    /// Length of a key in bytes
    #[arg(long, default_value_t = 50)]
    key_bytes: usize,
    /// Length of a value in bytes
    #[arg(long, default_value_t = 256)]
    value_bytes: usize,
    /// Components of a vector
    #[arg(long, default_value_t = 128)]
    dimension: usize,
    /// The helenus binary
    #[arg(long, default_value = "target/release/helenus")]
    helenus: PathBuf,
    /// Folder in which Apache Cassandra is kept between runs
    #[arg(long, default_value = "target/cassandra")]
    cassandra: PathBuf,
    /// Cassandra's heap
    #[arg(long, default_value = "4G")]
    heap: String,
    /// Measure only Helenus
    #[arg(long)]
    alone: bool,
    /// Disable Helenus' row cache and give it small memtables, so that rows are read from blocks
    #[arg(long)]
    no_row_cache: bool,
    /// A setting of Helenus; may be given several times
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// An empty object store for Helenus, `s3://…`, which AWS's usual variables describe [default: a folder]
    #[arg(long, value_name = "URL")]
    object_store: Option<String>,
    /// Nodes of Helenus on the object store; all of them get load
    #[arg(long, default_value_t = 1, requires = "object_store")]
    nodes: u8,
    /// Also measure a server that answers without storage: the binary `no-storage` of helenus-baseline
    #[arg(long, alias = "floor", value_name = "PATH")]
    baseline: Option<PathBuf>,
}

/// Rate of requests.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    /// As many as the server answers (closed loop): the faster server does more work, which increases its latencies
    Full,
    /// One rate for all servers (open loop: latency counts from when a request was due)
    Shared,
}

/// Settings of `--no-row-cache`.
const FROM_BLOCKS: [&str; 2] = ["row_cache_bytes=0", "memtable_bytes=8MiB"];

fn main() -> Result<()> {
    let mut args = Args::parse();
    if args.operations.is_empty() {
        args.operations = match args.instructions {
            true => MAIN_OPERATIONS.to_vec(),
            false => vec![Operation::Write, Operation::Read],
        };
    }
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(run(args))
}

async fn run(args: Args) -> Result<()> {
    let captured = captured::statements(&args.operations, args.alone)?;
    let data = tempfile::tempdir().context("can't make a folder for the servers' data")?;
    let from_blocks = FROM_BLOCKS.iter().filter(|_| args.no_row_cache);
    let settings: Vec<String> = from_blocks
        .map(|&setting| setting.to_owned())
        .chain(args.set.clone())
        .collect();
    let mut servers = vec![Server::helenus(
        &args.helenus,
        data.path(),
        &settings,
        args.object_store.as_deref(),
        args.nodes,
    )?];
    if !args.alone {
        servers.push(Server::cassandra(&args.cassandra, data.path(), &args.heap)?);
    }
    if let Some(binary) = &args.baseline {
        servers.push(Server::baseline(binary)?);
    }
    for server in &mut servers {
        server.wait_until_ready().await?;
        raw::run_statements(server.first_address()?, &STATEMENTS).await?;
        if args.operations.iter().any(|operation| operation.is_on_vectors()) {
            let statements = vectors::statements(args.dimension);
            let statements: Vec<&str> = statements.iter().map(String::as_str).collect();
            raw::run_statements(server.first_address()?, &statements).await?;
        }
        raw::run_statements(server.first_address()?, &captured).await?;
        println!("{} is up", server.name());
    }
    let load = Load {
        connections: args.connections,
        in_flight: args.in_flight,
        rate: None,
        sizes: Sizes {
            keys: args.keys,
            key_bytes: args.key_bytes,
            value_bytes: args.value_bytes,
            dimension: args.dimension,
        },
        cycles: EndedCycles::default(),
    };
    servers.iter().try_for_each(Server::pause)?;
    let mut slowest = vec![f64::INFINITY; args.operations.len()];
    for server in &servers {
        server.resume()?;
        let answered = warm_up(server, &load, &args).await?;
        slowest
            .iter_mut()
            .zip(answered)
            .for_each(|(slowest, rate)| *slowest = slowest.min(rate));
        set_aside(server)?;
        println!("{} is filled and warm", server.name());
    }
    let phases = phases(&args, &slowest);
    let stalls = StallDetector::start();
    let mut figures = Vec::new();
    for round in 1..=args.rounds {
        for server in &servers {
            server.resume()?;
            for &phase in &phases {
                let measured = measure(server, &load, phase, &args, stalls.as_ref()).await?;
                println!("round {round} {measured}");
                figures.push(measured);
            }
            set_aside(server)?;
        }
    }
    report::print(&figures, &phases);
    report::print_capture(&figures, &phases);
    if args.instructions {
        report::print_cost(&figures, &phases);
    }
    Ok(())
}

/// Stops a server and syncs its dirty pages, which the disk would otherwise write while another server is measured.
fn set_aside(server: &Server) -> Result<()> {
    server.pause()?;
    rustix::fs::sync();
    Ok(())
}

/// Returns each operation at each pace, alone and beside another. `slowest` has the rate of the slowest server for each operation, in
/// requests per second.
fn phases(args: &Args, slowest: &[f64]) -> Vec<Phase> {
    let of_operation = |(&operation, slowest): (&Operation, &f64)| {
        let rate = args.rate.unwrap_or((slowest / 2.0).max(1.0).round());
        let at = |pace: &Pace| {
            let rate = (*pace == Pace::Shared).then_some(rate);
            let alone = Phase {
                operation,
                rate,
                beside: None,
            };
            let beside = args.beside.map(|_| Phase {
                beside: args.beside,
                ..alone
            });
            std::iter::once(alone).chain(beside)
        };
        args.pace.iter().flat_map(at).collect::<Vec<_>>()
    };
    args.operations
        .iter()
        .zip(slowest)
        .flat_map(of_operation)
        .collect()
}

/// Fills the tables, and runs each operation for a while. Returns the requests per second of each operation.
async fn warm_up(server: &Server, load: &Load, args: &Args) -> Result<Vec<f64>> {
    let mut filled = Vec::new();
    for operation in args.operations.iter().chain(&args.beside) {
        for fill in operation.fills(&load.sizes) {
            if filled.contains(&fill.statement) {
                continue;
            }
            filled.push(fill.statement);
            load.fill(server.addresses(), &fill)
                .await
                .with_context(|| format!("can't fill {}", server.name()))?;
        }
    }
    let mut answered = Vec::new();
    for &operation in &args.operations {
        let outcome = load
            .run(server.addresses(), operation, Duration::from_secs(args.warmup))
            .await?;
        answered.push(outcome.requests_per_s());
        if operation.is_search() {
            let recall = vectors::recall(server.first_address()?, operation, &load.sizes).await?;
            println!("{} {}: recall@10 {recall:.3}", server.name(), operation.name());
        }
    }
    Ok(answered)
}

async fn measure(
    server: &Server,
    load: &Load,
    phase: Phase,
    args: &Args,
    detector: Option<&StallDetector>,
) -> Result<Figures> {
    let length = Duration::from_secs(args.seconds);
    let load = Load {
        rate: phase.rate,
        ..load.clone()
    };
    let beside = Load {
        connections: 1,
        in_flight: 1,
        rate: None,
        ..load.clone()
    };
    let other = async {
        match phase.beside {
            Some(operation) => beside.run(server.addresses(), operation, length).await.map(Some),
            None => Ok(None),
        }
    };
    let counter = match args.instructions {
        true => Some(InstructionCounter::start(&server.processes()).await?),
        false => None,
    };
    let before = server.usage()?;
    let (result, other) = tokio::try_join!(load.run(server.addresses(), phase.operation, length), other)?;
    let after = server.usage()?;
    let instructions = counter.map(InstructionCounter::end).transpose()?.flatten();
    if let (Some(operation), Some(other)) = (phase.beside, other) {
        println!(
            "beside it, {} {}: {:.2}/s",
            server.name(),
            operation.name(),
            other.requests_per_s()
        );
    }
    let stalls = detector.map(|detector| detector.since(result.started));
    Ok(Figures::new(
        server.name(),
        phase,
        &result,
        Usage {
            cpu: after.cpu.saturating_sub(before.cpu),
            kernel: after.kernel.saturating_sub(before.kernel),
            rss_bytes: after.rss_bytes,
        },
        stalls.as_deref(),
        instructions,
    ))
}
