//! Scans against a model, over memtables, files of level 0 and sorted runs, while rows are written, flushed and compacted.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use bytes::Bytes;
use helenus_tablet::{DataModelError, KeptPartition, Store, StoreConfig, StoreStats, Visit, WriteBatch};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::plain_model::PlainModel;
use crate::support::{APPEND, key};

/// A data model whose rows are sets of bytes and merge by union. Repetition goes unnoticed, but a missing byte is found.
const UNION: PlainModel = PlainModel {
    may_be_alive: |key, operand| !(key.starts_with(b"s-mortal") && operand.contains(&DEATH)),
    partition_prefix_len: APPEND.partition_prefix_len,
    kept_partition: |key| {
        let kept = KeptPartition {
            rows_max: 12,
            bytes_max: 4 << 10,
            dead_rows_max: 30,
        };
        key.starts_with(b"s").then_some(kept)
    },
    ..PlainModel::new(union)
};

fn union(_key: &[u8], existing: Option<&Bytes>, operands: &[Bytes]) -> Result<Bytes, DataModelError> {
    let all: BTreeSet<u8> = existing.into_iter().chain(operands).flatten().copied().collect();
    Ok(all.into_iter().collect::<Vec<u8>>().into())
}

/// The byte that kills a row of a partition whose rows can die.
const DEATH: u8 = b'x';

type Model = BTreeMap<Bytes, BTreeSet<u8>>;

async fn check(store: &Store, model: &Model, from: Bound<Bytes>, to: Bound<Bytes>, reversed: bool) {
    let tablet = store.tablet(0).unwrap();
    let mut scan = tablet.scan((from.clone(), to.clone()), reversed).await.unwrap();
    let mut expected: Vec<_> = {
        let bounds = (from.clone(), to.clone());
        model.iter().filter(|(key, _)| bounds.contains(*key)).collect()
    };
    if reversed {
        expected.reverse();
    }
    for (key, row) in expected {
        let (found, value) = scan.next().await.unwrap().expect("the scan ends too early");
        assert_eq!(found, key, "{from:?} to {to:?}, reversed: {reversed}");
        assert_eq!(value.iter().copied().collect::<BTreeSet<u8>>(), *row, "{key:?}");
    }
    assert_eq!(scan.next().await.unwrap(), None, "{from:?} to {to:?}");
}

/// Returns a random key of a large partition, or of a small one. Small partitions are kept in the row cache while they have few rows.
fn random_key(random: &mut SmallRng) -> Bytes {
    if random.random_range(0..8) == 0 {
        let (partition, row) = (random.random_range(0..30), random.random_range(0..20));
        return key(format!("s{partition:02}/{row:03}"));
    }
    let (partition, row) = (random.random_range(0..8), random.random_range(0..400));
    key(format!("p{partition}/{row:03}"))
}

async fn one_tablet(folder: &std::path::Path) -> Arc<Store> {
    let config = StoreConfig {
        tablet_count: 1,
        ..StoreConfig::small(folder)
    };
    Store::open(config, Arc::new(UNION)).await.unwrap()
}

