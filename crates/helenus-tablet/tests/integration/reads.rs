//! Reads of single rows against a model and against scans, while rows are written, flushed and compacted.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use helenus_tablet::trace::TraceRecorder;
use helenus_tablet::{Store, StoreConfig, StoreMeasurement, WriteBatch};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::support::{APPEND, DEAD, key, token};

async fn open(folder: &std::path::Path, row_cache_bytes: u64) -> Arc<Store> {
    let config = StoreConfig {
        tablet_count: 1,
        row_cache_bytes,
        // Memtables become full while staged writes are applied and memtables are joined.
        memtable_bytes: 4 << 20,
        // Files that compactions replace are deleted soon.
        garbage_age: std::time::Duration::from_secs(3),
        ..StoreConfig::small(folder)
    };
    Store::open(config, Arc::new(APPEND)).await.unwrap()
}

async fn get(store: &Store, key: &Bytes) -> Option<Bytes> {
    store.tablet(token(key)).unwrap().get(key).await.unwrap()
}

/// Returns the row as a scan finds it. A scan searches blocks in another way.
async fn scanned(store: &Store, key: &Bytes) -> Option<Bytes> {
    let tablet = store.tablet(token(key)).unwrap();
    let range = key.clone()..=key.clone();
    let mut scan = tablet.scan(range, false).await.unwrap();
    scan.next().await.unwrap().map(|(_, row)| row)
}

/// Returns the steps of a traced read of a row.
async fn steps(store: &Store, key: &Bytes) -> Vec<String> {
    let mut measurement = StoreMeasurement::default();
    let recording = TraceRecorder::begin(&mut measurement);
    let tablet = store.tablet(token(key)).unwrap();
    let mut read = std::pin::pin!(tablet.get(key));
    let row = std::future::poll_fn(|context| {
        measurement.swap();
        let polled = read.as_mut().poll(context);
        measurement.swap();
        polled
    })
    .await;
    row.unwrap();
    recording
        .finish()
        .into_iter()
        .map(|step| step.what.into_owned())
        .collect()
}

/// Returns a random key, mostly with neighbours that differ little from it. Compactions drop keys that begin with `gone`.
fn random_key(random: &mut SmallRng) -> Bytes {
    match random.random_range(0..4) {
        0 => key(format!("hot/{}", random.random_range(0..10))),
        1 => key(format!("gone/{:02}", random.random_range(0..50))),
        _ => key(format!(
            "p{}/{:04}",
            random.random_range(0..3),
            random.random_range(0..1500)
        )),
    }
}

async fn histories(seed: u64, row_cache_bytes: u64) {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path(), row_cache_bytes).await;
    let mut random = SmallRng::seed_from_u64(seed);
    let mut model: BTreeMap<Bytes, Vec<u8>> = BTreeMap::new();
    for round in 0..40 {
        let mut batch = WriteBatch::new();
        for number in 0..random.random_range(1..600) {
            let key = random_key(&mut random);
            let mut operand = format!("{round}.{number},").into_bytes();
            operand.resize(operand.len() + random.random_range(0..60), b'-');
            model.entry(key.clone()).or_default().extend(&operand);
            batch.merge(token(&key), key, operand.into());
        }
        store.write(batch, true).await.unwrap();
        if random.random_range(0..3) == 0 {
            store.flush().await.unwrap();
        }
        if round % 13 == 12 {
            store.close().await.unwrap();
            drop(store);
            store = open(folder.path(), row_cache_bytes).await;
        }
        for _ in 0..200 {
            let key = random_key(&mut random);
            let row = get(&store, &key).await;
            // Compactions drop these keys sooner or later.
            if key.starts_with(b"gone") {
                continue;
            }
            assert_eq!(
                row.as_deref(),
                model.get(&key).map(Vec::as_slice),
                "{key:?} in round {round}"
            );
            if row_cache_bytes == 0 {
                assert_eq!(scanned(&store, &key).await, row, "{key:?} in round {round}");
            }
        }
    }
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_is_what_was_written_wherever_it_lies() {
    histories(1, 0).await;
    histories(2, 4 << 20).await;
}

