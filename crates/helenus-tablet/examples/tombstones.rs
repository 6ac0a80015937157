//! Report E: partitions of 13 slots, of the mutations 75% delete a random slot and the rest write it, reads take the whole slice.
//!
//! `cargo run --release -p helenus-tablet --example tombstones -- --help`
//!
//! Bytes on disk are those of SSTables; live bytes are the keys and values of the rows that are alive. Latencies
//! count from the call.

mod support;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use helenus_tablet::{Store, StoreConfig, StoreUrl, WriteBatch};
use support::{Latencies, Memory, Partition, ROWS, delete, mix, noise, now_us, upsert};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const SLOTS: u64 = 13;
const TASKS: u64 = 16;

struct Load {
    store: Arc<Store>,
    products: u64,
    value_len: usize,
    delete_percent: u64,
    alive: Vec<AtomicBool>,
    alive_count: AtomicI64,
    clock_us: AtomicI64,
    mutations: AtomicU64,
    slices: AtomicU64,
    dead: AtomicU64,
    stop: AtomicBool,
}

impl Load {
    fn partition(&self, product: u64) -> Partition {
        Partition::new(&format!("product-{product:08}"))
    }

    fn timestamp(&self) -> i64 {
        let now = now_us();
        self.clock_us.fetch_max(now, Ordering::Relaxed);
        self.clock_us.fetch_add(1, Ordering::Relaxed)
    }

    fn set_alive(&self, slot: u64, alive: bool) {
        let was = self.alive[slot as usize].swap(alive, Ordering::Relaxed);
        self.alive_count
            .fetch_add(i64::from(alive) - i64::from(was), Ordering::Relaxed);
    }

    /// Writes a quarter of the slots.
    async fn populate(&self) {
        let mut batch = WriteBatch::new();
        for slot in 0..self.products * SLOTS {
            if !mix(slot).is_multiple_of(4) {
                continue;
            }
            let partition = self.partition(slot / SLOTS);
            let key = partition.row((slot % SLOTS) as u32);
            batch.merge(
                partition.token,
                key,
                upsert(self.timestamp(), noise(slot, self.value_len)),
            );
            self.set_alive(slot, true);
            if batch.ops.len() == 500 {
                self.store.write(std::mem::take(&mut batch), true).await.unwrap();
            }
        }
        self.store.write(batch, true).await.unwrap();
    }

    async fn mutate(&self, seed: u64) {
        let mut slot = mix(seed) % (self.products * SLOTS);
        let deletes = mix(seed ^ 0xdead) % 100 < self.delete_percent;
        if self.delete_percent == 0 {
            while !self.alive[slot as usize].load(Ordering::Relaxed) {
                slot = (slot + 1) % (self.products * SLOTS);
            }
        }
        let partition = self.partition(slot / SLOTS);
        let operand = match deletes {
            true => delete(self.timestamp()),
            false => upsert(self.timestamp(), noise(seed, self.value_len)),
        };
        let mut batch = WriteBatch::new();
        batch.merge(partition.token, partition.row((slot % SLOTS) as u32), operand);
        self.store.write(batch, true).await.unwrap();
        self.set_alive(slot, !deletes);
        self.mutations.fetch_add(1, Ordering::Relaxed);
    }

    async fn read(&self, seed: u64) {
        let partition = self.partition(mix(seed) % self.products);
        let now_s = now_us().div_euclid(1_000_000);
        let (_, dead) = partition.slice(&self.store, usize::MAX, now_s).await;
        self.slices.fetch_add(1, Ordering::Relaxed);
        self.dead.fetch_add(dead as u64, Ordering::Relaxed);
    }

    /// Calls `work` at `rate` a second in sum, or as often as possible, until it is to stop.
    async fn drive<F: Future<Output = ()>>(
        &self,
        rate: u64,
        task: u64,
        work: impl Fn(u64) -> F,
    ) -> Latencies {
        let mut latencies = Latencies::default();
        let started = Instant::now();
        for number in 0.. {
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            if rate > 0 {
                let due = Duration::from_secs_f64((number * TASKS + task) as f64 / rate as f64);
                tokio::time::sleep_until((started + due).into()).await;
            }
            let called = Instant::now();
            work(number * TASKS + task).await;
            latencies.add(called.elapsed());
        }
        latencies
    }
}

/// Partitions of 13 slots: of the mutations most delete a random slot and the rest write it, reads take the whole slice
#[derive(Parser, Debug)]
struct Args {
    /// Partitions
    #[arg(long, default_value_t = 500_000)]
    products: u64,
    /// Seconds of the measurement
    #[arg(long, default_value_t = 120)]
    seconds: u64,
    /// Mutations a second; 0: as many as 16 tasks make
    #[arg(long, default_value_t = 5_000)]
    rate: u64,
    /// Slices read a second; 0: as many as 16 tasks make
    #[arg(long, default_value_t = 5_000)]
    reads: u64,
    /// Length of a value in bytes
    #[arg(long, default_value_t = 150)]
    value: usize,
    /// Percentage of mutations that delete; 0: the slots that are alive are written over and over
    #[arg(long, default_value_t = 75)]
    deletes: u64,
    #[command(flatten)]
    memory: Memory,
    /// Folder of the data; emptied
    #[arg(long)]
    path: Option<PathBuf>,
}