fn random_bound(random: &mut SmallRng) -> Bound<Bytes> {
    match random.random_range(0..5) {
        0 => Bound::Unbounded,
        1 | 2 => Bound::Excluded(random_key(random)),
        _ => Bound::Included(random_key(random)),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scans_give_what_was_written_wherever_it_lies() {
    let folder = tempfile::tempdir().unwrap();
    let store = one_tablet(folder.path()).await;
    let mut model = Model::new();
    let mut random = SmallRng::seed_from_u64(7);
    for round in 0..25 {
        let mut batch = WriteBatch::new();
        for _ in 0..random.random_range(1..400) {
            let (key, byte) = (random_key(&mut random), random.random_range(0..=255));
            model.entry(key.clone()).or_default().insert(byte);
            // Operands are long enough for several blocks.
            let operand = [&[byte][..], &[byte; 40]].concat();
            batch.merge(0, key, operand.into());
        }
        store.write(batch, true).await.unwrap();
        if random.random_range(0..3) > 0 {
            store.flush().await.unwrap();
        }
        // Rows that were read are written as a whole the next time.
        for _ in 0..50 {
            let key = random_key(&mut random);
            store.tablet(0).unwrap().get(&key).await.unwrap();
        }
        check(&store, &model, Bound::Unbounded, Bound::Unbounded, round % 4 == 0).await;
        for _ in 0..20 {
            let (from, to) = (random_bound(&mut random), random_bound(&mut random));
            check(&store, &model, from, to, false).await;
            // This range lies within a partition.
            let partition = random.random_range(0..8);
            let from = key(format!("p{partition}/{:03}", random.random_range(0..400)));
            let to = Bound::Excluded(key(format!("p{partition}0")));
            check(
                &store,
                &model,
                Bound::Included(from),
                to,
                random.random_range(0..4) == 0,
            )
            .await;
            let partition = random.random_range(0..30);
            let from = Bound::Excluded(key(format!("s{partition:02}/{:03}", random.random_range(0..10))));
            let to = Bound::Included(key(format!("s{partition:02}/{:03}", random.random_range(10..20))));
            check(&store, &model, from, to, random.random()).await;
        }
    }
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_partition_is_kept_after_its_rows_died() {
    let folder = tempfile::tempdir().unwrap();
    let store = one_tablet(folder.path()).await;
    let name = |row: u8| key(format!("s-mortal/{row:03}"));
    let write = async |rows: std::ops::Range<u8>, operand: u8| {
        let mut batch = WriteBatch::new();
        rows.for_each(|row| batch.merge(0, name(row), Bytes::copy_from_slice(&[operand])));
        store.write(batch, true).await.unwrap();
    };
    let kept = async || {
        let tablet = store.tablet(0).unwrap();
        let kept = tablet.kept_partition(&key("s-mortal/")).await.unwrap();
        kept.map(|kept| {
            kept.iter()
                .map(|(key, _)| Bytes::copy_from_slice(key))
                .collect::<Vec<_>>()
        })
    };
    write(0..20, 1).await;
    assert_eq!(kept().await, None);
    write(20..21, 1).await;
    assert_eq!(kept().await, None);
    write(0..19, DEATH).await;
    assert_eq!(kept().await, Some(vec![name(19), name(20)]));
    write(2..3, DEATH).await;
    write(30..31, 1).await;
    assert_eq!(kept().await, Some(vec![name(19), name(20), name(30)]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_scan_shows_one_cut() {
    let folder = tempfile::tempdir().unwrap();
    let store = one_tablet(folder.path()).await;
    let write = async |byte: u8| {
        let mut batch = WriteBatch::new();
        for row in 0..3_000 {
            batch.merge(0, key(format!("p/{row:04}")), Bytes::copy_from_slice(&[byte]));
        }
        store.write(batch, true).await.unwrap();
    };
    write(1).await;
    store.flush().await.unwrap();
    let before = store.stats();
    check(
        &store,
        &Model::new(),
        Bound::Included(key("q")),
        Bound::Unbounded,
        false,
    )
    .await;
    let mut rows = store.tablet(0).unwrap().scan(.., false).await.unwrap();
    while rows.next().await.unwrap().is_some() {}
    let after = store.stats();
    let looked_up = |stats: &StoreStats| stats.block_cache_hits + stats.block_reads;
    assert!(looked_up(&after) - looked_up(&before) > 5, "{before:?} {after:?}");
    write(2).await;
    let tablet = store.tablet(0).unwrap();
    let mut whole = tablet.scan(.., false).await.unwrap();
    let mut slice = tablet.scan(key("p/")..key("p0"), false).await.unwrap();
    for row in 0..3_000 {
        if row == 5 || row == 100 {
            write(3).await;
            store.flush().await.unwrap();
        }
        for scan in [&mut whole, &mut slice] {
            let (found, value) = scan.next().await.unwrap().unwrap();
            assert_eq!((found, value.as_ref()), (key(format!("p/{row:04}")), &[1, 2][..]));
        }
    }
    store.close().await.unwrap();
}

/// Returns all rows of a scan. Loaded rows are visited in place, `at_a_time` of them at a time. `end` ends each time.
async fn visited(store: &Store, at_a_time: usize, end: Visit) -> Vec<(Bytes, BTreeSet<u8>)> {
    let tablet = store.tablet(0).unwrap();
    let mut scan = tablet.scan(.., false).await.unwrap();
    let mut rows = Vec::new();
    let set = |value: &[u8]| value.iter().copied().collect::<BTreeSet<u8>>();
    loop {
        let before = rows.len();
        let last = scan.visit_at_hand(&mut |key, value| {
            if end == Visit::Before && rows.len() - before == at_a_time {
                return Visit::Before;
            }
            rows.push((Bytes::copy_from_slice(key), set(value)));
            match end == Visit::Last && rows.len() - before == at_a_time {
                true => Visit::Last,
                false => Visit::Next,
            }
        });
        assert_eq!(
            last.as_ref(),
            rows.get(before..).unwrap().last().map(|(key, _)| key)
        );
        if last.is_none() {
            match scan.next().await.unwrap() {
                Some((key, value)) => rows.push((key, set(&value))),
                None => return rows,
            }
        }
    }
}

/// Shows that long scans, which read many blocks at once, return the same rows as single reads, and that visiting in place does too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_scans_give_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let store = one_tablet(folder.path()).await;
    let mut model = Model::new();
    let mut random = SmallRng::seed_from_u64(11);
    for round in 0..3 {
        let mut batch = WriteBatch::new();
        // Each round writes fewer of the rows, so that some are in one file, and some in several and in memory.
        for number in (0..40_000).step_by([1, 7, 1_000][round]) {
            let (key, byte) = (key(format!("p{:03}/{number:07}", number / 400)), random.random());
            model.entry(key.clone()).or_default().insert(byte);
            let operand: Vec<u8> = (0..60).map(|_| byte).collect();
            batch.merge(0, key, operand.into());
        }
        store.write(batch, true).await.unwrap();
        check(&store, &model, Bound::Unbounded, Bound::Unbounded, false).await;
        if round < 2 {
            store.flush().await.unwrap();
        }
    }
    check(&store, &model, Bound::Unbounded, Bound::Unbounded, false).await;
    check(&store, &model, Bound::Unbounded, Bound::Unbounded, true).await;
    let expected: Vec<(Bytes, BTreeSet<u8>)> = model.into_iter().collect();
    for at_a_time in [1, 100, usize::MAX] {
        for end in [Visit::Last, Visit::Before] {
            let found = visited(&store, at_a_time, end).await;
            assert!(found == expected, "{at_a_time} at a time, {end:?}");
        }
    }
}