/// Shows that a read returns each operand that was acknowledged before it, in order and once, whatever is applied, flushed, compacted and
/// deleted meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn reads_are_exact_during_flushes_and_compactions() {
    const KEYS: usize = 40;
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), 0).await;
    let acknowledged = Arc::new([const { AtomicU64::new(0) }; KEYS]);
    let done = Arc::new(AtomicU64::new(0));
    let readers = (0..3).map(|reader| {
        let (store, acknowledged, done) = (store.clone(), acknowledged.clone(), done.clone());
        tokio::spawn(async move {
            let mut random = SmallRng::seed_from_u64(reader);
            while done.load(Ordering::SeqCst) == 0 {
                let at = random.random_range(0..KEYS);
                let key = key(format!("k{at:03}/"));
                let least = acknowledged[at].load(Ordering::SeqCst);
                let row = if random.random() {
                    get(&store, &key).await
                } else {
                    let tablet = store.tablet(token(&key)).unwrap();
                    let mut scan = tablet.scan(key.clone()..=key, random.random()).await.unwrap();
                    scan.next().await.unwrap().map(|(_, row)| row)
                };
                let row = String::from_utf8(row.unwrap_or_default().to_vec()).unwrap();
                let numbers: Vec<u64> = row.split_terminator(',').map(|n| n.parse().unwrap()).collect();
                assert!(numbers.len() as u64 >= least, "{} of {least}", numbers.len());
                assert!(numbers.iter().copied().eq(1..=numbers.len() as u64), "{row}");
            }
        })
    });
    let readers: Vec<_> = readers.collect();
    let mut random = SmallRng::seed_from_u64(3);
    for round in 0..600 {
        let mut batch = WriteBatch::new();
        let mut written = Vec::new();
        for row in 0..8 {
            let key = key(format!("filler/{round}/{row}"));
            batch.merge(token(&key), key, vec![row; 4 << 10].into());
        }
        for at in 0..KEYS {
            if random.random_range(0..3) == 0 {
                let number = acknowledged[at].load(Ordering::SeqCst) + 1;
                let key = key(format!("k{at:03}/"));
                batch.merge(token(&key), key, format!("{number},").into());
                written.push((at, number));
            }
        }
        store.write(batch, true).await.unwrap();
        for (at, number) in written {
            acknowledged[at].store(number, Ordering::SeqCst);
        }
        if round % 100 == 0 {
            store.flush().await.unwrap();
        }
    }
    done.store(1, Ordering::SeqCst);
    for reader in readers {
        reader.await.unwrap();
    }
    let compacted = store.stats().compacted_bytes;
    assert!(compacted > 0, "nothing was compacted");
    store.close().await.unwrap();
}

/// Shows that a deletion hides all older versions of a row until these are compacted away too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_deleted_stays_so_in_memory_and_in_files() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), 0).await;
    for round in 0..12 {
        let mut batch = WriteBatch::new();
        for row in 0..50 {
            let key = key(format!("d/{row:03}"));
            let operand = if (row + round) % 3 == 0 { DEAD } else { "x" };
            batch.merge(token(&key), key, Bytes::from_static(operand.as_bytes()));
        }
        store.write(batch, true).await.unwrap();
        store.flush().await.unwrap();
        for row in 0..50 {
            let key = key(format!("d/{row:03}"));
            // A compaction may end in between.
            let before = get(&store, &key).await;
            let scanned = scanned(&store, &key).await;
            assert!(
                scanned == before || scanned == get(&store, &key).await,
                "{key:?}: {before:?}, {scanned:?}"
            );
        }
    }
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn traced_read_shows_its_sources() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), 0).await;
    let known = key("t/1");
    let mut batch = WriteBatch::new();
    batch.merge(token(&known), known.clone(), Bytes::from_static(b"x"));
    store.write(batch, true).await.unwrap();
    let has = |steps: &[String], part: &str| steps.iter().any(|step| step.contains(part));
    while !has(&steps(&store, &known).await, "Found in the memtable") {
        tokio::task::yield_now().await;
    }
    store.flush().await.unwrap();
    let first = steps(&store, &known).await;
    assert!(
        has(&first, "Reading the index and the filter of SSTable"),
        "{first:?}"
    );
    assert!(has(&first, " of level 0 from disk"), "{first:?}");
    assert!(
        has(&first, "Blocks in all: 0 from the block cache, 1 from disk"),
        "{first:?}"
    );
    let second = steps(&store, &known).await;
    assert!(has(&second, "from the block cache"), "{second:?}");
    assert!(!has(&second, "Reading the index"), "{second:?}");
    store.close().await.unwrap();
}
