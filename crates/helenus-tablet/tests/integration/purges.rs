//! Purges of memory and dead ranges do not change what is read. Random histories on few rows, with late timestamps, are checked against
//! their merge.

use bytes::Bytes;
use helenus_row::{Cell, ColumnId, RowBuilder};
use helenus_tablet::{Store, WriteBatch};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::stored_rows::{
    History, PARTITIONS, ROWS, TABLE, check, copy_folder, deletion, live, open, operations, purge, row_key,
    token,
};

/// Runs a random history, and returns the number of rows that purges dropped.
async fn run_history(seed: u64) -> u64 {
    let mut random = SmallRng::seed_from_u64(seed);
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("store")).await;
    let mut history = History::default();
    let mut dropped = 0;
    for _ in 0..150 {
        match random.random_range(0..12) {
            0 => dropped += purge(&store).await,
            1 if random.random_range(0..6) == 0 => store.flush().await.unwrap(),
            2 | 3 => check(&store, TABLE, &history, &mut random).await,
            _ => {
                let partition = PARTITIONS[random.random_range(0..PARTITIONS.len())];
                let timestamp_us = random.random_range(1_000..1_060);
                let mut batch = WriteBatch::new();
                for (key, operand) in operations(&mut random, TABLE, partition, timestamp_us) {
                    history.add(&key, &operand);
                    batch.merge(token(partition), key, operand);
                }
                store.write(batch, true).await.unwrap();
            }
        }
    }
    dropped += purge(&store).await;
    check(&store, TABLE, &history, &mut random).await;
    // A copy of the folder is what a crash would leave.
    let copy = folder.path().join("crashed");
    copy_folder(&folder.path().join("store"), &copy);
    let crashed = open(&copy).await;
    check(&crashed, TABLE, &history, &mut random).await;
    crashed.close().await.unwrap();
    store.close().await.unwrap();
    dropped
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_read_does_not_depend_on_purges() {
    let first: u64 = std::env::var("PURGE_SEED").map_or(1, |seed| seed.parse().unwrap());
    let mut dropped = 0;
    for seed in first..first + 12 {
        println!("seed {seed}");
        dropped += run_history(seed).await;
    }
    assert!(dropped > 100, "{dropped} rows were dropped");
}

/// Returns the number of rows that a scan of a partition returns up to the first live one.
async fn rows_walked(store: &Store, partition: &str) -> usize {
    let tablet = store.tablet(token(partition)).unwrap();
    let range = row_key(TABLE, partition, 0)..row_key(TABLE, partition, ROWS);
    let mut scan = tablet.scan(range, false).await.unwrap();
    let mut rows = 0;
    while let Some((_, packed)) = scan.next().await.unwrap() {
        rows += 1;
        match live(packed, None) {
            Some(_) => break,
            None => scan.mark_dead(),
        }
    }
    rows
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_dead_front_of_a_queue_is_walked_once_and_purged() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let write = async |row: u8, operand: Bytes| {
        let mut batch = WriteBatch::new();
        batch.merge(token("one"), row_key(TABLE, "one", row), operand);
        store.write(batch, true).await.unwrap();
    };
    let insert = |timestamp_us| {
        let live = Cell::live(timestamp_us, Bytes::from_static(b"v"));
        RowBuilder::new().cell(ColumnId(1), live).build()
    };
    let delete = |timestamp_us| RowBuilder::new().delete_row(deletion(timestamp_us)).build();
    for row in 0..ROWS {
        write(row, insert(1_000)).await;
    }
    for row in 0..20 {
        write(row, delete(1_001)).await;
    }
    assert_eq!(rows_walked(&store, "one").await, 21);
    assert_eq!(rows_walked(&store, "one").await, 1);
    // A row that is deleted again stays dead. A row that is written again is alive.
    write(3, delete(1_002)).await;
    assert_eq!(rows_walked(&store, "one").await, 1);
    write(5, insert(1_003)).await;
    assert_eq!(rows_walked(&store, "one").await, 1);
    write(5, delete(1_004)).await;
    assert_eq!(purge(&store).await, 20);
    store.close().await.unwrap();
    drop(store);
    let store = open(folder.path()).await;
    assert_eq!(
        rows_walked(&store, "one").await,
        1,
        "none of the dead rows was flushed"
    );
    store.close().await.unwrap();
}
