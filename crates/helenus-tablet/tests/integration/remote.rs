//! A store in a bucket: acknowledged means there, whoever dies, fences or answers badly.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use helenus_tablet::{
    MetaExpect, Store, StoreConfig, StoreError, StoreUrl, Tablet, TabletEvent, TokenRange, WriteBatch,
    set_memory_store,
};
use object_store::ObjectStore;
use tokio::sync::watch;

use crate::faulty::{Fault, Faulty, is_log};
use crate::support::{Append, dump, key, read, token, try_write, write};

fn config(name: &str) -> StoreConfig {
    StoreConfig {
        url: StoreUrl::parse(&format!("memory://{name}/prefix")).unwrap(),
        write_timeout: Duration::from_millis(700),
        read_timeout: Duration::from_secs(2),
        ..StoreConfig::small(std::path::Path::new("/nowhere"))
    }
}

async fn open(name: &str) -> Arc<Store> {
    Store::open(config(name), Arc::new(Append)).await.unwrap()
}

/// A bucket of that name that misbehaves as it is told.
fn faulty(name: &str) -> Faulty {
    let faulty = Faulty::new();
    set_memory_store(name, Arc::new(faulty.clone()));
    faulty
}

/// Names of rows of either tablet, in turn.
fn names(count: usize) -> Vec<String> {
    let side = |positive: bool| {
        (0..)
            .map(|n| format!("row{n}"))
            .filter(move |name| (token(name.as_bytes()) >= 0) == positive)
            .take(count.div_ceil(2))
    };
    side(false)
        .zip(side(true))
        .flat_map(|(left, right)| [left, right])
        .take(count)
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_is_there_after_a_restart() {
    let store = open("restart").await;
    assert_eq!(store.tablets().len(), 2);
    for name in names(40) {
        write(&store, &name, "a").await;
        write(&store, &name, "b").await;
    }
    assert_eq!(read(&store, &names(1)[0]).await.as_deref(), Some("ab"));
    store.close().await.unwrap();
    assert!(matches!(
        try_write(&store, "late", "x").await,
        Err(StoreError::Closed)
    ));

    let again = open("restart").await;
    assert_eq!(again.store_id(), store.store_id());
    let rows = dump(&again).await;
    assert_eq!(rows.len(), 40);
    assert!(rows.iter().all(|(_, row)| row == "ab"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_process_fences_the_first() {
    let first = open("fenced").await;
    let mut events = first.tablet_events();
    let names = names(10);
    for name in &names {
        write(&first, name, "1").await;
    }
    // The first one is not closed: its memory is what a killed process loses.
    let second = open("fenced").await;
    for name in &names {
        assert_eq!(read(&second, name).await.as_deref(), Some("1"), "{name}");
    }
    for name in &names[..2] {
        let error = try_write(&first, name, "lost").await.unwrap_err();
        assert!(matches!(error, StoreError::Fenced), "{error}");
        let again = try_write(&first, name, "lost").await.unwrap_err();
        assert!(
            matches!(again, StoreError::NotOwned(_) | StoreError::Fenced),
            "{again}"
        );
    }
    let mut lost = Vec::new();
    for _ in 0..2 {
        let TabletEvent::Lost { id, error } = events.recv().await.unwrap();
        assert!(matches!(error, StoreError::Fenced), "{error}");
        lost.push(id);
    }
    lost.sort_unstable();
    assert_eq!(lost, [1, 2]);
    assert!(first.tablet(0).is_err());
    for name in &names {
        write(&second, name, "2").await;
        assert_eq!(read(&second, name).await.as_deref(), Some("12"), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_seen_before_it_is_durable_and_a_slow_store_is_not_waited_for() {
    let bucket = faulty("slow");
    let store = open("slow").await;
    write(&store, "row", "a").await;
    assert_eq!(read(&store, "row").await.as_deref(), Some("a"));

    let (gate, waits) = watch::channel(false);
    bucket.rule(move |path| match is_log(path) {
        true => Fault::Waits(waits.clone()),
        false => Fault::None,
    });
    let began = Instant::now();
    let (first, second) = tokio::join!(try_write(&store, "row", "b"), async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(
            read(&store, "row").await.as_deref(),
            Some("a"),
            "it is not durable"
        );
        try_write(&store, "row", "c").await
    });
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    for error in [first.unwrap_err(), second.unwrap_err()] {
        assert!(matches!(error, StoreError::Unknown(_)), "{error}");
    }
    assert_eq!(read(&store, "row").await.as_deref(), Some("a"));

    gate.send(true).unwrap();
    bucket.heal();
    write(&store, "row", "d").await;
    assert_eq!(
        read(&store, "row").await.as_deref(),
        Some("abcd"),
        "what was begun takes effect, once and in order"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_put_that_fails_after_it_took_effect_counts_once() {
    let bucket = faulty("after");
    let store = open("after").await;
    let mut puts = 0;
    bucket.rule(move |path| {
        puts += u32::from(is_log(path));
        match is_log(path) && puts % 2 == 1 {
            true => Fault::FailsAfter,
            false => Fault::None,
        }
    });
    for n in 0..10 {
        write(&store, "row", n.to_string()).await;
    }
    assert_eq!(read(&store, "row").await.as_deref(), Some("0123456789"));
    let again = open("after").await;
    assert_eq!(read(&again, "row").await.as_deref(), Some("0123456789"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_is_survived() {
    let bucket = faulty("outage");
    let store = open("outage").await;
    write(&store, "row", "a").await;
    bucket.rule(|_| Fault::Fails);
    let error = try_write(&store, "row", "b").await.unwrap_err();
    assert!(matches!(error, StoreError::Unknown(_)), "{error}");
    bucket.heal();
    let until = Instant::now() + Duration::from_secs(20);
    while try_write(&store, "row", "c").await.is_err() {
        assert!(Instant::now() < until, "the store does not recover");
    }
    let row = read(&store, "row").await.unwrap();
    assert!(row.starts_with("ab") && row.ends_with('c'), "{row}");
}

#[tokio::test(flavor = "multi_thread")]
async fn locks_are_held_until_the_outcome_is_known() {
    let bucket = faulty("locks");
    let store = open("locks").await;
    let (gate, waits) = watch::channel(false);
    bucket.rule(move |_| Fault::Waits(waits.clone()));
    let lock = Arc::new(tokio::sync::Mutex::new(()));
    let mut batch = WriteBatch::new();
    batch.merge(token(b"row"), key("row"), Bytes::from_static(b"a"));
    batch.hold = Some(Arc::new(lock.clone().lock_owned().await));
    let error = store.write(batch, true).await.unwrap_err();
    assert!(matches!(error, StoreError::Unknown(_)), "{error}");
    assert!(lock.try_lock().is_err(), "the write is still under way");
    gate.send(true).unwrap();
    drop(lock.lock().await);
    assert_eq!(read(&store, "row").await.as_deref(), Some("a"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_over_tablets_is_all_there_or_comes_to_be() {
    let bucket = faulty("batch");
    let names = names(2);
    let batch = |operand: &'static str| {
        let mut batch = WriteBatch::new();
        for name in &names {
            batch.merge(
                token(name.as_bytes()),
                key(name),
                Bytes::from_static(operand.as_bytes()),
            );
        }
        batch
    };
    let store = open("batch").await;
    store.write(batch("a"), true).await.unwrap();
    for name in &names {
        assert_eq!(read(&store, name).await.as_deref(), Some("a"));
    }
    // Its object goes, and with the next group its marks.
    let until = Instant::now() + Duration::from_secs(10);
    while count(&bucket, "prefix/batches").await > 0 {
        assert!(Instant::now() < until, "the batch's object stays");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }

    // The second tablet's log takes nothing more: half of the batch is there when the process dies.
    bucket.rule(
        |path| match is_log(path) && path.as_ref().contains("tablets/2/") {
            true => Fault::Fails,
            false => Fault::None,
        },
    );
    let error = store.write(batch("b"), true).await.unwrap_err();
    assert!(matches!(error, StoreError::Unknown(_)), "{error}");
    assert_eq!(count(&bucket, "prefix/batches").await, 1);
    bucket.heal();
    let again = open("batch").await;
    for name in &names {
        assert_eq!(read(&again, name).await.as_deref(), Some("ab"), "{name}: once");
    }
    // Opened yet again before anyone has cleaned up, nothing is applied twice.
    let third = open("batch").await;
    for name in &names {
        assert_eq!(read(&third, name).await.as_deref(), Some("ab"), "{name}: once");
    }
    let mut seen = Default::default();
    assert_eq!(third.finish_batches(&mut seen).await.unwrap(), 0);
    assert_eq!(third.finish_batches(&mut seen).await.unwrap(), 1);
    assert_eq!(count(&bucket, "prefix/batches").await, 0);
    for name in &names {
        write(&third, name, "c").await;
        assert_eq!(read(&third, name).await.as_deref(), Some("abc"), "{name}");
    }
    assert_eq!(dump(&third).await.len(), 2, "marks are gone");
}

async fn count(bucket: &Faulty, prefix: &str) -> usize {
    use futures::StreamExt;
    let prefix = object_store::path::Path::from(prefix);
    bucket.list(Some(&prefix)).count().await
}

#[tokio::test(flavor = "multi_thread")]
async fn tablets_come_and_go() {
    let config = StoreConfig {
        open_all_tablets: false,
        ..config("tablets")
    };
    let here = Store::open(config.clone(), Arc::new(Append)).await.unwrap();
    let there = Store::open(config, Arc::new(Append)).await.unwrap();
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

    // What is abandoned while it is opened is not served.
    let opening = {
        let here = here.clone();
        tokio::spawn(async move {
            let slowly = async {
                tokio::time::sleep(Duration::from_millis(200)).await;
                Ok(())
            };
            here.open_tablet_then(7, right_tokens, slowly).await
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
    // Handed over, all is there, with nothing to replay; what was counted stays counted.
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
async fn a_tablets_next_owner_has_a_clock_beyond_the_stamps_of_the_one_before() {
    let one = StoreConfig {
        open_all_tablets: false,
        ..config("stamps")
    };
    let fast = Store::open(one.clone(), Arc::new(Append)).await.unwrap();
    let slow = Store::open(one, Arc::new(Append)).await.unwrap();
    let (id, tokens) = fast.initial_tablets()[1];
    let in_it = |name: &String| tokens.contains(token(name.as_bytes()));
    let name = names(2).into_iter().find(in_it).unwrap();
    let hour_us = 3_600_000_000;
    let stamps_us = Arc::new(AtomicI64::new(slow.clock_us().unwrap() + hour_us));
    fast.keep_clock_beyond(stamps_us.clone());
    // The first stamp is in a data file then, the second one in the log.
    for is_flushed in [true, false] {
        fast.open_tablet(id, tokens).await.unwrap();
        write(&fast, &name, "a").await;
        match is_flushed {
            true => fast.hand_over_tablet(id).await.unwrap(),
            false => fast.abandon_tablet(id).unwrap(),
        }
        assert!(slow.clock_us().unwrap() < stamps_us.load(Ordering::Relaxed));
        slow.open_tablet(id, tokens).await.unwrap();
        assert!(slow.clock_us().unwrap() > stamps_us.load(Ordering::Relaxed));
        slow.hand_over_tablet(id).await.unwrap();
        stamps_us.fetch_add(hour_us, Ordering::Relaxed);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_are_changed_by_one_at_a_time() {
    let bucket = faulty("documents");
    let (here, there) = (open("documents").await, open("documents").await);
    let first = here.meta_put("schema", b"1", MetaExpect::Absent).await.unwrap();
    let error = there
        .meta_put("schema", b"x", MetaExpect::Absent)
        .await
        .unwrap_err();
    assert!(matches!(error, StoreError::MetaConflict(_)));
    // One that seems to fail and took effect is no conflict with itself.
    let mut times = 0;
    bucket.rule(move |path| {
        times += u32::from(path.as_ref().contains("meta/"));
        if times == 1 {
            Fault::FailsAfter
        } else {
            Fault::None
        }
    });
    let version = MetaExpect::Version(first);
    let second = there.meta_put("schema", b"2", version).await.unwrap();
    assert_eq!(second, first + 1);
    assert!(here.meta_put("schema", b"x", version).await.is_err());
    let found = here.meta_get("schema").await.unwrap().unwrap();
    assert_eq!((found.version, found.content.as_ref()), (second, b"2".as_slice()));
    // Whatever is there: all of them get through, one after the other.
    let puts = (0..8).map(|n| {
        let store = if n % 2 == 0 { &here } else { &there };
        store.meta_put("schema", b"any", MetaExpect::Any)
    });
    let mut versions: Vec<_> = futures::future::join_all(puts)
        .await
        .into_iter()
        .map(Result::unwrap)
        .collect();
    versions.sort_unstable();
    assert_eq!(versions, (second + 1..second + 9).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_that_cannot_carry_a_store_is_refused() {
    let bucket = faulty("refused");
    bucket.rule(|_| Fault::Fails);
    let Err(error) = Store::open(config("refused"), Arc::new(Append)).await else {
        panic!("it opened");
    };
    assert!(error.to_string().contains("503 Slow Down"), "{error}");

    let newer = Faulty::new();
    set_memory_store("newer", Arc::new(newer.clone()));
    let path = object_store::path::Path::from("prefix/FORMAT");
    let options = object_store::PutOptions::default();
    let format = r#"{"format": 99}"#;
    newer.put_opts(&path, format.into(), options).await.unwrap();
    let Err(error) = Store::open(config("newer"), Arc::new(Append)).await else {
        panic!("it opened");
    };
    assert!(
        matches!(error, StoreError::NewerFormat { found: 99, .. }),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tablet_is_split_under_writes_without_copying_and_merged_again() {
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

    // Writers go on all the time; what they are refused they try again.
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

    // The children have the parent's files until they have compacted them: what is not theirs goes on the way.
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

    // Again one.
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

/// All keys that a tablet has, whoever's they are.
async fn keys(tablet: &Tablet) -> Vec<Bytes> {
    let mut scan = tablet.scan(.., false).await.unwrap();
    let mut keys = Vec::new();
    while let Some((key, _)) = scan.next().await.unwrap() {
        keys.push(key);
    }
    keys
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tablet_that_cannot_flush_for_lack_of_compactions_is_handed_over_all_the_same() {
    let config = StoreConfig {
        open_all_tablets: false,
        tablet_count: 1,
        // Nothing is compacted.
        compaction_poll_interval: Duration::from_secs(3600),
        ..config("full")
    };
    let here = Store::open(config.clone(), Arc::new(Append)).await.unwrap();
    let there = Store::open(config, Arc::new(Append)).await.unwrap();
    let (id, tokens) = here.initial_tablets()[0];
    let tablet = here.open_tablet(id, tokens).await.unwrap();
    let names = names(30);
    let mut is_full = false;
    for name in &names {
        write(&here, name, "1").await;
        let flushed = tokio::time::timeout(Duration::from_millis(300), tablet.flush()).await;
        is_full = flushed.is_err();
        if is_full {
            break;
        }
    }
    assert!(is_full, "files at level 0 are not limited any more");
    write(&here, "last", "1").await;
    let began = Instant::now();
    here.close_tablet(id).await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    let files = tablet.stats().level0_files;
    there.open_tablet(id, tokens).await.unwrap();
    for name in &names[..files as usize + 1] {
        assert_eq!(read(&there, name).await.as_deref(), Some("1"), "{name}");
    }
    assert_eq!(read(&there, "last").await.as_deref(), Some("1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_is_flushed_before_it_takes_long_to_replay() {
    let store = open("long").await;
    let (left, right) = (names(2)[0].clone(), names(2)[1].clone());
    write(&store, &right, "a").await;
    let files = |tablet: &Tablet| tablet.stats().level0_files + tablet.stats().sorted_runs;
    let until = |tablet: Arc<Tablet>, wanted: u64| async move {
        let end = Instant::now() + Duration::from_secs(20);
        while files(&tablet) < wanted {
            assert!(Instant::now() < end, "nothing is flushed");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    // What the opening has replayed, or might have.
    until(store.tablet(token(right.as_bytes())).unwrap(), 1).await;
    // The other one is looked at every half second too.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let tablet = store.tablet(token(left.as_bytes())).unwrap();
    assert_eq!(files(&tablet), 0, "there was nothing to flush");
    write(&store, &left, "a").await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(files(&tablet), 0, "one object is not much");
    for _ in 0..260 {
        write(&store, &left, "b").await;
    }
    until(tablet, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tablet_that_was_opened_ahead_is_taken_over_unless_another_has_opened_it_since() {
    let bucket = faulty("ahead");
    let one = StoreConfig {
        open_all_tablets: false,
        ..config("ahead")
    };
    let (here, there) = (
        Store::open(one.clone(), Arc::new(Append)).await.unwrap(),
        Store::open(one, Arc::new(Append)).await.unwrap(),
    );
    let (id, tokens) = here.initial_tablets()[0];
    let name = names(1).remove(0);
    here.open_tablet(id, tokens).await.unwrap();
    write(&here, &name, "1").await;
    assert!(here.open_tablet_ahead(id, tokens).await.is_err(), "it is open");
    // So that there is nothing to flush later.
    here.tablets()[0].flush().await.unwrap();
    let manifests = count(&bucket, "prefix/tablets/1/manifest").await;
    here.hand_over_tablet(id).await.unwrap();
    write_nothing(&there, &name).await;
    there.open_tablet_ahead(id, tokens).await.unwrap();
    let after = count(&bucket, "prefix/tablets/1/manifest").await;
    assert_eq!(after, manifests + 1, "its former owner keeps out of its way");
    write_nothing(&there, &name).await;
    let before = puts_of_log(&bucket).await;
    there.open_tablet(id, tokens).await.unwrap();
    assert_eq!(puts_of_log(&bucket).await, before, "it was fenced already");
    write(&there, &name, "2").await;

    // Handed over, opened ahead there, but opened by its former owner again, which goes on for a while.
    there.hand_over_tablet(id).await.unwrap();
    here.open_tablet_ahead(id, tokens).await.unwrap();
    there.open_tablet(id, tokens).await.unwrap();
    write(&there, &name, "3").await;
    there.hand_over_tablet(id).await.unwrap();
    here.open_tablet(id, tokens).await.unwrap();
    assert_eq!(read(&here, &name).await.as_deref(), Some("123"));
    write(&here, &name, "4").await;
    assert_eq!(read(&here, &name).await.as_deref(), Some("1234"));
}

/// What is opened ahead is not served.
async fn write_nothing(store: &Store, name: &str) {
    assert!(matches!(
        try_write(store, name, "x").await,
        Err(StoreError::NotOwned(_))
    ));
}

async fn puts_of_log(bucket: &Faulty) -> usize {
    count(bucket, "prefix/tablets/1/wal").await
}
