//! Measures the storage floor alone: durable writes and reads, with 64 tasks (or `--tasks N`), keys of 50 B, values of 256 B.
//!
//! `cargo run --release -p helenus-tablet --example tablet_bench -- --help`
//!
//! CPU time is the whole process', load generation included.

#[path = "../tests/integration/plain_model.rs"]
mod plain_model;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use clap::Parser;
use helenus_tablet::{Store, StoreConfig, StoreUrl, WriteBatch, set_memory_store};
use object_store::memory::InMemory;
use object_store::throttle::{ThrottleConfig, ThrottledStore};
use plain_model::PlainModel;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// A data model in which the last write wins. Keys have 50 bytes, all of which name the partition.
const LAST_WINS: PlainModel = PlainModel {
    partition_prefix_len: |key| (key.len() >= 50).then_some(50),
    ..PlainModel::new(|_, existing, operands| Ok(operands.last().or(existing).cloned().unwrap_or_default()))
};

/// The storage floor alone: writes, reads and scans of small rows
#[derive(Parser, Debug)]
struct Args {
    /// Seconds of each measurement
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Tasks that do one thing after the other
    #[arg(long, default_value_t = 64)]
    tasks: usize,
    /// Rows
    #[arg(long, default_value_t = 1_000_000)]
    rows: u64,
    /// Folder of the data; emptied
    #[arg(long)]
    path: Option<PathBuf>,
    /// Without a row cache
    #[arg(long)]
    no_row_cache: bool,
    /// Write under random keys, not in order
    #[arg(long)]
    random: bool,
    /// The store lies in an object store in memory that takes so many milliseconds for each request
    #[arg(long, value_name = "MS")]
    bucket_ms: Option<u64>,
}

fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn key(number: u64) -> (i64, Bytes) {
    let token = mix(number) as i64;
    let mut key = Vec::with_capacity(50);
    key.extend_from_slice(&7u32.to_be_bytes());
    key.extend_from_slice(&((token as u64) ^ (1 << 63)).to_be_bytes());
    key.extend_from_slice(format!("{number:037}").as_bytes());
    key.push(2);
    (token, key.into())
}

fn value(seed: u64) -> Bytes {
    let mut value = Vec::with_capacity(256);
    for part in 0..32 {
        value.extend_from_slice(&mix(seed.wrapping_mul(32) + part).to_le_bytes());
    }
    value.into()
}

fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}

fn resident_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

/// Waits for compactions to end.
async fn settle(store: &Store) {
    let started = Instant::now();
    let mut quiet = 0;
    while quiet < 5 && started.elapsed() < Duration::from_secs(60) {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let stats = store.stats();
        let busy =
            stats.compactions_running > 0 || stats.tablets.iter().any(|tablet| tablet.level0_files >= 4);
        quiet = if busy { 0 } else { quiet + 1 };
    }
    let cpu_before = cpu();
    tokio::time::sleep(Duration::from_secs(2)).await;
    println!(
        "    settled after {:?}; idle cpu {:.1} ms/s; level 0 files and runs {:?}",
        started.elapsed(),
        (cpu() - cpu_before).as_secs_f64() * 500.0,
        store
            .stats()
            .tablets
            .iter()
            .map(|tablet| (tablet.level0_files, tablet.sorted_runs))
            .collect::<Vec<_>>()
    );
}