#[tokio::main]
async fn main() {
    let Args {
        products,
        seconds,
        rate,
        reads,
        value: value_len,
        deletes: delete_percent,
        memory,
        path,
    } = Args::parse();
    let path = path.unwrap_or_else(|| std::env::temp_dir().join("helenus-tombstones"));
    let mut config = StoreConfig::new(StoreUrl::File(path.clone()));
    memory.set(&mut config);
    let _ = std::fs::remove_dir_all(&path);
    let store = Store::open(config, Arc::new(ROWS)).await.unwrap();
    let load = Arc::new(Load {
        store: store.clone(),
        products,
        value_len,
        delete_percent,
        alive: (0..products * SLOTS).map(|_| AtomicBool::new(false)).collect(),
        alive_count: AtomicI64::new(0),
        clock_us: AtomicI64::new(0),
        mutations: AtomicU64::new(0),
        slices: AtomicU64::new(0),
        dead: AtomicU64::new(0),
        stop: AtomicBool::new(false),
    });
    load.populate().await;
    store.flush().await.unwrap();
    let settled = support::settle(&store, Duration::from_secs(120)).await;
    println!("{products} products populated and settled in {settled:?}");
    report(&load, &path, 0.0, (0, 0, 0));

    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let (writer, reader) = (load.clone(), load.clone());
            let writes = tokio::spawn(async move { writer.drive(rate, task, |n| writer.mutate(n)).await });
            let reads =
                tokio::spawn(async move { reader.drive(reads, task, |n| reader.read(n ^ (1 << 40))).await });
            (writes, reads)
        })
        .collect();
    let started = Instant::now();
    let cpu_before = support::cpu();
    let mut sums = Sums::default();
    while started.elapsed() < Duration::from_secs(seconds) {
        let before = load.counts();
        tokio::time::sleep(Duration::from_secs(5)).await;
        let ratio = report(&load, &path, started.elapsed().as_secs_f64(), before);
        if started.elapsed() > Duration::from_secs(seconds / 3) {
            let after = load.counts();
            sums.add(after.1 - before.1, after.2 - before.2, ratio);
        }
    }
    load.stop.store(true, Ordering::Relaxed);
    let (mut writes, mut reads) = (Latencies::default(), Latencies::default());
    for (writer, reader) in tasks {
        writes.extend(writer.await.unwrap());
        reads.extend(reader.await.unwrap());
    }
    let cpu = (support::cpu() - cpu_before).as_secs_f64() / started.elapsed().as_secs_f64();
    for (name, mut latencies) in [("mutations", writes), ("slices", reads)] {
        println!(
            "{name:10} {:>8.0}/s  p50 {:>6.0}  p99 {:>7.0}  p99.9 {:>7.0} us",
            latencies.len() as f64 / started.elapsed().as_secs_f64(),
            latencies.at(0.5),
            latencies.at(0.99),
            latencies.at(0.999)
        );
    }
    println!(
        "last two thirds: {:.3} tombstones a slice, disk/live mean {:.2} max {:.2}; {cpu:.2} cores; peak {} MiB; {} MiB compacted",
        sums.dead as f64 / sums.slices.max(1) as f64,
        sums.ratios.iter().sum::<f64>() / sums.ratios.len().max(1) as f64,
        sums.ratios.iter().copied().fold(0.0, f64::max),
        support::resident_mib().1,
        store.stats().compacted_bytes >> 20,
    );
    store.flush().await.unwrap();
    tokio::time::sleep(Duration::from_secs(15)).await;
    let settled = support::settle(&store, Duration::from_secs(120)).await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    println!("stopped and settled in {settled:?}");
    report(&load, &path, started.elapsed().as_secs_f64(), load.counts());
    store.close().await.unwrap();
    let _ = std::fs::remove_dir_all(&path);
}

#[derive(Default)]
struct Sums {
    slices: u64,
    dead: u64,
    ratios: Vec<f64>,
}

impl Sums {
    fn add(&mut self, slices: u64, dead: u64, ratio: f64) {
        self.slices += slices;
        self.dead += dead;
        self.ratios.push(ratio);
    }
}

impl Load {
    fn counts(&self) -> (u64, u64, u64) {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (get(&self.mutations), get(&self.slices), get(&self.dead))
    }

    /// Key and value bytes of the rows that are alive.
    fn live_bytes(&self) -> u64 {
        let partition = self.partition(0);
        let row = partition.row(0).len() + upsert(now_us(), noise(0, self.value_len)).len();
        self.alive_count.load(Ordering::Relaxed).max(0) as u64 * row as u64
    }
}

/// Prints where things stand; returns bytes on disk over live bytes.
fn report(load: &Load, path: &std::path::Path, at: f64, before: (u64, u64, u64)) -> f64 {
    let after = load.counts();
    let stats = load.store.stats();
    let live = load.live_bytes();
    let reachable: u64 = stats.tablets.iter().map(|tablet| tablet.data_bytes).sum();
    let on_disk = support::table_bytes(path);
    let shape: Vec<_> = stats
        .tablets
        .iter()
        .map(|tablet| (tablet.level0_files, tablet.sorted_runs))
        .collect();
    let ratio = on_disk as f64 / live.max(1) as f64;
    println!(
        "{at:6.1} s  {:>7} mutations  {:>7} slices  {:>6.3} tombstones a slice  live {:>5} MiB  reachable {:.2}  on disk {ratio:.2}  files and runs {shape:?}  {} compacting  rss {} MiB",
        after.0 - before.0,
        after.1 - before.1,
        (after.2 - before.2) as f64 / (after.1 - before.1).max(1) as f64,
        live >> 20,
        reachable as f64 / live.max(1) as f64,
        stats.compactions_running,
        support::resident_mib().0,
    );
    ratio
}
