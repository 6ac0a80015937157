//! SlateDB alone: the cost of a merge in batches of several sizes, including flushes and compactions, and of a get.
//!
//! SlateDB runs on a local folder with its default settings. Batches do not wait for durability; SlateDB's write-ahead log is written every
//! 100 ms, its default. Keys have 46 B and are uniformly random; values have 256 incompressible bytes. The CPU time is that of the whole
//! process. The cost of generating rows is measured first and subtracted.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use bytes::Bytes;
use clap::Parser;
use object_store::local::LocalFileSystem;
use rand::rngs::SmallRng;
use rand::{Rng, RngCore, SeedableRng};
use slatedb::{Db, MergeOperator, MergeOperatorError, WriteBatch};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[derive(Parser, Debug, Clone)]
#[command(about = "What SlateDB alone takes of the CPU for a merge and a get")]
struct Args {
    /// Rows per batch; several sizes are measured one after the other, each in its own database
    #[arg(long, value_delimiter = ',', default_values_t = [1, 16, 64, 1000])]
    batch: Vec<u64>,
    /// Rows written to each database
    #[arg(long, default_value_t = 1_000_000)]
    rows: u64,
    /// Distinct keys
    #[arg(long, default_value_t = 500_000)]
    keys: u64,
    #[arg(long, default_value_t = 256)]
    value_bytes: usize,
    /// Concurrent tasks that write or read
    #[arg(long, default_value_t = 8)]
    tasks: u64,
    /// Number of gets after the writes
    #[arg(long, default_value_t = 500_000)]
    gets: u64,
}

struct LastWins;

impl MergeOperator for LastWins {
    fn merge(
        &self,
        _key: &Bytes,
        _existing: Option<Bytes>,
        operand: Bytes,
    ) -> std::result::Result<Bytes, MergeOperatorError> {
        Ok(operand)
    }

    fn merge_batch(
        &self,
        _key: &Bytes,
        existing: Option<Bytes>,
        operands: &[Bytes],
    ) -> std::result::Result<Bytes, MergeOperatorError> {
        Ok(operands.last().cloned().or(existing).unwrap_or_default())
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    let making = making_us(&args);
    println!("making a row: {making:.2} µs of CPU, taken off below");
    println!(
        "{:>10} {:>14} {:>16} {:>14} {:>16}",
        "batch", "merges/s", "CPU µs a merge", "gets/s", "CPU µs a get"
    );
    for &batch in &args.batch {
        measure(&args, batch.max(1), making).await?;
    }
    Ok(())
}

fn making_us(args: &Args) -> f64 {
    let mut random = SmallRng::seed_from_u64(1);
    let rows = 200_000;
    let before = cpu();
    for _ in 0..rows {
        std::hint::black_box(row(args, &mut random));
    }
    micros_each(cpu() - before, rows)
}

async fn measure(args: &Args, batch: u64, making_us: f64) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let store = Arc::new(LocalFileSystem::new_with_prefix(folder.path())?);
    let db = Db::builder("baseline", store)
        .with_merge_operator(Arc::new(LastWins))
        .build()
        .await?;
    let (began, before) = (Instant::now(), cpu());
    each_task(args.tasks, |task| write(args.clone(), batch, db.clone(), task)).await?;
    db.flush().await?;
    let (took, spent) = (began.elapsed(), cpu() - before);
    let merge_us = micros_each(spent, args.rows) - making_us;
    let (began, before) = (Instant::now(), cpu());
    each_task(args.tasks, |task| get(args.clone(), db.clone(), task)).await?;
    let (took_to_get, spent_to_get) = (began.elapsed(), cpu() - before);
    println!(
        "{batch:>10} {:>14.0} {merge_us:>16.2} {:>14.0} {:>16.2}",
        args.rows as f64 / took.as_secs_f64(),
        args.gets as f64 / took_to_get.as_secs_f64(),
        micros_each(spent_to_get, args.gets),
    );
    db.close().await?;
    Ok(())
}

/// Runs tasks concurrently to their end.
async fn each_task<F>(tasks: u64, task: impl Fn(u64) -> F) -> Result<()>
where
    F: Future<Output = Result<()>> + Send + 'static,
{
    let running: Vec<_> = (0..tasks).map(|at| tokio::spawn(task(at))).collect();
    for running in running {
        running.await.map_err(|error| anyhow!("{error}"))??;
    }
    Ok(())
}

async fn write(args: Args, batch: u64, db: Db, task: u64) -> Result<()> {
    let mut random = SmallRng::seed_from_u64(task);
    for _ in 0..args.rows / args.tasks / batch {
        let mut rows = WriteBatch::new();
        for _ in 0..batch {
            let (key, value) = row(&args, &mut random);
            rows.merge(key, value);
        }
        db.write(rows).await?;
    }
    Ok(())
}

async fn get(args: Args, db: Db, task: u64) -> Result<()> {
    let mut random = SmallRng::seed_from_u64(task);
    for _ in 0..args.gets / args.tasks {
        let key = key(random.random_range(0..args.keys));
        std::hint::black_box(db.get(key).await?);
    }
    Ok(())
}

fn key(number: u64) -> Bytes {
    // The hash scatters rows, as tokens do.
    format!("{:08x}{number:038}", (number as u32).wrapping_mul(0x9E37_79B9)).into()
}

fn row(args: &Args, random: &mut SmallRng) -> (Bytes, Bytes) {
    let mut value = vec![0; args.value_bytes];
    random.fill_bytes(&mut value);
    (key(random.random_range(0..args.keys)), value.into())
}

/// Returns the CPU time of this process.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The command's name is in parentheses and may contain any characters.
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks: u64 = fields
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<u64>().ok())
        .sum();
    Duration::from_millis(ticks * 10)
}

fn micros_each(cpu: Duration, count: u64) -> f64 {
    cpu.as_secs_f64() * 1e6 / count.max(1) as f64
}
