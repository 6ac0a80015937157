//! The requests of an idle store in a bucket, and the objects that it deletes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use helenus_tablet::{Store, StoreConfig, StoreUrl, Tablet, set_memory_store};
use object_store::ObjectStoreExt;
use object_store::memory::InMemory;
use object_store::path::Path;

use crate::support::{APPEND, read, write};

fn config(name: &str) -> StoreConfig {
    StoreConfig {
        url: StoreUrl::parse(&format!("memory://{name}/prefix")).unwrap(),
        tablet_count: 1,
        compaction_poll_interval: Duration::from_millis(100),
        ..StoreConfig::small(std::path::Path::new("/nowhere"))
    }
}

async fn until(what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < end, "{what}: not within 30 s");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Writes enough files at level 0 for a compaction, and waits for it.
async fn compact(store: &Store, tablet: &Arc<Tablet>, name: &str) {
    for _ in 0..4 {
        write(store, name, "x").await;
        tablet.flush().await.unwrap();
    }
    until("a compaction", || tablet.stats().level0_files == 0).await;
}

fn requests(store: &Store) -> u64 {
    let stats = store.stats().bucket.unwrap();
    stats.gets + stats.puts + stats.lists + stats.deletes
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_tablet_sends_no_requests_until_work_appears() {
    let store = Store::open(config("rest"), Arc::new(APPEND)).await.unwrap();
    let tablet = store.tablets()[0].clone();
    for round in 1..=2 {
        compact(&store, &tablet, "row").await;
        // Replaced files are deleted some seconds later. Then there is nothing more to do.
        let end = Instant::now() + Duration::from_secs(40);
        loop {
            let before = requests(&store);
            tokio::time::sleep(Duration::from_secs(3)).await;
            let requested = requests(&store) - before;
            if requested == 0 {
                break;
            }
            assert!(Instant::now() < end, "it asks {requested} times in 3 s");
        }
        let row = read(&store, "row").await.unwrap();
        assert_eq!(row, "x".repeat(4 * round));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_written_after_tablet_deletion_are_deleted() {
    let bucket = Arc::new(InMemory::new());
    set_memory_store("strays", bucket.clone());
    let store = Store::open(config("strays"), Arc::new(APPEND)).await.unwrap();
    write(&store, "row", "x").await;
    assert_eq!(store.stored_tablets().await.unwrap(), [1]);
    let late = |name: &str| Path::from(format!("prefix/tablets/7/{name}"));
    for name in [
        "wal/00000000000000000005.sst",
        "compacted/01ARZ3NDEKTSV4RRFFQ69G5FAV.sst",
    ] {
        bucket.put(&late(name), "late".into()).await.unwrap();
    }
    assert_eq!(store.stored_tablets().await.unwrap(), [1, 7]);
    assert!(store.remove_tablet(7).await.unwrap());
    assert_eq!(store.stored_tablets().await.unwrap(), [1]);
    assert!(store.remove_tablet(7).await.unwrap(), "it is gone already");
    assert!(store.remove_tablet(1).await.is_err(), "it is open");
    assert_eq!(read(&store, "row").await.as_deref(), Some("x"));
}
