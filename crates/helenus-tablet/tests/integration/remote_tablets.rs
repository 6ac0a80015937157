//! Tablets of a store in a bucket, opened, handed over, split and merged one by one.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use helenus_tablet::{Store, StoreConfig, StoreError, Tablet, TokenRange};

use crate::bucket::{config, count, faulty, names, open, puts_of_log};
use crate::support::{APPEND, dump, read, token, try_write, write};

/// Number of files at level 0 with which a tablet cannot flush any more.
const LEVEL0_MAX: usize = 16;
/// Time limit of everything that must end.
const LIMIT: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread")]
async fn tablets_come_and_go() {
    let config = StoreConfig {
        open_all_tablets: false,
        ..config("tablets")
    };
    let here = Store::open(config.clone(), Arc::new(APPEND)).await.unwrap();
    let there = Store::open(config, Arc::new(APPEND)).await.unwrap();
    assert_eq!(here.store_id(), there.store_id());
    assert!(here.tablets().is_empty());
    assert!(matches!(
        try_write(&here, "row", "x").await,
        Err(StoreError::NotOwned(_))
    ));
    let [(left, left_tokens), (right, right_tokens)] = here.initial_tablets()[..] else {
        panic!("two tablets");
    };
    here.open_tablet(left, left_tokens).await.unwrap();
    here.open_tablet(left, left_tokens).await.unwrap();
    there.open_tablet(right, right_tokens).await.unwrap();
    let everything = TokenRange {
        first: i64::MIN,
        last: i64::MAX,
    };
    let error = here.open_tablet(9, everything).await.err().unwrap();
    assert!(error.to_string().contains("is open"), "{error}");

    // A tablet that is abandoned while it is being opened is not served.
    let opening = {
        let here = here.clone();
        tokio::spawn(async move {
            let slowly = async {
                tokio::time::sleep(Duration::from_millis(200)).await;
                Ok(())
            };
            here.open_tablet_after(7, right_tokens, slowly).await
        })
    };
    tokio::time::sleep(Duration::from_millis(100)).await;
    here.abandon_tablet(7).unwrap();
    assert!(opening.await.unwrap().is_err());
    assert!(here.tablet(i64::MAX).is_err());

    let names = names(20);
    let owner = |name: &str| if token(name.as_bytes()) < 0 { &here } else { &there };
    for name in &names {
        write(owner(name), name, "1").await;
    }
    // After a hand-over all rows are there, with nothing to replay. The counters keep their values.
    here.tablets()[0].flush().await.unwrap();
    let counted = here.stats().totals;
    assert!(counted.operands > 0);
    here.close_tablet(left).await.unwrap();
    assert!(here.stats().tablets.is_empty());
    assert_eq!(here.stats().totals, counted);
    here.close_tablet(left).await.unwrap();
    assert!(matches!(
        try_write(&here, &names[0], "x").await,
        Err(StoreError::NotOwned(_))
    ));
    let tablet = there.open_tablet(left, left_tokens).await.unwrap();
    assert!(tablet.stats().level0_files + tablet.stats().sorted_runs > 0);
    assert_eq!(dump(&there).await.len(), 20);
    for name in &names {
        write(&there, name, "2").await;
        assert_eq!(read(&there, name).await.as_deref(), Some("12"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn next_owners_clock_is_beyond_former_timestamps() {
    let one = StoreConfig {
        open_all_tablets: false,
        ..config("stamps")
    };
    let fast = Store::open(one.clone(), Arc::new(APPEND)).await.unwrap();
    let slow = Store::open(one, Arc::new(APPEND)).await.unwrap();
    let (id, tokens) = fast.initial_tablets()[1];
    let in_it = |name: &String| tokens.contains(token(name.as_bytes()));
    let name = names(2).into_iter().find(in_it).unwrap();
    let hour_us = 3_600_000_000;
    let stamps_us = Arc::new(AtomicI64::new(slow.clock_us() + hour_us));
    fast.keep_clock_beyond(stamps_us.clone());
    // The first stamp is in a data file then, and the second one in the log.
    for is_flushed in [true, false] {
        fast.open_tablet(id, tokens).await.unwrap();
        write(&fast, &name, "a").await;
        match is_flushed {
            true => fast.hand_over_tablet(id).await.unwrap(),
            false => fast.abandon_tablet(id).unwrap(),
        }
        assert!(slow.clock_us() < stamps_us.load(Ordering::Relaxed));
        slow.open_tablet(id, tokens).await.unwrap();
        assert!(slow.clock_us() > stamps_us.load(Ordering::Relaxed));
        slow.hand_over_tablet(id).await.unwrap();
        stamps_us.fetch_add(hour_us, Ordering::Relaxed);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tablet_splits_without_copy_under_writes_and_merges() {
    let bucket = faulty("split");
    let store = open("split").await;
    let parent = store.tablet(i64::MAX).unwrap();
    let (id, tokens) = (parent.id(), parent.token_range());
    let middle = tokens.first + (tokens.last - tokens.first) / 2;
    let children = [
        (
            11,
            TokenRange {
                last: middle,
                ..tokens
            },
        ),
        (
            12,
            TokenRange {
                first: middle + 1,
                ..tokens
            },
        ),
    ];
    let wrong = [(11, tokens), children[1]];
    assert!(store.split_tablet(id, wrong).await.is_err());

    // Writers continue all the time, and retry refused writes.
    let done = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let (store, done) = (store.clone(), done.clone());
            tokio::spawn(async move {
                let mut written = Vec::new();
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    let name = format!("{writer}/{}", written.len());
                    while let Err(error) = try_write(&store, &name, "x").await {
                        assert!(matches!(error, StoreError::NotOwned(_)), "{error}");
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                    written.push(name);
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                written
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(300)).await;
    store.split_tablet(id, children).await.unwrap();
    assert!(store.tablet(tokens.last).is_err(), "the parent is closed");
    assert_eq!(
        count(&bucket, "prefix/tablets/11/compacted").await,
        0,
        "no row is copied"
    );
    for (child, tokens) in children {
        store.open_tablet(child, tokens).await.unwrap();
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    done.store(true, std::sync::atomic::Ordering::Relaxed);
    let mut written: Vec<String> = Vec::new();
    for writer in writers {
        written.extend(writer.await.unwrap());
    }
    for name in &written {
        assert_eq!(read(&store, name).await.as_deref(), Some("x"), "{name}");
    }
    assert!(written.len() > 100);

    // The children have the parent's files until they have compacted them. Compactions drop the rows of the sibling.
    assert!(!store.remove_tablet(id).await.unwrap(), "it is still needed");
    let until = Instant::now() + Duration::from_secs(30);
    for (child, range) in children {
        let tablet = store.tablet(range.first).unwrap();
        assert_eq!(tablet.id(), child);
        let fillers = (0..).map(|n| format!("gone{n}"));
        let fillers: Vec<_> = fillers
            .filter(|name| range.contains(token(name.as_bytes())))
            .take(4)
            .collect();
        while keys(&tablet).await.iter().any(|key| !range.contains(token(key))) {
            assert!(Instant::now() < until, "foreign rows stay in tablet {child}");
            for name in &fillers {
                write(&store, name, "y").await;
                tablet.flush().await.unwrap();
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    // The children are merged into one tablet again.
    store.merge_tablets(&[11, 12], (13, tokens)).await.unwrap();
    let again = store.open_tablet(13, tokens).await.unwrap();
    let own = written
        .iter()
        .filter(|name| tokens.contains(token(name.as_bytes())));
    let found = keys(&again).await;
    assert_eq!(
        found.iter().filter(|key| !key.starts_with(b"gone")).count(),
        own.count()
    );
    for name in &written {
        assert_eq!(read(&store, name).await.as_deref(), Some("x"), "{name}");
    }
    for child in [11, 12] {
        // Compactions keep their inputs for a while.
        while !store.remove_tablet(child).await.unwrap() {
            assert!(Instant::now() < until, "tablet {child} stays");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(count(&bucket, &format!("prefix/tablets/{child}")).await, 0);
    }
}

/// Returns all keys in a tablet's files, including those of its sibling.
async fn keys(tablet: &Tablet) -> Vec<Bytes> {
    let mut scan = tablet.scan(.., false).await.unwrap();
    let mut keys = Vec::new();
    while let Some((key, _)) = scan.next().await.unwrap() {
        keys.push(key);
    }
    keys
}

#[tokio::test(flavor = "multi_thread")]
async fn tablet_blocked_on_compactions_is_handed_over() {
    let config = StoreConfig {
        open_all_tablets: false,
        tablet_count: 1,
        // Compactions do not run within the test.
        compaction_poll_interval: Duration::from_secs(3600),
        ..config("full")
    };
    let here = Store::open(config.clone(), Arc::new(APPEND)).await.unwrap();
    let there = Store::open(config, Arc::new(APPEND)).await.unwrap();
    let (id, tokens) = here.initial_tablets()[0];
    let tablet = here.open_tablet(id, tokens).await.unwrap();
    let names = names(30);
    for name in &names[..LEVEL0_MAX] {
        write(&here, name, "1").await;
        let flushed = tokio::time::timeout(LIMIT, tablet.flush()).await;
        flushed.expect("a file finds no room at level 0").unwrap();
    }
    write(&here, &names[LEVEL0_MAX], "1").await;
    let flushed = tokio::time::timeout(Duration::from_millis(300), tablet.flush()).await;
    assert!(
        flushed.is_err(),
        "files at level 0 are not limited to {LEVEL0_MAX}"
    );
    write(&here, "last", "1").await;
    let closed = tokio::time::timeout(LIMIT, here.close_tablet(id)).await;
    closed
        .expect("closing waits for a flush that cannot be done")
        .unwrap();
    let files = tablet.stats().level0_files;
    assert_eq!(files as usize, LEVEL0_MAX);
    there.open_tablet(id, tokens).await.unwrap();
    for name in &names[..files as usize + 1] {
        assert_eq!(read(&there, name).await.as_deref(), Some("1"), "{name}");
    }
    assert_eq!(read(&there, "last").await.as_deref(), Some("1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn preopened_tablet_is_taken_unless_opened_elsewhere() {
    let bucket = faulty("ahead");
    let one = StoreConfig {
        open_all_tablets: false,
        ..config("ahead")
    };
    let (here, there) = (
        Store::open(one.clone(), Arc::new(APPEND)).await.unwrap(),
        Store::open(one, Arc::new(APPEND)).await.unwrap(),
    );
    let (id, tokens) = here.initial_tablets()[0];
    let name = names(1).remove(0);
    here.open_tablet(id, tokens).await.unwrap();
    write(&here, &name, "1").await;
    assert!(here.open_standby(id, tokens).await.is_err(), "it is open");
    // The flush leaves nothing to flush later.
    here.tablets()[0].flush().await.unwrap();
    let manifests = count(&bucket, "prefix/tablets/1/manifest").await;
    here.hand_over_tablet(id).await.unwrap();
    write_nothing(&there, &name).await;
    there.open_standby(id, tokens).await.unwrap();
    let after = count(&bucket, "prefix/tablets/1/manifest").await;
    assert_eq!(after, manifests + 1, "its former owner keeps out of its way");
    write_nothing(&there, &name).await;
    let before = puts_of_log(&bucket).await;
    there.open_tablet(id, tokens).await.unwrap();
    assert_eq!(puts_of_log(&bucket).await, before, "nothing is to be fenced");
    write(&there, &name, "2").await;

    // The tablet is handed over and opened as a standby here. But its former owner opens it again and continues for a while.
    there.hand_over_tablet(id).await.unwrap();
    here.open_standby(id, tokens).await.unwrap();
    there.open_tablet(id, tokens).await.unwrap();
    write(&there, &name, "3").await;
    there.hand_over_tablet(id).await.unwrap();
    here.open_tablet(id, tokens).await.unwrap();
    assert_eq!(read(&here, &name).await.as_deref(), Some("123"));
    write(&here, &name, "4").await;
    assert_eq!(read(&here, &name).await.as_deref(), Some("1234"));
}

/// Checks that a tablet is not served, even if it is open as a standby.
async fn write_nothing(store: &Store, name: &str) {
    assert!(matches!(
        try_write(store, name, "x").await,
        Err(StoreError::NotOwned(_))
    ));
}
