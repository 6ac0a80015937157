use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use helenus_tablet::{DataModelError, RowMerge, Store, StoreConfig, StoreError, WriteBatch};

use crate::plain_model::PlainModel;
use crate::support::*;

fn files(folder: &Path, suffix: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        if entry.file_type().unwrap().is_dir() {
            found.extend(files(&entry.path(), suffix));
        } else if entry.file_name().to_string_lossy().ends_with(suffix) {
            found.push(entry.path());
        }
    }
    found.sort();
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_log_is_named_and_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    for index in 0..100 {
        write(&store, format!("k{index}/"), "value").await;
    }
    drop(store);
    let path = files(&folder.path().join("log"), ".log").pop().unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[500] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let Err(error) = Store::open(StoreConfig::small(folder.path()), Arc::new(APPEND)).await else {
        panic!("a damaged log was opened");
    };
    let text = error.to_string();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{text}");
    assert!(
        text.contains(path.file_name().unwrap().to_str().unwrap()) && text.contains("offset"),
        "{text}"
    );
    bytes[500] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let store = open(folder.path()).await;
    assert_eq!(dump(&store).await.len(), 100);
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_torn_tail_is_not_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    for index in 0..100 {
        write(&store, format!("k{index}/"), "value").await;
    }
    drop(store);
    let path = files(&folder.path().join("log"), ".log").pop().unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    // This is a frame that was begun and not acknowledged.
    let last = bytes.iter().rposition(|&byte| byte != 0).unwrap();
    bytes[last + 1..last + 9].copy_from_slice(b"HLRF\x01\x02\x03\x04");
    std::fs::write(&path, &bytes).unwrap();
    for _ in 0..2 {
        let store = open(folder.path()).await;
        assert!(dump(&store).await.len() >= 100);
        write(&store, "after/", "x").await;
        drop(store);
    }
    let store = open(folder.path()).await;
    assert_eq!(read(&store, "after/").await.as_deref(), Some("xx"));
    store.close().await.unwrap();
}

/// A data model with a defect: rows with `poison` in them cannot be merged.
const POISONED: PlainModel = PlainModel {
    compaction: APPEND.compaction,
    ..PlainModel::new(merge_unless_poisoned)
};

fn merge_unless_poisoned(
    key: &[u8],
    existing: Option<&Bytes>,
    operands: &[Bytes],
) -> Result<Bytes, DataModelError> {
    match operands.iter().any(|operand| operand.starts_with(b"poison")) {
        true => Err(DataModelError("poison".into())),
        false => APPEND.merge(key, existing, operands),
    }
}

async fn open_poisoned(folder: &Path) -> Arc<Store> {
    let config = StoreConfig::small(folder);
    Store::open(config, Arc::new(POISONED)).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_merged_stops_its_tablet_and_stays_in_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let store = open_poisoned(folder.path()).await;
    let (poisoned, other) = ("k/", "other/");
    write(&store, poisoned, "first,").await;
    assert!(store.failed_tablets().is_empty());
    let mut batch = WriteBatch::new();
    for operand in ["second,", "poison"] {
        batch.merge(token(poisoned.as_bytes()), key(poisoned), key(operand));
    }
    let refused = store.write(batch, true).await.unwrap_err().to_string();
    assert!(
        refused.contains("stopped") && refused.contains("poison"),
        "{refused}"
    );
    // Neither reads nor writes skip the record, in this run or in the next one of the same binary.
    let mut store = store;
    for _ in 0..2 {
        let tablet = store.tablet(token(poisoned.as_bytes())).unwrap();
        let read = tablet.get(poisoned.as_bytes()).await.unwrap_err().to_string();
        assert!(read.contains("stopped"), "{read}");
        assert!(try_write(&store, poisoned, "later").await.is_err());
        let troubles = store.failed_tablets();
        assert!(
            troubles.len() == 1 && troubles[0].contains("stopped"),
            "{troubles:?}"
        );
        drop(store);
        store = open_poisoned(folder.path()).await;
    }
    drop(store);
    let store = open(folder.path()).await;
    assert_eq!(
        read(&store, poisoned).await.as_deref(),
        Some("first,second,poison")
    );
    write(&store, other, "x").await;
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_file_that_is_used_again_is_not_taken_for_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let store = open(folder.path()).await;
    for index in 0..300 {
        write(&store, format!("k{index}/"), "value").await;
    }
    store.flush().await.unwrap();
    store.close().await.unwrap();
    drop(store);
    // All records of the log are in the tablets, and no new ones are written. So its files become spare files.
    let store = open(folder.path()).await;
    let deadline = Instant::now() + Duration::from_secs(30);
    while !files(&log, ".log").is_empty() {
        assert!(Instant::now() < deadline, "the log is still there");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(!files(&log, ".spare").is_empty());
    store.close().await.unwrap();
    drop(store);
    let store = open(folder.path()).await;
    write(&store, "after/", "x").await;
    // The store is not closed, as if the process had been killed.
    drop(store);
    let store = open(folder.path()).await;
    assert_eq!(read(&store, "after/").await.as_deref(), Some("x"));
    assert_eq!(dump(&store).await.len(), 301);
    store.close().await.unwrap();
    drop(store);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_table_fails_its_reads_only() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    for index in 0..2000 {
        write(
            &store,
            format!("k{index:05}/"),
            format!("{index}-{}", "v".repeat(200)),
        )
        .await;
    }
    store.close().await.unwrap();
    drop(store);
    let path = files(&folder.path().join("tablets/1"), ".sst")
        .into_iter()
        .max_by_key(|path| path.metadata().unwrap().len())
        .unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 3;
    bytes[middle..middle + 64].fill(0xa5);
    std::fs::write(&path, &bytes).unwrap();

    let store = open(folder.path()).await;
    let mut damaged = 0;
    for index in 0..2000 {
        let name = key(format!("k{index:05}/"));
        match store.tablet(token(&name)).unwrap().get(&name).await {
            Ok(Some(row)) => assert!(row.starts_with(format!("{index}-").as_bytes())),
            Ok(None) => panic!("a row is missing without an error"),
            Err(StoreError::Corrupt { file, detail }) => {
                assert!(file.ends_with(".sst"), "{file}: {detail}");
                damaged += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!((1..1000).contains(&damaged), "{damaged} rows are damaged");
    write(&store, "new/", "x").await;
    assert_eq!(read(&store, "new/").await.as_deref(), Some("x"));
    store.close().await.unwrap();
}
