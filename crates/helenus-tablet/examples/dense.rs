//! Report B: much more data than cache. Loads rows with uniformly random keys, then reads uniformly, then reads while others are
//! written over.
//!
//! `cargo run --release -p helenus-tablet --example dense -- --help`
//!
//! The load is shown in intervals, with their spread. Block reads are those that the block cache did not answer.

mod support;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use clap::Parser;
use helenus_tablet::{Store, StoreConfig, StoreUrl, WriteBatch};
use support::{Latencies, Memory, Partition, ROWS, mix, noise, now_us, upsert};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const TASKS: u64 = 32;
const INTERVAL: Duration = Duration::from_secs(2);

struct Load {
    store: Arc<Store>,
    rows: u64,
    value_len: usize,
    batch: u64,
    next: AtomicU64,
    done: AtomicU64,
    stop: AtomicBool,
}

fn row(number: u64) -> (i64, Bytes) {
    // 50 bytes, as published.
    let partition = Partition::new(&format!("{:050}", mix(number)));
    (partition.token, partition.single_row())
}

impl Load {
    fn write_into(&self, batch: &mut WriteBatch, number: u64, seed: u64) {
        let (token, key) = row(number);
        batch.merge(token, key, upsert(now_us(), noise(seed, self.value_len)));
    }

    /// Writes rows that nobody has written yet, until there are enough; `rate` of all tasks a second, or as many as it takes.
    async fn load(&self, started: Instant, rate: Option<f64>) {
        loop {
            let first = self.next.fetch_add(self.batch, Ordering::Relaxed);
            if first >= self.rows {
                return;
            }
            if let Some(rate) = rate {
                let due = started + Duration::from_secs_f64(first as f64 / rate);
                tokio::time::sleep_until(due.into()).await;
            }
            let mut batch = WriteBatch::new();
            for number in first..(first + self.batch).min(self.rows) {
                self.write_into(&mut batch, number, number);
            }
            let rows = batch.ops.len() as u64;
            self.store.write(batch, true).await.unwrap();
            self.done.fetch_add(rows, Ordering::Relaxed);
        }
    }

    async fn overwrite(&self, rate: u64, task: u64) {
        let started = Instant::now();
        for turn in 0.. {
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            let number = turn * TASKS + task;
            let due = Duration::from_secs_f64((number * self.batch) as f64 / rate as f64);
            tokio::time::sleep_until((started + due).into()).await;
            let mut batch = WriteBatch::new();
            for part in 0..self.batch {
                let seed = mix(number * self.batch + part + (1 << 50));
                self.write_into(&mut batch, seed % self.rows, seed);
            }
            self.store.write(batch, true).await.unwrap();
        }
    }

    async fn read(&self, task: u64, until: Instant) -> Latencies {
        let mut latencies = Latencies::default();
        for turn in 0.. {
            let called = Instant::now();
            if called >= until {
                break;
            }
            let (token, key) = row(mix(turn * TASKS + task + (1 << 40)) % self.rows);
            let found = self.store.tablet(token).unwrap().get(&key).await.unwrap();
            assert!(found.is_some(), "a row is missing");
            latencies.add(called.elapsed());
        }
        latencies
    }
}

async fn reads(name: &str, load: &Arc<Load>, seconds: u64) {
    let (before, cpu, started) = (load.store.stats(), support::cpu(), Instant::now());
    let until = started + Duration::from_secs(seconds);
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let load = load.clone();
            tokio::spawn(async move { load.read(task, until).await })
        })
        .collect();
    let mut latencies = Latencies::default();
    for task in tasks {
        latencies.extend(task.await.unwrap());
    }
    let (after, count) = (load.store.stats(), latencies.len() as f64);
    let shape: Vec<_> = after
        .tablets
        .iter()
        .map(|tablet| (tablet.level0_files, tablet.sorted_runs))
        .collect();
    println!(
        "{name:28} {:>8.0}/s  cpu {:>6.1} us/op  p50 {:>6.0}  p99 {:>6.0}  p99.9 {:>7.0} us  block reads {:.3}/op  index and filter reads {:.3}/op  files and runs {shape:?}",
        count / started.elapsed().as_secs_f64(),
        (support::cpu() - cpu).as_secs_f64() * 1e6 / count,
        latencies.at(0.5),
        latencies.at(0.99),
        latencies.at(0.999),
        (after.block_reads - before.block_reads) as f64 / count,
        (after.index_reads - before.index_reads) as f64 / count,
    );
}

