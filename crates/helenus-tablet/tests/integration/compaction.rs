use std::time::Duration;

use crate::support::*;

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
