//! The queue pattern: rows are written to a partition, most are deleted from the front, the first ones left are read. Beside it, a
//! partition from which nothing was deleted.
//!
//! `cargo run --release -p helenus-tablet --example queue -- --help`

mod support;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Parser;
use helenus_tablet::{Store, StoreConfig, StoreUrl, WriteBatch};
use support::{Latencies, Partition, ROWS, delete, noise, now_us, upsert};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

async fn read(name: &str, store: &Store, partition: &str, limit: usize, reads: usize) {
    let partition = Partition::new(partition);
    let mut latencies = Latencies::default();
    let (cpu, now_s) = (support::cpu(), now_us().div_euclid(1_000_000));
    let mut found = (0, 0);
    for _ in 0..reads {
        let called = Instant::now();
        found = partition.slice(store, limit, now_s).await;
        latencies.add(called.elapsed());
    }
    println!(
        "{name:44} {:>3} rows, {:>5} tombstones  cpu {:>7.1} us  p50 {:>7.1}  p99 {:>7.1} us",
        found.0,
        found.1,
        (support::cpu() - cpu).as_secs_f64() * 1e6 / reads as f64,
        latencies.at(0.5),
        latencies.at(0.99)
    );
}

/// The queue pattern, beside a partition from which nothing was deleted
#[derive(Parser, Debug)]
struct Args {
    /// Rows written to each partition
    #[arg(long, default_value_t = 2000)]
    rows: u32,
    /// Rows deleted from the front of one
    #[arg(long, default_value_t = 1900)]
    deleted: u32,
    /// Rows of a read
    #[arg(long, default_value_t = 100)]
    limit: usize,
    /// Reads of a measurement
    #[arg(long, default_value_t = 1000)]
    reads: usize,
    /// Folder of the data; emptied
    #[arg(long)]
    path: Option<PathBuf>,
}

#[tokio::main]
async fn main() {
    let Args {
        rows,
        deleted,
        limit,
        reads,
        path,
    } = Args::parse();
    let path = path.unwrap_or_else(|| std::env::temp_dir().join("helenus-queue"));
    let _ = std::fs::remove_dir_all(&path);
    let config = StoreConfig::new(StoreUrl::File(path.clone()));
    let store = Store::open(config, Arc::new(ROWS)).await.unwrap();
    for name in ["queue", "plain"] {
        let partition = Partition::new(name);
        for row in 0..rows {
            let mut batch = WriteBatch::new();
            let value = upsert(now_us(), noise(u64::from(row), 100));
            batch.merge(partition.token, partition.row(row), value);
            store.write(batch, true).await.unwrap();
        }
    }
    let queue = Partition::new("queue");
    for row in 0..deleted {
        let mut batch = WriteBatch::new();
        batch.merge(queue.token, queue.row(row), delete(now_us()));
        store.write(batch, true).await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    read("nothing deleted", &store, "plain", limit, reads).await;
    read("queue, in memory", &store, "queue", limit, reads).await;
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(40) {
        tokio::time::sleep(Duration::from_secs(5)).await;
        let name = format!("queue, read for {} s", started.elapsed().as_secs());
        read(&name, &store, "queue", limit, reads.min(100)).await;
    }
    read("queue, compacted", &store, "queue", limit, reads).await;
    read("nothing deleted, compacted", &store, "plain", limit, reads).await;
    store.close().await.unwrap();
    let _ = std::fs::remove_dir_all(&path);
}
