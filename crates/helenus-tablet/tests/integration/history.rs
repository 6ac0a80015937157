//! Reads as of earlier times: from the last cut pinned before a time, and the operations of the logs from there until that time.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use helenus_tablet::{HistoryPosition, HistoryUntil, PinnedTablet, Store, StoreConfig, StoreError};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::bucket;
use crate::support::{APPEND, dump, write};

const PATIENCE: Duration = Duration::from_secs(10);
const LONG: Duration = Duration::from_secs(60);
const KEYS: u64 = 12;

/// The rows of a store. A different number is appended by each write, so that missing and doubled writes are found.
type Rows = BTreeMap<String, String>;

/// Returns the rows with their numbers sorted. The operations of several logs on one row come in the order of the logs.
fn sorted(rows: &Rows) -> Rows {
    let sorted = |row: &String| {
        let mut numbers: Vec<&str> = row.split(',').collect();
        numbers.sort_unstable();
        numbers.join(",")
    };
    rows.iter()
        .map(|(name, row)| (name.clone(), sorted(row)))
        .collect()
}

/// A cut that was pinned.
struct Base {
    time_ms: i64,
    tablets: Vec<PinnedTablet>,
    positions: Vec<HistoryPosition>,
}

/// The expected history of some stores that share their tablets.
#[derive(Default)]
struct Known {
    rows: Rows,
    bases: Vec<Base>,
    /// Times, and the rows as of each.
    times: Vec<(i64, Rows)>,
    written: u64,
}

/// Returns a time later than that of all earlier commits, and earlier than that of later ones.
async fn now_ms() -> i64 {
    tokio::time::sleep(Duration::from_millis(3)).await;
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    tokio::time::sleep(Duration::from_millis(3)).await;
    since.as_millis() as i64
}

impl Known {
    async fn write(&mut self, store: &Store, name: String) {
        self.written += 1;
        let number = format!("{},", self.written);
        write(store, &name, &number).await;
        self.rows.entry(name).or_default().push_str(&number);
    }

    async fn note_time(&mut self) {
        self.times.push((now_ms().await, self.rows.clone()));
    }

    /// Pins a consistent cut of all stores, with the positions of all logs, including those that no store writes to.
    async fn pin(&mut self, stores: &[Arc<Store>]) {
        let mut positions = stores[0].history_positions().await.unwrap();
        let mut held = Vec::new();
        for store in stores {
            held.push(store.hold_cut(PATIENCE, LONG).await.unwrap());
        }
        let mut tablets = Vec::new();
        for held in held {
            if let Some(position) = held.position() {
                positions.retain(|other| other.log != position.log);
                positions.push(position);
            }
            tablets.extend(held.pinned().await.unwrap());
        }
        self.bases.push(Base {
            time_ms: now_ms().await,
            tablets,
            positions,
        });
    }

    /// Returns the rows as of a time. `None` if no cut was pinned before it.
    async fn read(&self, store: &Arc<Store>, time_ms: i64) -> Result<Option<Rows>, StoreError> {
        let Some(base) = self.bases.iter().rev().find(|base| base.time_ms <= time_ms) else {
            return Ok(None);
        };
        let tables = BTreeSet::from([0]);
        let limit = store.history_bytes_max()?;
        let found = store
            .history_since(&base.positions, &HistoryUntil::time(time_ms), &tables, limit)
            .await?;
        let then = store.open_pinned(&base.tablets).await?;
        then.add_to_pinned(found)?;
        Ok(Some(dump(&then).await.into_iter().collect()))
    }

    async fn check(&self, store: &Arc<Store>) {
        for (time_ms, rows) in &self.times {
            let Some(found) = self.read(store, *time_ms).await.unwrap() else {
                continue;
            };
            assert_eq!(sorted(&found), sorted(rows), "at {time_ms}");
        }
    }
}

fn config(path: &Path) -> StoreConfig {
    StoreConfig {
        keeps_history: true,
        log_segment_bytes: 64 << 10,
        ..StoreConfig::small(path)
    }
}

async fn open(path: &Path) -> Arc<Store> {
    Store::open(config(path), Arc::new(APPEND)).await.unwrap()
}

/// Writes bytes that fill segments of the log, in rows of their own.
async fn fill(store: &Store, known: &mut Known, random: &mut StdRng) {
    let name = format!("large{}", random.random_range(0..4));
    let large = "x".repeat(20_000);
    write(store, &name, &large).await;
    known.rows.entry(name).or_default().push_str(&large);
}

