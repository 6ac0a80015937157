//! A log in a place apart from the data. All of the log is there, and the store is not opened without it.

use std::sync::Arc;

use futures::StreamExt;
use helenus_tablet::{Store, StoreConfig, StoreError, StoreUrl, TokenRange, WriteBatch, set_memory_store};
use object_store::ObjectStore;
use object_store::memory::InMemory;

use crate::support::{APPEND, dump, key, read, token, write};

fn config(name: &str, log: Option<&str>) -> StoreConfig {
    StoreConfig {
        url: StoreUrl::parse(&format!("memory://{name}/data")).unwrap(),
        log_store: log.map(|url| StoreUrl::parse(url).unwrap()),
        ..StoreConfig::small(std::path::Path::new("/nowhere"))
    }
}

async fn open(config: StoreConfig) -> Result<Arc<Store>, StoreError> {
    Store::open(config, Arc::new(APPEND)).await
}

async fn refusal(config: StoreConfig) -> String {
    match open(config).await {
        Ok(_) => panic!("it opened"),
        Err(error) => error.to_string(),
    }
}

/// Creates an empty bucket of this name.
fn bucket(name: &str) -> Arc<InMemory> {
    let bucket = Arc::new(InMemory::new());
    set_memory_store(name, bucket.clone());
    bucket
}

async fn objects(bucket: &InMemory) -> Vec<String> {
    let found = bucket
        .list(None)
        .map(|object| object.unwrap().location.to_string());
    found.collect().await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_lies_apart_and_is_replayed_from_there() {
    let (data, log) = (bucket("apart"), bucket("apart-log"));
    let with_log = config("apart", Some("memory://apart-log/logs"));
    let store = open(with_log.clone()).await.unwrap();
    let names: Vec<String> = (0..20).map(|n| format!("row{n}")).collect();
    for name in &names {
        write(&store, name, "a").await;
    }
    // The batch spans both tablets, in one record.
    let mut batch = WriteBatch::new();
    for name in &names {
        batch.merge(token(name.as_bytes()), key(name), bytes::Bytes::from_static(b"b"));
    }
    store.write(batch, true).await.unwrap();
    assert!(store.stats().bucket.unwrap().puts > 20);

    let is_log = |path: &String| path.contains("logs/") && !path.ends_with("/LOG");
    assert!(
        !objects(&data).await.iter().any(is_log),
        "the log is not among the data"
    );
    let prefix = format!("logs/{}/", store.store_id());
    let of_store = format!("{prefix}logs/");
    let logged = objects(&log).await;
    assert!(logged.iter().all(|path| path.starts_with(&prefix)), "{logged:?}");
    assert!(
        logged.iter().filter(|path| path.starts_with(&of_store)).count() > 20,
        "{logged:?}"
    );

    // The first store is not closed, so nothing was flushed.
    let again = open(with_log.clone()).await.unwrap();
    assert_eq!(again.store_id(), store.store_id());
    for name in &names {
        assert_eq!(read(&again, name).await.as_deref(), Some("ab"), "{name}");
    }

    // Children of a split are written to the same log.
    let parent = again.tablet(i64::MAX).unwrap();
    let tokens = parent.token_range();
    let middle = tokens.first + (tokens.last - tokens.first) / 2;
    let lower = TokenRange {
        last: middle,
        ..tokens
    };
    let upper = TokenRange {
        first: middle + 1,
        ..tokens
    };
    again
        .split_tablet(parent.id(), [(11, lower), (12, upper)])
        .await
        .unwrap();
    again.open_tablet(11, lower).await.unwrap();
    again.open_tablet(12, upper).await.unwrap();
    for name in &names {
        write(&again, name, "c").await;
        assert_eq!(read(&again, name).await.as_deref(), Some("abc"), "{name}");
    }
    again.close_tablet(12).await.unwrap();
    again.remove_tablet(12).await.unwrap();
    again.close().await.unwrap();
    // A log that has ended cleanly leaves only its fence, and no tablet names the fenced log any more.
    let ended = objects(&log)
        .await
        .into_iter()
        .filter(|path| path.starts_with(&of_store));
    assert!(ended.count() < 30, "the newer log is deleted");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_is_not_opened_without_its_log() {
    let _data = bucket("bound");
    let with_log = config("bound", Some("memory://bound-log"));
    let store = open(with_log.clone()).await.unwrap();
    write(&store, "row", "a").await;

    let error = refusal(config("bound", None)).await;
    assert!(
        error.contains("start with --log-store memory://bound-log"),
        "{error}"
    );
    let error = refusal(config("bound", Some("memory://other"))).await;
    assert!(
        error.contains("is not there") && error.contains("memory://bound-log"),
        "{error}"
    );
    // The place is a folder of another machine.
    let folder = tempfile::tempdir().unwrap();
    let error = refusal(config("bound", Some(folder.path().to_str().unwrap()))).await;
    assert!(error.contains("is not there"), "{error}");
    // The failed attempts have fenced no log.
    write(&store, "row", "b").await;
    let again = open(with_log).await.unwrap();
    assert_eq!(read(&again, "row").await.as_deref(), Some("ab"));

    let _plain = bucket("plain");
    open(config("plain", None)).await.unwrap();
    let error = refusal(config("plain", Some("memory://bound-log"))).await;
    assert!(error.contains("move it with helenus migrate-log"), "{error}");
    let local = StoreConfig {
        log_store: Some(StoreUrl::parse("memory://bound-log").unwrap()),
        ..StoreConfig::small(folder.path())
    };
    let error = refusal(local).await;
    assert!(error.contains("log_store"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_may_lie_in_a_folder() {
    let data = bucket("shared");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let with_log = config("shared", Some(path.to_str().unwrap()));
    let first = open(with_log.clone()).await.unwrap();
    for n in 0..10 {
        write(&first, &format!("row{n}"), "a").await;
    }
    assert!(!objects(&data).await.iter().any(|path| path.contains("logs/")));
    // Fencing also works there.
    let second = open(with_log).await.unwrap();
    assert_eq!(dump(&second).await.len(), 10);
    let mut batch = WriteBatch::new();
    batch.merge(token(b"row1"), key("row1"), bytes::Bytes::from_static(b"lost"));
    let error = first.write(batch, true).await.unwrap_err();
    // The fencing is noticed by the PUT that is refused, or by the manifest before that.
    let is_reported = matches!(
        error,
        StoreError::Fenced | StoreError::Unknown(_) | StoreError::NotOwned(_)
    );
    assert!(is_reported, "{error}");
    assert_eq!(read(&second, "row1").await.as_deref(), Some("a"));
}