/// Much more data than cache: rows are loaded under random keys, then read, then read while others are written over
#[derive(Parser, Debug)]
struct Args {
    /// Rows
    #[arg(long, default_value_t = 8_000_000)]
    rows: u64,
    /// Length of a value in bytes
    #[arg(long, default_value_t = 256)]
    value: usize,
    /// Rows of a batch
    #[arg(long, default_value_t = 10)]
    batch: u64,
    /// Rows loaded a second; as many as 32 tasks write if not given
    #[arg(long)]
    load_rate: Option<f64>,
    /// Rows written over a second
    #[arg(long, default_value_t = 10_000)]
    rate: u64,
    /// Seconds of each measurement of reads
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// Threads that flush and compact
    #[arg(long)]
    background_threads: Option<usize>,
    #[command(flatten)]
    memory: Memory,
    /// Folder of the data; emptied
    #[arg(long)]
    path: Option<PathBuf>,
}

#[tokio::main]
async fn main() {
    let Args {
        rows,
        value: value_len,
        batch,
        load_rate,
        rate,
        seconds,
        background_threads,
        memory,
        path,
    } = Args::parse();
    let path = path.unwrap_or_else(|| std::env::temp_dir().join("helenus-dense"));
    let mut config = StoreConfig::new(StoreUrl::File(path.clone()));
    config.block_cache_bytes = 96 << 20;
    config.row_cache_bytes = 16 << 20;
    memory.set(&mut config);
    config.background_threads = background_threads.unwrap_or(config.background_threads);
    let _ = std::fs::remove_dir_all(&path);
    let cache_bytes = config.block_cache_bytes + config.row_cache_bytes;
    let store = Store::open(config, Arc::new(ROWS)).await.unwrap();
    let load = Arc::new(Load {
        store: store.clone(),
        rows,
        value_len,
        batch,
        next: AtomicU64::new(0),
        done: AtomicU64::new(0),
        stop: AtomicBool::new(false),
    });
    fill(&load, load_rate).await;
    store.flush().await.unwrap();
    let data = support::table_bytes(&path);
    println!(
        "{} MiB on disk, {:.0} times the caches; {} MiB compacted; rss {:?} MiB",
        data >> 20,
        data as f64 / cache_bytes as f64,
        store.stats().compacted_bytes >> 20,
        support::resident_mib()
    );
    reads("reads after the load", &load, seconds).await;
    let settled = support::settle(&store, Duration::from_secs(120)).await;
    reads(&format!("reads, settled in {settled:.0?}"), &load, seconds).await;
    let writers: Vec<_> = (0..TASKS)
        .map(|task| {
            let load = load.clone();
            tokio::spawn(async move { load.overwrite(rate, task).await })
        })
        .collect();
    for part in 1..=3 {
        reads(&format!("reads amid overwrites, {part}"), &load, seconds).await;
    }
    load.stop.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.unwrap();
    }
    reads("reads after overwrites", &load, seconds).await;
    let settled = support::settle(&store, Duration::from_secs(120)).await;
    reads(&format!("reads, settled in {settled:.0?}"), &load, seconds).await;
    store.close().await.unwrap();
    let _ = std::fs::remove_dir_all(&path);
}

/// Loads all rows, and shows how evenly.
async fn fill(load: &Arc<Load>, rate: Option<f64>) {
    let (started, cpu) = (Instant::now(), support::cpu());
    let tasks: Vec<_> = (0..TASKS)
        .map(|_| {
            let load = load.clone();
            tokio::spawn(async move { load.load(started, rate).await })
        })
        .collect();
    let mut rates = Vec::new();
    while load.done.load(Ordering::Relaxed) < load.rows {
        let (before, at) = (load.done.load(Ordering::Relaxed), Instant::now());
        tokio::time::sleep(INTERVAL).await;
        rates.push((load.done.load(Ordering::Relaxed) - before) as f64 / at.elapsed().as_secs_f64());
    }
    for task in tasks {
        task.await.unwrap();
    }
    // The last interval is not whole.
    rates.pop();
    println!(
        "loaded at {:.0} rows/s, {:.1} us of cpu a row; each 2 s, in thousands: {}",
        load.rows as f64 / started.elapsed().as_secs_f64(),
        (support::cpu() - cpu).as_secs_f64() * 1e6 / load.rows as f64,
        rates
            .iter()
            .map(|rate| format!("{:.0} ", rate / 1e3))
            .collect::<String>()
    );
    let mut sorted = rates.clone();
    sorted.sort_by(f64::total_cmp);
    let at = |q: f64| sorted.get(((sorted.len() as f64 * q) as usize).min(sorted.len().saturating_sub(1)));
    let third = rates.len() / 3;
    let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len().max(1) as f64;
    println!(
        "    least {:.0}, median {:.0}, greatest {:.0}; the last third at {:.2} of the first",
        at(0.0).unwrap_or(&0.0),
        at(0.5).unwrap_or(&0.0),
        at(1.0).unwrap_or(&0.0),
        mean(&rates[rates.len() - third..]) / mean(&rates[..third])
    );
}