async fn flush(store: &Store) {
    for tablet in store.tablets().iter() {
        tablet.flush().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn folder_reads_any_time_across_flushes_and_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path()).await;
    let mut random = StdRng::seed_from_u64(7);
    let mut known = Known::default();
    known.pin(std::slice::from_ref(&store)).await;
    for step in 0..120 {
        match random.random_range(0..12) {
            0 => known.note_time().await,
            1 => known.pin(std::slice::from_ref(&store)).await,
            2 => flush(&store).await,
            3 if step % 3 == 0 => {
                store.close().await.unwrap();
                drop(store);
                store = open(folder.path()).await;
            }
            4..=6 => fill(&store, &mut known, &mut random).await,
            _ => {
                let name = format!("row{}", random.random_range(0..KEYS));
                known.write(&store, name).await;
            }
        }
    }
    known.note_time().await;
    flush(&store).await;
    let chunks = || walk(&folder.path().join("history/log"));
    let deadline = std::time::Instant::now() + LONG;
    while chunks() < 5 {
        assert!(std::time::Instant::now() < deadline, "the log is cut off");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    known.check(&store).await;
    // The history before the last cut is deleted, and a read that needs it fails with a message that says so.
    assert!(store.history_bytes().await.unwrap() > 0);
    let last = known.bases.last().unwrap();
    store.trim_history(&last.positions).await.unwrap();
    let error = known.read(&store, known.bases[0].time_ms).await.err();
    assert!(error.is_none_or(|error| error.to_string().contains("has not kept")));
    known.bases.drain(..known.bases.len() - 1);
    known.check(&store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_of_the_logs_than_may_lie_in_memory_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let (mut random, mut known) = (StdRng::seed_from_u64(8), Known::default());
    known.pin(std::slice::from_ref(&store)).await;
    for _ in 0..20 {
        fill(&store, &mut known, &mut random).await;
    }
    let (positions, tables) = (&known.bases[0].positions, BTreeSet::from([0]));
    let until_ms = now_ms().await;
    let until = HistoryUntil::time(until_ms);
    let read = |limit: u64| store.history_since(positions, &until, &tables, limit);
    assert_eq!(read(500_000).await.unwrap().len(), 20);
    let refused = read(200_000).await;
    assert!(
        matches!(refused, Err(StoreError::HistoryTooLarge { limit: 200_000 })),
        "{refused:?}"
    );
}

fn walk(folder: &Path) -> usize {
    let logs = std::fs::read_dir(folder).into_iter().flatten().flatten();
    logs.map(|log| std::fs::read_dir(log.path()).unwrap().count())
        .sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn bucket_stores_read_any_time_whoever_owned_tablets() {
    let config = StoreConfig {
        open_all_tablets: false,
        keeps_history: true,
        ..bucket::config("history")
    };
    let begin = || Store::open(config.clone(), Arc::new(APPEND));
    let mut stores = [begin().await.unwrap(), begin().await.unwrap()];
    let tablets = stores[0].initial_tablets();
    let mut owners: BTreeMap<u32, usize> = BTreeMap::new();
    for (at, (id, tokens)) in tablets.iter().enumerate() {
        stores[at % 2].open_tablet(*id, *tokens).await.unwrap();
        owners.insert(*id, at % 2);
    }
    let mut random = StdRng::seed_from_u64(11);
    let mut known = Known::default();
    known.pin(&stores).await;
    for _ in 0..150 {
        let (id, tokens) = tablets[random.random_range(0..tablets.len())];
        let owner = owners[&id];
        match random.random_range(0..14) {
            0 | 1 => known.note_time().await,
            2 => known.pin(&stores).await,
            3 => flush(&stores[owner]).await,
            4 => {
                stores[owner].hand_over_tablet(id).await.unwrap();
                stores[1 - owner].open_tablet(id, tokens).await.unwrap();
                owners.insert(id, 1 - owner);
            }
            5 => {
                // One process ends, and another one takes over its tablets.
                stores[owner].close().await.unwrap();
                for (id, tokens) in tablets.iter().filter(|(id, _)| owners[id] == owner) {
                    stores[1 - owner].open_tablet(*id, *tokens).await.unwrap();
                }
                owners.values_mut().for_each(|of| *of = 1 - owner);
                stores[owner] = begin().await.unwrap();
            }
            _ => {
                let name = format!("row{}", random.random_range(0..KEYS));
                let token = crate::support::token(name.as_bytes());
                let of = tablets.iter().find(|(_, tokens)| tokens.contains(token)).unwrap();
                let store = stores[owners[&of.0]].clone();
                known.write(&store, name).await;
            }
        }
    }
    known.note_time().await;
    for store in &stores {
        known.check(store).await;
    }
}
