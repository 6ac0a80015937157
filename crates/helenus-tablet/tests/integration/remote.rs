//! A store in a bucket. Acknowledged writes are stored, even if processes die, are fenced, or the bucket answers with errors.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use helenus_tablet::{MetaExpect, Store, StoreError, Tablet, TabletEvent, WriteBatch, set_memory_store};
use object_store::ObjectStore;
use tokio::sync::watch;

use crate::bucket::{config, faulty, names, open, puts_of_log};
use crate::faulty::{Fault, Faulty, is_log};
use crate::support::{APPEND, dump, key, read, token, try_write, write};

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
    // The first store is not closed: a killed process would also lose its memory.
    let second = open("fenced").await;
    for name in &names {
        assert_eq!(read(&second, name).await.as_deref(), Some("1"), "{name}");
    }
    // Both tablets have the same log. The first store notices the fencing in a write, or has noticed it before.
    let error = try_write(&first, &names[0], "lost").await.unwrap_err();
    assert!(
        matches!(error, StoreError::Fenced | StoreError::NotOwned(_)),
        "{error}"
    );
    let mut lost = Vec::new();
    for _ in 0..2 {
        let TabletEvent::Lost { id, error } = events.recv().await.unwrap();
        assert!(matches!(error, StoreError::Fenced), "{error}");
        lost.push(id);
    }
    lost.sort_unstable();
    assert_eq!(lost, [1, 2]);
    assert!(first.tablet(0).is_err());
    for name in &names[..2] {
        let again = try_write(&first, name, "lost").await.unwrap_err();
        assert!(matches!(again, StoreError::NotOwned(_)), "{again}");
    }
    for name in &names {
        write(&second, name, "2").await;
        assert_eq!(read(&second, name).await.as_deref(), Some("12"), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_show_durable_writes_only_and_do_not_block() {
    let bucket = faulty("slow");
    let store = open("slow").await;
    write(&store, "row", "a").await;
    assert_eq!(read(&store, "row").await.as_deref(), Some("a"));

    let (gate, purge_blocked) = watch::channel(false);
    bucket.rule(move |path| match is_log(path) {
        true => Fault::Waits(purge_blocked.clone()),
        false => Fault::None,
    });
    // The bucket answers neither of the two writes.
    let writes = async {
        tokio::join!(try_write(&store, "row", "b"), async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            assert_eq!(
                read(&store, "row").await.as_deref(),
                Some("a"),
                "it is not durable"
            );
            try_write(&store, "row", "c").await
        })
    };
    let ended = tokio::time::timeout(Duration::from_secs(30), writes).await;
    let (first, second) = ended.expect("the writes wait for the bucket");
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
    let (gate, purge_blocked) = watch::channel(false);
    bucket.rule(move |_| Fault::Waits(purge_blocked.clone()));
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
async fn follow_up_of_write_runs_after_writer_has_left() {
    let bucket = faulty("followed");
    let store = open("followed").await;
    let batch = |operand: &'static str| {
        let mut batch = WriteBatch::new();
        batch.merge(token(b"row"), key("row"), Bytes::from_static(operand.as_bytes()));
        batch
    };
    let follower = || {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let followed = async move {
            let _ = sender.send(());
        };
        (followed, receiver)
    };
    let (gate, is_blocked) = watch::channel(false);
    bucket.rule(move |_| Fault::Waits(is_blocked.clone()));
    let (followed, mut is_followed) = follower();
    let error = store
        .write_followed(batch("a"), true, followed)
        .await
        .unwrap_err();
    assert!(matches!(error, StoreError::Unknown(_)), "{error}");
    assert!(is_followed.try_recv().is_err(), "the write is still under way");
    gate.send(true).unwrap();
    is_followed.await.unwrap();
    assert_eq!(read(&store, "row").await.as_deref(), Some("a"));

    bucket.heal();
    let (followed, is_followed) = follower();
    store.write_followed(batch("b"), true, followed).await.unwrap();
    assert!(is_followed.await.is_err(), "its writer sees to it");
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
    // The log accepts no more writes, and the process dies.
    bucket.rule(|path| match is_log(path) {
        true => Fault::Fails,
        false => Fault::None,
    });
    let error = store.write(batch("b"), true).await.unwrap_err();
    assert!(matches!(error, StoreError::Unknown(_)), "{error}");
    bucket.heal();
    let again = open("batch").await;
    let first = read(&again, &names[0]).await;
    assert!(matches!(first.as_deref(), Some("a" | "ab")), "{first:?}");
    // After another opening, nothing is applied twice.
    let third = open("batch").await;
    for store in [&again, &third] {
        assert_eq!(read(store, &names[1]).await, first, "all of it or nothing");
    }
    for name in &names {
        write(&third, name, "c").await;
        assert!(read(&third, name).await.unwrap().ends_with('c'), "{name}");
    }
    assert_eq!(dump(&third).await.len(), 2);
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
    // A write that appears to fail but took effect does not conflict with itself.
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
    // Unconditional writes all succeed, one after the other.
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
    let Err(error) = Store::open(config("refused"), Arc::new(APPEND)).await else {
        panic!("it opened");
    };
    assert!(error.to_string().contains("503 Slow Down"), "{error}");

    let error = open_with_format("newer", r#"{"format": 99}"#).await;
    assert!(
        matches!(error, StoreError::NewerFormat { found: 99, .. }),
        "{error}"
    );
    let tablets = r#"[{"id": 1, "first": -9223372036854775808, "last": 9223372036854775807}]"#;
    let format = format!(
        r#"{{"format": 2, "store_id": "{}", "written_by": "helenus 0.1.0", "tablets": {tablets}}}"#,
        uuid::Uuid::new_v4()
    );
    let error = open_with_format("older", &format).await;
    assert!(
        matches!(error, StoreError::OlderFormat { found: 2, .. }),
        "{error}"
    );
}

/// Returns the error of opening a bucket with that object `FORMAT`.
async fn open_with_format(name: &str, format: &str) -> StoreError {
    let bucket = Faulty::new();
    set_memory_store(name, Arc::new(bucket.clone()));
    let path = object_store::path::Path::from("prefix/FORMAT");
    let options = object_store::PutOptions::default();
    bucket
        .put_opts(&path, format.to_owned().into(), options)
        .await
        .unwrap();
    match Store::open(config(name), Arc::new(APPEND)).await {
        Err(error) => error,
        Ok(_) => panic!("it opened"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn log_is_flushed_and_trimmed_to_bound_replay() {
    let bucket = faulty("long");
    let store = open("long").await;
    let name = names(1).remove(0);
    let tablet = store.tablet(token(name.as_bytes())).unwrap();
    let files = |tablet: &Tablet| tablet.stats().level0_files + tablet.stats().sorted_runs;
    write(&store, &name, "a").await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(files(&tablet), 0, "one object is not much");
    for _ in 0..1100 {
        write(&store, &name, "b").await;
    }
    let end = Instant::now() + Duration::from_secs(30);
    while files(&tablet) == 0 || puts_of_log(&bucket).await > 600 {
        assert!(Instant::now() < end, "nothing is flushed, or nothing deleted");
        tokio::time::sleep(Duration::from_millis(500)).await;
        // Objects are deleted only after a later object no longer names them.
        write(&store, &name, "c").await;
    }
    let row = read(&store, &name).await;
    let again = open("long").await;
    assert_eq!(read(&again, &name).await, row);
}

/// Shows that owners that die one after the other before their first flush lose nothing.
#[tokio::test(flavor = "multi_thread")]
async fn several_owners_that_die_in_a_row_lose_nothing() {
    let mut expected = String::new();
    let mut dead = Vec::new();
    for operand in ["a", "b", "c", "d"] {
        let store = open("heirs").await;
        assert_eq!(read(&store, "row").await.unwrap_or_default(), expected);
        write(&store, "row", operand).await;
        expected.push_str(operand);
        dead.push(store);
    }
    let last = open("heirs").await;
    assert_eq!(read(&last, "row").await, Some(expected));
    for store in dead {
        assert!(try_write(&store, "row", "late").await.is_err());
    }
}
