//! Tables with an origin. Random histories on a table, on a branch of it and on a branch of that are checked against their merge.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use helenus_row::{TableId, key};
use helenus_tablet::{PinnedTablet, Store, TableOrigin, Visit, WriteBatch};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::stored_rows::{
    BRANCH, BRANCH_OF_BRANCH, History, PARTITIONS, TABLE, check, open, operations, purge, token,
};

/// The history of each table: all that was written to it.
type Histories = BTreeMap<TableId, History>;
type Origins = BTreeMap<TableId, Arc<TableOrigin>>;

async fn open_with(path: &Path, origins: &Origins) -> Arc<Store> {
    let store = open(path).await;
    set(&store, origins);
    store
}

fn set(store: &Arc<Store>, origins: &Origins) {
    let origins = origins.iter().map(|(table, origin)| (table.0, origin.clone()));
    store.set_origins(origins.collect());
}

fn renumbered(history: &History, table: TableId) -> History {
    let rename = |key: &Bytes| -> Bytes { [&table.0.to_be_bytes(), &key[4..]].concat().into() };
    let rows = history.0.iter().map(|(key, row)| (rename(key), row.clone()));
    History(rows.collect())
}

/// Makes a branch of a table at the current cut.
async fn branch(
    store: &Arc<Store>,
    histories: &mut Histories,
    origins: &mut Origins,
    of: TableId,
    to: TableId,
) {
    let pinned: Arc<[PinnedTablet]> = store.pin().await.unwrap().into();
    let origin = TableOrigin {
        pinned,
        table: of.0,
        below: origins.get(&of).cloned(),
    };
    origins.insert(to, Arc::new(origin));
    set(store, origins);
    let then = renumbered(&histories[&of], to);
    histories.insert(to, then);
}

/// Checks the keys of each table in scans of whole tablets: each key once, in order, and with a token of the tablet.
async fn check_whole_scans(store: &Store, histories: &Histories) {
    for (table, history) in histories {
        let mut keys = Vec::new();
        for tablet in store.tablets().iter() {
            for reversed in [false, true] {
                let range = key::table_range(*table);
                let scan = tablet.scan(range.start..range.end.unwrap(), reversed).await;
                let mut scan = scan.unwrap();
                assert!(scan.visit_at_hand(&mut |_, _| Visit::Last).is_none() || *table == TABLE);
                let mut found = Vec::new();
                while let Some((key, _)) = scan.next().await.unwrap() {
                    assert!(tablet.token_range().contains(key::token_of(&key).unwrap()));
                    found.push(key);
                }
                match reversed {
                    false => keys.extend(found),
                    true => {
                        found.reverse();
                        assert!(keys.ends_with(&found), "reversed, of table {}", table.0);
                    }
                }
            }
        }
        assert!(keys.is_sorted_by(|a, b| a < b), "keys of table {}", table.0);
        assert!(keys.iter().all(|key| history.0.contains_key(key)));
    }
}

/// Makes random changes to random tables, with flushes, compactions and purges in between.
async fn change(store: &Store, histories: &mut Histories, random: &mut SmallRng, count: usize) {
    let tables: Vec<TableId> = histories.keys().copied().collect();
    for _ in 0..count {
        let table = tables[random.random_range(0..tables.len())];
        match random.random_range(0..16) {
            0 => drop(purge(store).await),
            1 => store.flush().await.unwrap(),
            2 if random.random_range(0..4) == 0 => {
                store.flush().await.unwrap();
                store.compact().await.unwrap();
            }
            3 | 4 => check(store, table, &histories[&table], random).await,
            _ => {
                let partition = PARTITIONS[random.random_range(0..PARTITIONS.len())];
                let timestamp_us = random.random_range(1_000..1_060);
                let mut batch = WriteBatch::new();
                for (key, operand) in operations(random, table, partition, timestamp_us) {
                    histories.get_mut(&table).unwrap().add(&key, &operand);
                    batch.merge(token(partition), key, operand);
                }
                store.write(batch, true).await.unwrap();
            }
        }
    }
}

async fn check_all(store: &Store, histories: &Histories, random: &mut SmallRng) {
    for (table, history) in histories {
        for _ in 0..2 {
            check(store, *table, history, random).await;
        }
    }
    check_whole_scans(store, histories).await;
}

async fn run_history(seed: u64) {
    let mut random = SmallRng::seed_from_u64(seed);
    let random = &mut random;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let mut origins = Origins::new();
    let mut histories = Histories::from([(TABLE, History::default())]);
    let store = open(&path).await;
    change(&store, &mut histories, random, 60).await;
    branch(&store, &mut histories, &mut origins, TABLE, BRANCH).await;
    check_all(&store, &histories, random).await;
    change(&store, &mut histories, random, 60).await;
    branch(&store, &mut histories, &mut origins, BRANCH, BRANCH_OF_BRANCH).await;
    change(&store, &mut histories, random, 80).await;
    check_all(&store, &histories, random).await;
    store.close().await.unwrap();
    drop(store);
    let store = open_with(&path, &origins).await;
    check_all(&store, &histories, random).await;
    change(&store, &mut histories, random, 60).await;
    check_all(&store, &histories, random).await;
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_branch_has_what_its_origin_had_and_what_was_written_since() {
    let first: u64 = std::env::var("BRANCH_SEED").map_or(1, |seed| seed.parse().unwrap());
    for seed in first..first + 6 {
        println!("seed {seed}");
        run_history(seed).await;
    }
}
