//! Reads of data that is many times larger than the memory caches: a node on a bucket with a disk cache, beside a node on a folder.
//!
//! The rows are written and flushed. Then they are read at random; a first read of all rows warms the caches. The bucket's node is then
//! restarted and measured again. The GETs are all those of the node during the measurement.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use clap::Args;

use crate::Common;
use crate::load::{self, Keys, Load, Operation, Values};
use crate::node::{Node, Store};

const VALUE_BYTES: usize = 1000;
const IN_FLIGHT: usize = 64;

#[derive(Args, Debug)]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// Rows of an incompressible kilobyte
    #[arg(long, default_value_t = 200_000)]
    keys: u64,
    /// Seconds of each measurement
    #[arg(long, default_value_t = 8)]
    seconds: u64,
}

pub async fn run(options: Options) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut common = options.common.clone();
    // The block cache holds at most a tenth of the data.
    let block_cache_bytes = options.keys * VALUE_BYTES as u64 / 12;
    common.set.extend([
        format!("block_cache_bytes={block_cache_bytes}"),
        "row_cache_bytes=0".to_owned(),
        "memtable_bytes=16MiB".to_owned(),
        format!("cache_dir={}", folder.path().join("cache").display()),
    ]);
    let options = Options { common, ..options };
    println!(
        "{} MB of rows, {} MB of block cache",
        options.keys * VALUE_BYTES as u64 / 1_000_000,
        block_cache_bytes / 1_000_000
    );
    let local_store = folder.path().join("local");
    let node = Node::local(&options.common, 1, &local_store, folder.path())?;
    let writes = || load_of(Operation::Write, None);
    load::fill_and_stop(node, options.keys, writes()).await?;
    let node = Node::local(&options.common, 1, &local_store, folder.path())?;
    measure(&options, node, "folder").await?;

    let store = Store::start(&options.common, None)?;
    let start = |log: &Path| Node::shared(&options.common, 1, &store, log);
    load::fill_and_stop(start(folder.path())?, options.keys, writes()).await?;
    measure(&options, start(folder.path())?, "bucket").await?;
    measure(&options, start(folder.path())?, "bucket, after a restart").await
}

async fn measure(options: &Options, mut node: Node, name: &str) -> Result<()> {
    node.wait_until_ready().await?;
    let warm = [(node.cql.clone(), Keys::each(options.keys))];
    load_of(Operation::Read, None).run(&warm).await?;
    let targets = [(node.cql.clone(), Keys::Any(0..options.keys))];
    let length = Duration::from_secs(options.seconds);
    let (cpu, gets) = (node.cpu_time()?, node.bucket_gets()?);
    let outcome = load_of(Operation::Read, Some(length)).run(&targets).await?;
    let used = node.cpu_time()?.saturating_sub(cpu);
    let gets = node.bucket_gets()? - gets;
    let operations = outcome.operations.max(1) as f64;
    println!(
        "{name:<26} {:>7.0}/s  p50 {:>6.2}  p99 {:>6.2}  max {:>7.2} ms  CPU {:>6.1} us  {:.5} GETs a read",
        outcome.operations_per_s(),
        outcome.quantile_ms(0.5),
        outcome.quantile_ms(0.99),
        outcome.quantile_ms(1.0),
        used.as_secs_f64() * 1e6 / operations,
        gets / operations
    );
    node.terminate()
}

fn load_of(operation: Operation, length: Option<Duration>) -> Load {
    Load {
        operation,
        values: Values::Distinct(VALUE_BYTES),
        in_flight: IN_FLIGHT,
        length,
        pace: None,
    }
}
