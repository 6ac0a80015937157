//! The caches that a node's tablets share. They never return a row from a former opening, and the disk cache saves requests to the bucket.

use std::sync::Arc;

use helenus_tablet::{Store, StoreConfig};

use crate::bucket::{config, names};
use crate::support::{APPEND, dump, read, token, write};

fn one_by_one(name: &str) -> StoreConfig {
    StoreConfig {
        open_all_tablets: false,
        ..config(name)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tablet_that_comes_back_finds_no_row_of_before() {
    let here = Store::open(one_by_one("openings"), Arc::new(APPEND))
        .await
        .unwrap();
    let there = Store::open(one_by_one("openings"), Arc::new(APPEND))
        .await
        .unwrap();
    let (id, tokens) = here.initial_tablets()[0];
    let name = &names(2)[0];
    let mut expected = String::new();
    for round in 0..3 {
        for store in [&here, &there] {
            store.open_tablet(id, tokens).await.unwrap();
            assert_eq!(read(store, name).await.unwrap_or_default(), expected, "{round}");
            write(store, name, "x").await;
            expected.push('x');
            assert_eq!(read(store, name).await.as_ref(), Some(&expected));
            store.close_tablet(id).await.unwrap();
        }
    }
    let stats = here.stats();
    assert!(
        stats.row_cache.rows >= 1 && stats.totals.row_cache_hits >= 3,
        "{stats:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hot_tablet_gets_the_row_cache_of_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let config = StoreConfig {
        tablet_count: 8,
        row_cache_bytes: 4 << 20,
        ..StoreConfig::small(folder.path())
    };
    let store = Store::open(config, Arc::new(APPEND)).await.unwrap();
    let first = store.tablets()[0].token_range();
    let hot = (0..)
        .map(|n| format!("row{n}"))
        .filter(|name| first.contains(token(name.as_bytes())));
    for name in &hot.take(2000).collect::<Vec<_>>() {
        write(&store, name, "v".repeat(1000)).await;
        read(&store, name).await;
    }
    let stats = store.stats().row_cache;
    assert!(stats.bytes > 1 << 20, "{stats:?}");
    assert_eq!(stats.capacity_bytes, 4 << 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_flushed_is_read_without_the_bucket_after_a_restart() {
    // The disk of the other tests may be full, and the disk cache shrinks on a full disk.
    let folder = tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap());
    let config = || StoreConfig {
        cache_dir: Some(folder.path().join("cache")),
        cache_disk_bytes: Some(64 << 20),
        ..config("disk-cache")
    };
    let store = Store::open(config(), Arc::new(APPEND)).await.unwrap();
    let names = names(400);
    for name in &names {
        write(&store, name, name.repeat(50)).await;
    }
    for tablet in store.tablets().iter() {
        tablet.flush().await.unwrap();
    }
    store.close().await.unwrap();
    drop(store);

    let store = Store::open(config(), Arc::new(APPEND)).await.unwrap();
    let before = store.stats();
    assert_eq!(dump(&store).await.len(), names.len());
    for name in &names {
        assert_eq!(read(&store, name).await.unwrap(), name.repeat(50));
    }
    let after = store.stats();
    let (before_cache, cache) = (before.disk_cache.unwrap(), after.disk_cache.unwrap());
    assert!(cache.hits > before_cache.hits, "{cache:?}");
    assert_eq!((cache.misses, cache.errors), (0, 0), "{cache:?}");
    store.close().await.unwrap();
}
