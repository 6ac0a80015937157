//! Latency of a node's requests while a read-only node scans a whole table and a compactor compacts, compared with neither.
//!
//! Requests come at a fixed rate, so that the scan cannot slow the load down. Rounds with and without the scan alternate. The compactor is
//! stopped in the rounds without. The owner and the load have one half of the machine's cores. The read-only node and the compactor have
//! the other half, as if they had their own machine. The object store has all cores.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Args;
use helenus_stress::raw::Outcome;
use helenus_stress::results::noise::median;

use crate::Common;
use crate::load::{self, Keys, Load, Operation, Values};
use crate::node::{Compactor, Node, Store};

const VALUE_BYTES: usize = 1000;
const FILL_IN_FLIGHT: usize = 64;
/// Connections of each operation, with one request in flight each.
const CONNECTIONS: u32 = 16;
/// Maximum ratio of the p99 with a scan to the p99 without.
const MOST: f64 = 1.1;

#[derive(Args, Debug)]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// Rows of an incompressible kilobyte
    #[arg(long, default_value_t = 200_000)]
    keys: u64,
    /// Writes per second, and reads per second
    #[arg(long, default_value_t = 400)]
    rate: u32,
    /// Rounds, each with and without the scan
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds of each phase
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Run no compactor: the owner compacts, and only the scan differs
    #[arg(long)]
    no_compactor: bool,
}

/// The p99 of each round in milliseconds.
#[derive(Default)]
struct Latencies {
    writes: Vec<f64>,
    reads: Vec<f64>,
}

pub async fn run(options: Options) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let store = Store::start(&options.common, None)?;
    let start = |number: u8, more: &[&str]| start(&options.common, number, &store, folder.path(), more);
    let owner = ["flush_interval=3s", "tablet_count=4"];
    let writes = Load {
        in_flight: FILL_IN_FLIGHT,
        ..load_of(Operation::Write, None, None)
    };
    load::fill_and_stop(start(1, &owner)?, options.keys, writes).await?;
    let mut owner = start(1, &owner)?;
    owner.wait_until_ready().await?;
    let mut reader = start(2, &["read_only=true", "row_cache_bytes=0"])?;
    reader.wait_until_ready().await?;
    let compactor = match options.no_compactor {
        true => None,
        false => Some(Compactor::start(&options.common, &store, folder.path())?),
    };
    keep_apart(&owner, &reader, compactor.as_ref())?;
    // Warms up. The owner detects the compactor meanwhile.
    measure(&options, &owner, None).await?;
    measure(&options, &owner, None).await?;
    let (mut alone, mut scanned) = (Latencies::default(), Latencies::default());
    for round in 1..=options.rounds {
        for (name, reader, latencies) in [
            ("without", None, &mut alone),
            ("with a scan", Some(&reader), &mut scanned),
        ] {
            let gets = reader.map_or(Ok(0.0), Node::bucket_gets)?;
            if let Some(compactor) = &compactor {
                match reader {
                    None => compactor.pause()?,
                    Some(_) => compactor.resume()?,
                }
            }
            let cpu_time = || compactor.as_ref().map_or(Ok(Duration::ZERO), Compactor::cpu_time);
            let before = cpu_time()?;
            let (writes, reads, scans) = measure(&options, &owner, reader).await?;
            let compacting_s = (cpu_time()? - before).as_secs_f64();
            let gets = reader.map_or(Ok(0.0), Node::bucket_gets)? - gets;
            println!(
                "round {round}  {name:<12} write p99 {:>7.2} ms  read p99 {:>7.2} ms  {scans} whole scans, {gets:.0} GETs of the reader, {compacting_s:.1} s of CPU of the compactor",
                writes.quantile_ms(0.99),
                reads.quantile_ms(0.99)
            );
            latencies.writes.push(writes.quantile_ms(0.99));
            latencies.reads.push(reads.quantile_ms(0.99));
        }
    }
    print("write", &alone.writes, &scanned.writes);
    print("read", &alone.reads, &scanned.reads);
    Ok(())
}

/// Pins the owner and this process to one half of the cores, and the reader and the compactor to the other half.
fn keep_apart(owner: &Node, reader: &Node, compactor: Option<&Compactor>) -> Result<()> {
    let cores = std::thread::available_parallelism()?.get();
    ensure!(cores >= 2, "two cores at least are needed");
    let half = cores / 2;
    pin(owner.pid(), 0..half)?;
    pin(std::process::id(), 0..half)?;
    pin(reader.pid(), half..cores)?;
    compactor.map_or(Ok(()), |compactor| pin(compactor.pid(), half..cores))
}

/// Pins all threads of a process to these cores.
fn pin(pid: u32, cores: std::ops::Range<usize>) -> Result<()> {
    let status = Command::new("taskset")
        .args(["--all-tasks", "--cpu-list", "--pid"])
        .arg(format!("{}-{}", cores.start, cores.end - 1))
        .arg(pid.to_string())
        .stdout(Stdio::null())
        .status()?;
    ensure!(
        status.success(),
        "taskset (util-linux) could not pin process {pid}"
    );
    Ok(())
}

/// Starts a node with additional settings.
fn start(common: &Common, number: u8, store: &Store, folder: &Path, more: &[&str]) -> Result<Node> {
    let mut common = common.clone();
    common.set.extend(more.iter().map(|&setting| setting.to_owned()));
    Node::shared(&common, number, store, folder)
}

/// Writes and reads at the owner, and scans at the reader if there is one. Returns both outcomes and the number of scans.
async fn measure(options: &Options, owner: &Node, reader: Option<&Node>) -> Result<(Outcome, Outcome, u64)> {
    let length = Some(Duration::from_secs(options.seconds));
    let pace = Some(Duration::from_secs(1) * CONNECTIONS / options.rate.max(1));
    let targets: Vec<_> = (0..CONNECTIONS)
        .map(|_| (owner.cql.clone(), Keys::Any(0..options.keys)))
        .collect();
    let (write, read) = (
        load_of(Operation::Write, length, pace),
        load_of(Operation::Read, length, pace),
    );
    let scan = async {
        let Some(reader) = reader else { return Ok(0) };
        let targets = [(reader.cql.clone(), Keys::Any(0..options.keys))];
        let scanned = load_of(Operation::Count, length, None).run(&targets).await?;
        anyhow::Ok(scanned.operations)
    };
    tokio::try_join!(write.run(&targets), read.run(&targets), scan)
}

fn load_of(operation: Operation, length: Option<Duration>, pace: Option<Duration>) -> Load {
    Load {
        operation,
        values: Values::Distinct(VALUE_BYTES),
        in_flight: 1,
        length,
        pace,
    }
}

fn print(name: &str, alone: &[f64], scanned: &[f64]) {
    let median = |figures: &[f64]| median(figures).unwrap_or(f64::NAN);
    let (alone, scanned) = (median(alone), median(scanned));
    println!(
        "{name:<6} median of p99: without {alone:>7.2} ms, with a scan {scanned:>7.2} ms: {:.2} times, at most {MOST} wanted",
        scanned / alone
    );
}
