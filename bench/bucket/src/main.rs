//! Measures nodes whose data is in an object store.
//!
//! The object store is a stand-in in this program ([`s3`]). It answers each request after a fixed time, and uses little of the cores, which
//! nodes, store and load share. `--endpoint` measures on another object store, such as MinIO.

mod cache;
mod cost;
mod engines;
mod frames;
mod join;
mod kafka;
mod latency;
mod load;
mod log;
mod node;
mod objects;
mod puts;
mod readers;
mod response_delay;
mod s3;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[derive(Parser, Debug)]
#[command(about = "What nodes cost on an object store")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Reads of data many times larger than the memory caches: a bucket with a disk cache, beside a folder
    Cache(cache::Options),
    /// Requests to the bucket by the number of tablets, during writes and when idle
    Puts(puts::Options),
    /// Durable writes: a bucket that answers after a fixed time, beside a local folder
    Latency(latency::Options),
    /// Durable writes with the log in a Kafka topic, beside Kafka's own client, the log in the bucket, and a folder
    Log(log::Options),
    /// CPU time of a request and nodes that it touches, by the number of nodes
    Cost(cost::Options),
    /// CPU time of a request on three nodes of a bucket, beside one node with a folder
    Engines(engines::Options),
    /// Bytes that a joining node reads from the bucket, and the tablets that move to it
    Join(join::Options),
    /// Latency of a node's requests while a read-only node scans the whole table and a compactor compacts
    Readers(readers::Options),
    /// Run only the stand-in for an object store
    Store(StoreOptions),
}

/// Options of all measurements.
#[derive(Args, Debug, Clone)]
pub struct Common {
    /// The helenus binary
    #[arg(long, default_value = "target/release/helenus")]
    pub helenus: PathBuf,
    /// Milliseconds after which the stand-in answers
    #[arg(long, default_value_t = 5)]
    pub delay_ms: u64,
    /// An S3 server to use instead of the stand-in; its bucket and AWS's usual variables must exist
    #[arg(long, requires = "bucket")]
    pub endpoint: Option<String>,
    /// The empty bucket of that server, with an optional prefix
    #[arg(long)]
    pub bucket: Option<String>,
    /// A setting of the nodes; may be given several times
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
}

#[derive(Args, Debug)]
pub struct StoreOptions {
    #[arg(long)]
    listen: SocketAddr,
    /// Milliseconds after which each request is answered
    #[arg(long, default_value_t = 0)]
    delay_ms: u64,
    /// Folder for large objects [default: in memory]
    #[arg(long)]
    folder: Option<PathBuf>,
}

fn main() -> Result<()> {
    let cli = Cli::parse();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    match cli.command {
        Command::Store(options) => runtime.block_on(s3::serve(
            options.listen,
            Duration::from_millis(options.delay_ms),
            options.folder,
        )),
        Command::Latency(options) => runtime.block_on(latency::run(options)),
        Command::Log(options) => runtime.block_on(log::run(options)),
        Command::Cache(options) => runtime.block_on(cache::run(options)),
        Command::Puts(options) => runtime.block_on(puts::run(options)),
        Command::Readers(options) => runtime.block_on(readers::run(options)),
        Command::Cost(options) => runtime.block_on(cost::run(options)),
        Command::Engines(options) => runtime.block_on(engines::run(options)),
        Command::Join(options) => runtime.block_on(join::run(options)),
    }
}
