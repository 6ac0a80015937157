use std::time::Duration;

use helenus_tablet::{Store, TabletStats};

use crate::support::*;

/// Waits until the statistics of all tablets are as wanted.
async fn until(store: &Store, wanted: impl Fn(&TabletStats) -> bool) {
    for _ in 0..300 {
        if store.stats().tablets.iter().all(&wanted) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{:?}", store.stats());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tombstones_of_what_older_runs_never_had_are_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    for round in 0..4 {
        for index in 0..100 {
            let name = format!("row/{}", round * 100 + index);
            let noise: String = (0..500)
                .map(|at| format!("{:x}", token(format!("{name}{at}").as_bytes())))
                .collect();
            write(&store, name, noise).await;
        }
        store.flush().await.unwrap();
    }
    until(&store, |tablet| {
        (tablet.level0_files, tablet.sorted_runs) == (0, 1)
    })
    .await;
    for round in 0..4 {
        for index in 0..10 {
            write(&store, format!("row/{}", round * 10 + index), DEAD).await;
            write(&store, format!("none/{}", round * 10 + index), DEAD).await;
        }
        store.flush().await.unwrap();
    }
    until(&store, |tablet| {
        (tablet.level0_files, tablet.sorted_runs) == (0, 2)
    })
    .await;
    let rows = dump(&store).await;
    let absent = rows.iter().filter(|(key, _)| key.starts_with("none/")).count();
    // A filter gives a false positive for one key in a hundred.
    assert!(absent <= 4, "{absent}");
    let deleted = rows.iter().filter(|(_, value)| value.ends_with(DEAD));
    assert_eq!(deleted.count(), 40 + absent);
    assert_eq!(rows.len(), 400 + absent);
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_were_replaced_are_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    for round in 0..4 {
        for index in 0..100 {
            write(&store, format!("row/{index}"), round.to_string()).await;
        }
        store.flush().await.unwrap();
    }
    let mut scan = store.tablets()[0].scan(.., false).await.unwrap();
    assert!(scan.next().await.unwrap().is_some());
    until(&store, |tablet| {
        (tablet.level0_files, tablet.sorted_runs) == (0, 1)
    })
    .await;
    let files = |tablet: u32| {
        let folder = folder.path().join(format!("tablets/{tablet}/compacted"));
        std::fs::read_dir(folder).unwrap().count()
    };
    let ids: Vec<u32> = store.tablets().iter().map(|tablet| tablet.id()).collect();
    for _ in 0..150 {
        if files(ids[1]) == 2 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // The newest file of level 0 is deleted with the next one.
    assert_eq!(files(ids[1]), 2);
    // The scan still reads the files that existed when it began.
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(files(ids[0]), 5);
    let mut rows = 1;
    while scan.next().await.unwrap().is_some() {
        rows += 1;
    }
    assert!(rows > 20, "{rows}");
    drop(scan);
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hooks_decide_what_compactions_keep() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let padding = "x".repeat(1000);
    for round in 0..10 {
        for index in 0..50 {
            write(&store, format!("keep/{round}-{index}"), &padding).await;
        }
        write(&store, "gone/1", "a").await;
        write(&store, "upper/1", "b").await;
        store.flush().await.unwrap();
    }
    for _ in 0..150 {
        let compacted = store.tablets().iter().all(|tablet| {
            let stats = tablet.stats();
            stats.sorted_runs > 0 && stats.level0_files < 4
        });
        if compacted {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let stats = store.stats();
    assert!(
        stats.tablets.iter().all(|tablet| tablet.sorted_runs > 0),
        "{stats:?}"
    );
    assert!(stats.compacted_bytes > 0, "{stats:?}");
    drop(store);
    let store = open(folder.path()).await;
    let gone = read(&store, "gone/1").await;
    assert!(gone.is_none_or(|row| row.len() < 10));
    let upper = read(&store, "upper/1").await.unwrap();
    assert_eq!(upper.to_lowercase(), "b".repeat(10));
    assert!(upper.starts_with("BBBB"), "{upper}");
    assert_eq!(
        dump(&store)
            .await
            .iter()
            .filter(|(key, _)| key.starts_with("keep"))
            .count(),
        500
    );
    store.close().await.unwrap();
}
