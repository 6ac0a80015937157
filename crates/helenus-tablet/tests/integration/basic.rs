use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use helenus_tablet::{MetaExpect, Store, StoreConfig, StoreError, WriteBatch};

use crate::support::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_written_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    assert_eq!(store.tablets().len(), 2);
    assert_eq!(read(&store, "p1/a").await, None);
    write(&store, "p1/a", "1").await;
    assert_eq!(read(&store, "p1/a").await.as_deref(), Some("1"));
    write(&store, "p1/a", "2").await;
    assert_eq!(read(&store, "p1/a").await.as_deref(), Some("12"));
    store.close().await.unwrap();
    assert!(matches!(
        try_write(&store, "x", "y").await,
        Err(StoreError::Closed)
    ));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scans_are_in_order_both_ways_and_within_bounds() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let tablet = store.tablet(0).unwrap();
    let mut batch = WriteBatch::new();
    for partition in ["p1", "p2", "p3"] {
        for row in 0..10 {
            batch.merge(0, key(format!("{partition}/{row}")), key(format!("{row}")));
        }
    }
    store.write(batch, true).await.unwrap();
    for flushed in [false, true] {
        if flushed {
            store.flush().await.unwrap();
        }
        let collect = async |from: Bound<Bytes>, to: Bound<Bytes>, reversed: bool| {
            let mut scan = tablet.scan((from, to), reversed).await.unwrap();
            let mut keys = Vec::new();
            while let Some((key, _)) = scan.next().await.unwrap() {
                keys.push(String::from_utf8(key.to_vec()).unwrap());
            }
            keys
        };
        let all = collect(Bound::Unbounded, Bound::Unbounded, false).await;
        assert_eq!(all.len(), 30);
        assert!(all.is_sorted());
        let p2 = collect(Bound::Included(key("p2/")), Bound::Excluded(key("p20")), false).await;
        assert_eq!(p2, (0..10).map(|row| format!("p2/{row}")).collect::<Vec<_>>());
        let reversed = collect(Bound::Included(key("p2/")), Bound::Excluded(key("p20")), true).await;
        assert_eq!(reversed, p2.iter().rev().cloned().collect::<Vec<_>>());
        let slice = collect(Bound::Excluded(key("p2/3")), Bound::Included(key("p2/6")), false).await;
        assert_eq!(slice, ["p2/4", "p2/5", "p2/6"]);
        let across = collect(Bound::Included(key("p1/8")), Bound::Excluded(key("p2/1")), false).await;
        assert_eq!(across, ["p1/8", "p1/9", "p2/0"]);
        let none = collect(Bound::Included(key("p2/6")), Bound::Excluded(key("p2/6")), false).await;
        assert!(none.is_empty());
    }
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_is_seen_whole_and_its_operands_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let mut batch = WriteBatch::new();
    for part in ["a", "b", "c"] {
        batch.merge(i64::MIN, key("low"), key(part));
        batch.merge(i64::MAX, key("high"), key(part));
    }
    store.write(batch, true).await.unwrap();
    let get = async |token: i64, name: &str| {
        store
            .tablet(token)
            .unwrap()
            .get(name.as_bytes())
            .await
            .unwrap()
            .unwrap()
    };
    assert_eq!(get(i64::MIN, "low").await, "abc");
    assert_eq!(get(i64::MAX, "high").await, "abc");
    drop(store);
    let store = open(folder.path()).await;
    assert_eq!(store.replayed_records(), 1);
    let get = async |token: i64, name: &str| {
        store
            .tablet(token)
            .unwrap()
            .get(name.as_bytes())
            .await
            .unwrap()
            .unwrap()
    };
    assert_eq!(get(i64::MIN, "low").await, "abc");
    assert_eq!(get(i64::MAX, "high").await, "abc");
    store.close().await.unwrap();
}