async fn run<F>(name: &str, args: &Args, seconds: u64, work: impl Fn(u64) -> F + Send + Sync + 'static)
where
    F: Future<Output = u64> + Send,
{
    let work = Arc::new(work);
    let numbers = Arc::new(AtomicU64::new(0));
    let end = Instant::now() + Duration::from_secs(seconds);
    let (cpu_before, started) = (cpu(), Instant::now());
    let tasks: Vec<_> = (0..args.tasks)
        .map(|_| {
            let (work, numbers) = (work.clone(), numbers.clone());
            tokio::spawn(async move {
                let mut latencies = Vec::new();
                let mut done = 0;
                while Instant::now() < end {
                    let started = Instant::now();
                    done += work(numbers.fetch_add(1, Ordering::Relaxed)).await;
                    latencies.push(started.elapsed().as_nanos() as u64);
                }
                (done, latencies)
            })
        })
        .collect();
    let mut latencies = Vec::new();
    let mut done = 0;
    for task in tasks {
        let (count, more) = task.await.unwrap();
        done += count;
        latencies.extend(more);
    }
    let elapsed = started.elapsed();
    let used = cpu() - cpu_before;
    latencies.sort_unstable();
    let at = |q: f64| {
        latencies
            .get(((latencies.len() as f64 * q) as usize).min(latencies.len().saturating_sub(1)))
            .copied()
            .unwrap_or(0) as f64
            / 1e3
    };
    println!(
        "{name:32} {:>9.0}/s  cpu {:>6.2} us/op  p50 {:>7.0}  p99 {:>7.0}  p99.9 {:>7.0}  max {:>8.0} us  rss {} MiB",
        done as f64 / elapsed.as_secs_f64(),
        used.as_secs_f64() * 1e6 / done.max(1) as f64,
        at(0.5),
        at(0.99),
        at(0.999),
        at(1.0),
        resident_mib(),
    );
}

/// A bucket in memory that takes so long for each request.
fn bucket(wait: Duration) -> StoreUrl {
    let slow = ThrottleConfig {
        wait_delete_per_call: wait,
        wait_get_per_call: wait,
        wait_list_per_call: wait,
        wait_list_with_delimiter_per_call: wait,
        wait_put_per_call: wait,
        ..ThrottleConfig::default()
    };
    set_memory_store("bench", Arc::new(ThrottledStore::new(InMemory::new(), slow)));
    StoreUrl::parse("memory://bench").unwrap()
}

#[tokio::main]
async fn main() {
    let args = Args::parse();
    let path = args
        .path
        .clone()
        .unwrap_or_else(|| std::env::temp_dir().join("helenus-tablet-bench"));
    let _ = std::fs::remove_dir_all(&path);
    let url = match args.bucket_ms {
        Some(ms) => bucket(Duration::from_millis(ms)),
        None => StoreUrl::File(path.clone()),
    };
    let mut config = StoreConfig::new(url);
    if args.no_row_cache {
        config.row_cache_bytes = 0;
    }
    let store = Store::open(config.clone(), Arc::new(LAST_WINS)).await.unwrap();
    let (rows, seconds) = (args.rows, args.seconds);

    // Each key once, until there are `rows` of them; random ones with `--random`.
    let random = args.random;
    let write = move |store: Arc<Store>, rows: u64, durable: bool| {
        move |number: u64| {
            let store = store.clone();
            async move {
                let (token, key) = key(if random { mix(number) } else { number } % rows);
                let mut batch = WriteBatch::new();
                batch.merge(token, key, value(number));
                store.write(batch, durable).await.unwrap();
                1
            }
        }
    };
    run("durable writes", &args, seconds, write(store.clone(), rows, true)).await;
    let log = store.stats().log;
    println!(
        "    groups of {:.1}, sync {:.0} us",
        log.records as f64 / log.groups.max(1) as f64,
        log.sync_nanos as f64 / 1e3 / log.syncs.max(1) as f64
    );
    run(
        "writes, not durable",
        &args,
        seconds,
        write(store.clone(), rows, false),
    )
    .await;
    run(
        "durable overwrites of 1000 keys",
        &args,
        seconds,
        write(store.clone(), 1000, true),
    )
    .await;
    let batches = store.clone();
    run("durable batches of 100", &args, seconds, move |number| {
        let store = batches.clone();
        async move {
            let mut batch = WriteBatch::new();
            for part in 0..100 {
                let number = number * 100 + part;
                let (token, key) = key(if random { mix(number) } else { number } % rows);
                batch.merge(token, key, value(number));
            }
            store.write(batch, true).await.unwrap();
            100
        }
    })
    .await;
    settle(&store).await;
    let get = |store: Arc<Store>, rows: u64| {
        move |number: u64| {
            let store = store.clone();
            async move {
                // Several a call, so that the clock and the counters do not show.
                for part in 0..10 {
                    let (token, key) = key(mix(number * 10 + part) % rows);
                    std::hint::black_box(store.tablet(token).unwrap().get(&key).await.unwrap());
                }
                10
            }
        }
    };
    run("gets of all rows", &args, seconds, get(store.clone(), rows)).await;
    run("gets of 1000 rows", &args, seconds, get(store.clone(), 1000)).await;
    let scans = store.clone();
    run("scans of one partition", &args, seconds, move |number| {
        let store = scans.clone();
        async move {
            let (token, key) = key(mix(number) % rows);
            let end = Bytes::from([key.as_ref(), b"\xff"].concat());
            let mut scan = store.tablet(token).unwrap().scan(key..end, false).await.unwrap();
            while scan.next().await.unwrap().is_some() {}
            1
        }
    })
    .await;
    println!("{:?}", store.stats());
    drop(store);
    tokio::time::sleep(Duration::from_millis(500)).await;
    let started = Instant::now();
    let store = Store::open(config.clone(), Arc::new(LAST_WINS)).await.unwrap();
    println!(
        "opened in {:?}, {} records replayed",
        started.elapsed(),
        store.replayed_records()
    );
    let started = Instant::now();
    store.close().await.unwrap();
    println!("closed in {:?}", started.elapsed());
    drop(store);
    let started = Instant::now();
    let store = Store::open(config, Arc::new(LAST_WINS)).await.unwrap();
    println!(
        "opened in {:?}, {} records replayed",
        started.elapsed(),
        store.replayed_records()
    );
    store.close().await.unwrap();
    let _ = std::fs::remove_dir_all(&path);
}
