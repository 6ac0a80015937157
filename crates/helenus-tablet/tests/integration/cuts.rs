//! Consistent cuts of several stores on one bucket, and tablets that are pinned in a bucket.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use helenus_tablet::{Store, StoreConfig, StoreError, TokenRange};
use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use slatedb::admin::Admin;

use crate::bucket::{config, names, open};
use crate::support::{self, APPEND, dump, read, token, write};

const PATIENCE: Duration = Duration::from_secs(10);
const LONG: Duration = Duration::from_secs(60);

/// Opens two stores on one bucket, with one tablet each.
async fn two_stores(name: &str) -> [Arc<Store>; 2] {
    let config = StoreConfig {
        open_all_tablets: false,
        ..config(name)
    };
    let here = Store::open(config.clone(), Arc::new(APPEND)).await.unwrap();
    let there = Store::open(config, Arc::new(APPEND)).await.unwrap();
    let [left, right] = here.initial_tablets()[..] else {
        panic!("two tablets");
    };
    here.open_tablet(left.0, left.1).await.unwrap();
    there.open_tablet(right.0, right.1).await.unwrap();
    [here, there]
}

#[tokio::test(flavor = "multi_thread")]
async fn no_write_falls_between_cuts_held_together() {
    let stores = two_stores("moment").await;
    let names = names(40);
    let owner = |name: &str| stores[usize::from(token(name.as_bytes()) >= 0)].clone();
    for name in &names {
        write(&owner(name), name, "1").await;
    }
    let [here, there] = &stores;
    let held_here = here.hold_cut(PATIENCE, LONG).await.unwrap();
    let held_there = there.hold_cut(PATIENCE, LONG).await.unwrap();
    assert_eq!((held_here.tablets().len(), held_there.tablets().len()), (1, 1));
    // Writes wait, and so does the hand-over of a tablet.
    let writer = tokio::spawn({
        let (store, name) = (owner(&names[0]), names[0].clone());
        async move { write(&store, name, "2").await }
    });
    let left = here.tablets()[0].id();
    let handing_over = tokio::spawn({
        let here = here.clone();
        async move { here.hand_over_tablet(left).await }
    });
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!writer.is_finished() && !handing_over.is_finished());
    assert!(held_here.release() && held_there.release());
    let mut pinned = held_here.pinned().await.unwrap();
    pinned.extend(held_there.pinned().await.unwrap());
    writer.await.unwrap();
    handing_over.await.unwrap().unwrap();
    // Every store that shares the bucket can read the pinned tablets.
    for store in &stores {
        let reader = store.open_pinned(&pinned).await.unwrap();
        assert_eq!(dump(&reader).await.len(), names.len());
        for name in &names {
            assert_eq!(read(&reader, name).await.as_deref(), Some("1"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unreleased_hold_expires_and_reports_it() {
    let store = open("hold").await;
    let held = store.hold_cut(PATIENCE, Duration::from_millis(20)).await.unwrap();
    write(&store, "row", "1").await;
    assert!(!held.release());
    // A hold that is dropped ends at once.
    drop(store.hold_cut(PATIENCE, LONG).await.unwrap());
    write(&store, "row", "2").await;
    assert_eq!(read(&store, "row").await.as_deref(), Some("12"));
    // A store without tablets holds nothing.
    let [here, _] = two_stores("hold_nothing").await;
    here.close_tablet(here.tablets()[0].id()).await.unwrap();
    let held = here.hold_cut(PATIENCE, LONG).await.unwrap();
    assert!(held.tablets().is_empty() && held.release());
    assert!(held.pinned().await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn pinned_tablets_outlive_splits_and_their_own_end() {
    let store = open("pinned").await;
    let names = names(60);
    for name in &names {
        write(&store, name, "old").await;
    }
    let before = store.pin().await.unwrap();
    let then = dump(&store.open_pinned(&before).await.unwrap()).await;
    assert_eq!(then.len(), names.len());
    let parent = store.tablet(i64::MAX).unwrap();
    let (id, tokens) = (parent.id(), parent.token_range());
    let middle = tokens.first + (tokens.last - tokens.first) / 2;
    let range = |first, last| TokenRange { first, last };
    let children = [
        (11, range(tokens.first, middle)),
        (12, range(middle + 1, tokens.last)),
    ];
    store.split_tablet(id, children).await.unwrap();
    for (child, tokens) in children {
        store.open_tablet(child, tokens).await.unwrap();
    }
    // Files of the parent belong to the cuts of the children.
    let split = store.pin().await.unwrap();
    for name in &names {
        write(&store, name, "+new").await;
    }
    store.merge_tablets(&[11, 12], (13, tokens)).await.unwrap();
    store.open_tablet(13, tokens).await.unwrap();
    for tablet in [id, 11, 12] {
        assert!(
            !store.remove_tablet(tablet).await.unwrap(),
            "tablet {tablet} is still needed"
        );
    }
    for pinned in [&before, &split] {
        let reader = store.open_pinned(pinned).await.unwrap();
        for name in &names {
            assert_eq!(read(&reader, name).await.as_deref(), Some("old"), "{name}");
        }
    }
    // Checkpoints that are not in the list stay for a while, because another node may be about to record them.
    assert_eq!(store.unpin_others(&BTreeSet::new()).await.unwrap(), 0);
    store.unpin(&before).await.unwrap();
    store.unpin(&split).await.unwrap();
    let until = Instant::now() + Duration::from_secs(30);
    // SlateDB keeps the parent for five minutes longer, for the clones that were made of it.
    for tablet in [11, 12] {
        while !store.remove_tablet(tablet).await.unwrap() {
            assert!(Instant::now() < until, "tablet {tablet} stays");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    assert!(store.open_pinned(&split).await.is_err(), "its tablets are gone");
    assert_eq!(read(&store, &names[0]).await.as_deref(), Some("old+new"));
}

#[tokio::test(flavor = "multi_thread")]
async fn unfinished_batches_are_added_to_pinned_tablets_only() {
    let store = open("added").await;
    write(&store, "a", "1").await;
    let pinned = store.pin().await.unwrap();
    let reader = store.open_pinned(&pinned).await.unwrap();
    let op = |name: &'static str| helenus_tablet::Op {
        token: token(name.as_bytes()),
        key: name.into(),
        operand: "2".into(),
    };
    reader.add_to_pinned(vec![op("a"), op("b")]).unwrap();
    assert_eq!(read(&reader, "a").await.as_deref(), Some("12"));
    assert_eq!(read(&reader, "b").await.as_deref(), Some("2"));
    assert_eq!(read(&store, "a").await.as_deref(), Some("1"));
    let again = store.open_pinned(&pinned).await.unwrap();
    assert_eq!(read(&again, "b").await, None);
    let refused = store.add_to_pinned(vec![op("a")]);
    assert!(matches!(refused, Err(StoreError::InvalidConfig(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn unclaimed_pinned_tablets_are_unpinned() {
    let folder = tempfile::tempdir().unwrap();
    let store = support::open(folder.path()).await;
    let objects: Arc<dyn ObjectStore> = Arc::new(LocalFileSystem::new_with_prefix(folder.path()).unwrap());
    let tablets: Vec<u32> = store.tablets().iter().map(|tablet| tablet.id()).collect();
    let pinned = || async {
        let mut count = 0;
        for id in &tablets {
            let admin = Admin::builder(format!("tablets/{id}"), objects.clone()).build();
            count += admin.list_checkpoints(Some("snapshot")).await.unwrap().len();
        }
        count
    };
    let held = store.hold_cut(PATIENCE, LONG).await.unwrap();
    while pinned().await < tablets.len() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    drop(held);
    let deadline = Instant::now() + LONG;
    while pinned().await > 0 {
        assert!(Instant::now() < deadline, "tablets stay pinned");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // A cut that is claimed stays pinned.
    let taken = store
        .hold_cut(PATIENCE, LONG)
        .await
        .unwrap()
        .pinned()
        .await
        .unwrap();
    assert_eq!((taken.len(), pinned().await), (tablets.len(), tablets.len()));
}