/// Shows that many writers each see their own writes, while they append to own and to shared keys and memtables are flushed. No write is
/// lost, doubled or reordered, before and after restarts with and without a clean end.
async fn exactly_once(row_cache_bytes: u64) {
    let folder = tempfile::tempdir().unwrap();
    let config = || StoreConfig {
        memtable_bytes: 4 << 20,
        row_cache_bytes,
        ..StoreConfig::small(folder.path())
    };
    let padding = "x".repeat(300);
    const WRITERS: usize = 16;
    const WRITES: usize = 250;
    for round in 0..3 {
        let store = Store::open(config(), Arc::new(APPEND)).await.unwrap();
        let tasks = (0..WRITERS).map(|writer| {
            let store = store.clone();
            let padding = padding.clone();
            tokio::spawn(async move {
                for index in 0..WRITES {
                    let number = round * WRITES + index;
                    write(&store, format!("own{writer}/"), format!("{number},")).await;
                    write(
                        &store,
                        format!("shared{}/", index % 5),
                        format!("{writer}:{number},"),
                    )
                    .await;
                    write(&store, format!("bulk{writer}/{number}"), &padding).await;
                    if index % 10 == 0 {
                        let own = read(&store, format!("own{writer}/")).await.unwrap();
                        assert!(own.ends_with(&format!(",{number},")) || own == "0,", "{own}");
                    }
                    if index % 100 == 50 && writer == 0 {
                        store.flush().await.unwrap();
                    }
                }
            })
        });
        for task in futures::future::join_all(tasks).await {
            task.unwrap();
        }
        let numbers = (round + 1) * WRITES;
        let expected: String = (0..numbers).map(|number| format!("{number},")).collect();
        for writer in 0..WRITERS {
            assert_eq!(read(&store, format!("own{writer}/")).await.unwrap(), expected);
        }
        let mut shared = 0;
        for index in 0..5 {
            let row = read(&store, format!("shared{index}/")).await.unwrap();
            let parts: Vec<&str> = row.split_terminator(',').collect();
            let unique: std::collections::HashSet<&str> = parts.iter().copied().collect();
            assert_eq!(unique.len(), parts.len());
            shared += parts.len();
        }
        assert_eq!(shared, WRITERS * numbers);
        assert_eq!(dump(&store).await.len(), WRITERS + 5 + WRITERS * numbers);
        if round == 1 {
            store.close().await.unwrap();
        }
        drop(store);
    }
    let store = Store::open(config(), Arc::new(APPEND)).await.unwrap();
    let expected: String = (0..3 * WRITES).map(|number| format!("{number},")).collect();
    for writer in 0..WRITERS {
        assert_eq!(read(&store, format!("own{writer}/")).await.unwrap(), expected);
    }
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writes_are_applied_exactly_once_with_the_row_cache() {
    exactly_once(1 << 20).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writes_are_applied_exactly_once_without_the_row_cache() {
    exactly_once(0).await;
}

/// Shows that no later reader misses what one reader has seen, by get or by scan.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn reads_never_go_back() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let seen = Arc::new([const { AtomicU64::new(0) }; 4]);
    let done = Arc::new(AtomicU64::new(0));
    let readers = (0..6).map(|reader| {
        let (store, seen, done) = (store.clone(), seen.clone(), done.clone());
        tokio::spawn(async move {
            let mut reads = 0u64;
            while done.load(Ordering::SeqCst) == 0 {
                let at = reads as usize % seen.len();
                let name = key(format!("k{at}/"));
                let tablet = store.tablet(token(&name)).unwrap();
                let before = seen[at].load(Ordering::SeqCst);
                let len = if reader % 2 == 0 {
                    tablet.get(&name).await.unwrap().map_or(0, |row| row.len())
                } else {
                    let mut scan = tablet.scan(name.clone()..=name.clone(), false).await.unwrap();
                    scan.next().await.unwrap().map_or(0, |(_, row)| row.len())
                } as u64;
                assert!(len >= before, "reader {reader} saw {len} after {before}");
                seen[at].fetch_max(len, Ordering::SeqCst);
                reads += 1;
            }
            reads
        })
    });
    let readers: Vec<_> = readers.collect();
    for index in 0..3000 {
        write(&store, format!("k{}/", index % seen.len()), "x").await;
    }
    done.store(1, Ordering::SeqCst);
    for reader in readers {
        assert!(reader.await.unwrap() > 100);
    }
    assert_eq!(read(&store, "k0/").await.unwrap().len(), 750);
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clean_end_leaves_nothing_to_replay() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    for index in 0..200 {
        write(&store, format!("k{index}/"), "v").await;
    }
    store.close().await.unwrap();
    drop(store);
    let store = open(folder.path()).await;
    assert_eq!(dump(&store).await.len(), 200);
    // The log's last segment may still exist, but its records are no longer needed.
    write(&store, "k0/", "w").await;
    assert_eq!(read(&store, "k0/").await.as_deref(), Some("vw"));
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_is_cut_and_its_files_used_again() {
    let folder = tempfile::tempdir().unwrap();
    let config = StoreConfig {
        memtable_bytes: 4 << 20,
        log_segment_bytes: 256 << 10,
        log_max_bytes: 1 << 20,
        ..StoreConfig::small(folder.path())
    };
    let store = Store::open(config, Arc::new(APPEND)).await.unwrap();
    let padding = "x".repeat(2000);
    for index in 0..400 {
        let tasks = (0..20).map(|task| write(&store, format!("k{index}-{task}/"), &padding));
        futures::future::join_all(tasks).await;
    }
    // The other tablet has only one write, which must not keep the whole log.
    for _ in 0..100 {
        if store.stats().log.live_bytes < 2 << 20 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    let stats = store.stats();
    assert!(stats.log.bytes > 15 << 20, "{:?}", stats.log);
    assert!(stats.log.live_bytes < 3 << 20, "{:?}", stats.log);
    let files = std::fs::read_dir(folder.path().join("log")).unwrap().count();
    assert!(files < 20, "{files} files");
    drop(store);
    let store = open(folder.path()).await;
    assert_eq!(dump(&store).await.len(), 8000);
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_that_need_not_be_durable_are_seen_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let mut batch = WriteBatch::new();
    batch.merge(1, key("a/"), key("1"));
    store.write(batch.clone(), false).await.unwrap();
    assert_eq!(store.tablet(1).unwrap().get(b"a/").await.unwrap().unwrap(), "1");
    assert_eq!(store.stats().log.syncs, 0);
    store.write(batch, true).await.unwrap();
    drop(store);
    // Only the durable write is sure to be there. New writes continue from there.
    let store = open(folder.path()).await;
    assert_eq!(store.tablet(1).unwrap().get(b"a/").await.unwrap().unwrap(), "1");
    let mut batch = WriteBatch::new();
    batch.merge(1, key("a/"), key("2"));
    store.write(batch, true).await.unwrap();
    assert_eq!(store.tablet(1).unwrap().get(b"a/").await.unwrap().unwrap(), "12");
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_opener_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let Err(error) = Store::open(StoreConfig::small(folder.path()), Arc::new(APPEND)).await else {
        panic!("opened twice");
    };
    assert!(matches!(error, StoreError::Locked { .. }), "{error}");
    assert!(
        error.to_string().contains(&std::process::id().to_string()),
        "{error}"
    );
    store.close().await.unwrap();
    drop(store);
    open(folder.path()).await.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_store_is_refused_in_words() {
    let folder = tempfile::tempdir().unwrap();
    open(folder.path()).await.close().await.unwrap();
    let path = folder.path().join("FORMAT");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("\"format\": 3", "\"format\": 4")).unwrap();
    let Err(error) = Store::open(StoreConfig::small(folder.path()), Arc::new(APPEND)).await else {
        panic!("opened a newer store");
    };
    assert!(
        error
            .to_string()
            .starts_with("this store was written by format 4, this binary understands up to 3")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documents_outlive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    assert_eq!(
        store.meta_put("schema", b"{}", MetaExpect::Absent).await.unwrap(),
        1
    );
    let id = store.store_id();
    drop(store);
    let store = open(folder.path()).await;
    assert_eq!(store.meta_get("schema").await.unwrap().unwrap().content, "{}");
    assert_eq!(store.store_id(), id);
    assert!(
        store
            .meta_put("schema", b"[]", MetaExpect::Version(7))
            .await
            .is_err()
    );
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_written_over_and_over_stay_quick_to_read() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    for _ in 0..4 {
        for _ in 0..50 {
            write(&store, "hot/", "x").await;
        }
        store.flush().await.unwrap();
    }
    let stats = &store.tablet(token(b"hot/")).unwrap().stats();
    assert!(stats.folded > 100, "{stats:?}");
    assert_eq!(read(&store, "hot/").await.unwrap().len(), 200);
    drop(store);
    let store = open(folder.path()).await;
    assert_eq!(read(&store, "hot/").await.unwrap().len(), 200);
    store.close().await.unwrap();
}

#[test]
fn urls() {
    use helenus_tablet::StoreUrl;
    assert_eq!(
        StoreUrl::parse("file:///a/b").unwrap(),
        StoreUrl::File("/a/b".into())
    );
    assert_eq!(
        StoreUrl::parse("./data").unwrap(),
        StoreUrl::File("./data".into())
    );
    assert!(matches!(
        StoreUrl::parse("s3://bucket/prefix").unwrap(),
        StoreUrl::Remote(_)
    ));
    let error = StoreUrl::parse("ftp://x/y").unwrap_err().to_string();
    assert!(
        error.contains("unknown scheme ftp") && error.contains("file:///path"),
        "{error}"
    );
}
