//! Tablets of a store in a folder that are pinned at one cut.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use helenus_tablet::{Store, StoreConfig, StoreError, WriteBatch};

use crate::support::{APPEND, dump, key, open, read, token, write};

/// Number of rows that each batch writes, spread over the tablets.
const SPREAD: u64 = 8;

/// Appends a number to each of some rows.
async fn write_everywhere(store: &Store, round: u64) {
    let mut batch = WriteBatch::new();
    for at in 0..SPREAD {
        let key = key(format!("spread{at}"));
        batch.merge(token(&key), key, Bytes::from(format!("{round},")));
    }
    store.write(batch, true).await.unwrap();
}

fn sst_names(path: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for tablet in std::fs::read_dir(path.join("tablets")).unwrap() {
        let folder = tablet.unwrap().path().join("compacted");
        for file in std::fs::read_dir(folder).into_iter().flatten() {
            names.insert(file.unwrap().file_name().into_string().unwrap());
        }
    }
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn cut_has_acknowledged_writes_and_whole_batches() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    assert!(store.tablets().len() > 1);
    let acknowledged = Arc::new(AtomicU64::new(0));
    let begun = Arc::new(AtomicU64::new(0));
    let ends = Arc::new(AtomicBool::new(false));
    let writer = tokio::spawn({
        let (store, acknowledged, begun, ends) =
            (store.clone(), acknowledged.clone(), begun.clone(), ends.clone());
        async move {
            for round in 1.. {
                begun.store(round, Ordering::SeqCst);
                write_everywhere(&store, round).await;
                acknowledged.store(round, Ordering::SeqCst);
                if ends.load(Ordering::SeqCst) {
                    return;
                }
            }
        }
    });
    // Other flushes come between a cut and its own flush.
    let flusher = tokio::spawn({
        let (store, ends) = (store.clone(), ends.clone());
        async move {
            while !ends.load(Ordering::SeqCst) {
                store.flush().await.unwrap();
            }
        }
    });
    let mut cuts = Vec::new();
    for _ in 0..20 {
        let least = acknowledged.load(Ordering::SeqCst);
        let pinned = store.pin().await.unwrap();
        cuts.push((least, pinned, begun.load(Ordering::SeqCst)));
    }
    ends.store(true, Ordering::SeqCst);
    writer.await.unwrap();
    flusher.await.unwrap();
    store.flush().await.unwrap();
    for (least, pinned, most) in cuts {
        let reader = store.open_pinned(&pinned).await.unwrap();
        let rows = dump(&reader).await;
        let rounds: BTreeSet<&str> = rows.iter().map(|(_, row)| row.as_str()).collect();
        assert!(rounds.len() <= 1, "batches are whole: {rounds:?}");
        let last = rounds.first().map_or(0, |row| {
            row.split(',').filter(|part| !part.is_empty()).count() as u64
        });
        assert!(rows.is_empty() || rows.len() as u64 == SPREAD);
        assert!(least <= last && last <= most, "{least} <= {last} <= {most}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cut_survives_writes_compactions_and_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let config = || StoreConfig {
        garbage_age: std::time::Duration::from_millis(10),
        ..StoreConfig::small(folder.path())
    };
    let store = Store::open(config(), Arc::new(APPEND)).await.unwrap();
    for number in 0..50 {
        write(&store, format!("row{number}"), "old").await;
    }
    let pinned = store.pin().await.unwrap();
    let then = dump(&store.open_pinned(&pinned).await.unwrap()).await;
    assert_eq!(then.len(), 50);
    let files = sst_names(folder.path());
    for round in 0..3 {
        for number in 0..60 {
            write(&store, format!("row{number}"), format!("+{round}")).await;
        }
        store.flush().await.unwrap();
        store.compact().await.unwrap();
    }
    store.close().await.unwrap();
    drop(store);
    let store = Store::open(config(), Arc::new(APPEND)).await.unwrap();
    assert_eq!(read(&store, "row1").await.unwrap(), "old+0+1+2");
    let reader = store.open_pinned(&pinned).await.unwrap();
    assert_eq!(dump(&reader).await, then);
    assert_eq!(read(&reader, "row1").await.unwrap(), "old");
    assert!(matches!(
        reader.write(WriteBatch::of(Vec::new()), true).await,
        Ok(())
    ));
    assert!(reader.is_read_only());
    assert!(matches!(reader.flush().await, Err(StoreError::ReadOnly)));

    // Checkpoints in the list of those to keep stay. The others are removed, and their files deleted.
    let kept = pinned.iter().map(|of| of.checkpoint).collect();
    assert_eq!(store.unpin_others(&kept).await.unwrap(), 0);
    assert!(sst_names(folder.path()).is_superset(&files));
    assert_eq!(store.unpin_others(&BTreeSet::new()).await.unwrap(), pinned.len());
    let gone = async {
        while !sst_names(folder.path()).is_disjoint(&files) {
            write(&store, "row1", "").await;
            store.flush().await.unwrap();
            store.compact().await.unwrap();
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), gone)
        .await
        .expect("the files are deleted");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_in_memory_is_left_out_of_what_was_flushed() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    write(&store, "a", "flushed").await;
    store.flush().await.unwrap();
    write(&store, "a", "+later").await;
    let pinned = store.pin_flushed().await.unwrap();
    let reader = store.open_pinned(&pinned).await.unwrap();
    assert_eq!(read(&reader, "a").await.unwrap(), "flushed");
    assert_eq!(read(&store, "a").await.unwrap(), "flushed+later");
}
