use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use helenus_tablet::{Store, StoreConfig, StoreError};

use crate::support::*;

/// Waits until a condition holds.
async fn until(condition: impl AsyncFn() -> bool) {
    let waiting = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), waiting)
        .await
        .expect("the node does not look at its disk");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_are_refused_below_the_reserve() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    write(&store, "a/", "1").await;
    // The number of free bytes is polled.
    store.simulate_free_disk_bytes(Some(1000));
    until(async || try_write(&store, "other/", "x").await.is_err()).await;
    let error = try_write(&store, "a/", "2").await.unwrap_err();
    assert!(matches!(error, StoreError::DiskFull(_)), "{error}");
    assert!(error.to_string().contains("full"), "{error}");
    assert_eq!(read(&store, "a/").await.as_deref(), Some("1"));
    store.simulate_free_disk_bytes(None);
    until(async || try_write(&store, "other/", "x").await.is_ok()).await;
    write(&store, "a/", "3").await;
    assert_eq!(read(&store, "a/").await.as_deref(), Some("13"));
    drop(store);
    let store = open(folder.path()).await;
    assert_eq!(read(&store, "a/").await.as_deref(), Some("13"));
    store.close().await.unwrap();
}

struct Mount(tempfile::TempDir);

impl Mount {
    /// Mounts a small file system. `None` if this user may not mount one.
    fn new(megabytes: usize) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={megabytes}m"), "tmpfs"])
            .arg(folder.path())
            .output()
            .is_ok_and(|output| output.status.success());
        mounted.then_some(Mount(folder))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

/// Fills a real disk to its last byte, with and without a reserve, and frees space again.
async fn fill(reserve: u64) {
    let Some(mount) = Mount::new(40) else {
        eprintln!("skipped: a file system cannot be mounted here");
        return;
    };
    let root = mount.0.path().join("store");
    let filler = mount.0.path().join("filler");
    std::fs::write(&filler, vec![1; 16 << 20]).unwrap();
    let config = || StoreConfig {
        memtable_bytes: 4 << 20,
        disk_reserve_bytes: reserve,
        ..StoreConfig::small(&root)
    };
    let store = Store::open(config(), Arc::new(APPEND)).await.unwrap();
    // Returns text that does not compress.
    let noise = |seed: u64| {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        (0..2000)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                char::from(33 + (state >> 57) as u8 % 90)
            })
            .collect::<String>()
    };
    let mut written = Vec::new();
    let error = loop {
        let first = written.len() as u64;
        let tasks = (first..first + 8).map(|seed| {
            let value = noise(seed);
            let store = store.clone();
            async move { (seed, try_write(&store, format!("k{seed}/"), value).await) }
        });
        let mut failed = None;
        for (seed, result) in futures::future::join_all(tasks).await {
            match result {
                Ok(()) => written.push(seed),
                Err(error) => failed = Some(error),
            }
        }
        if let Some(error) = failed {
            break error;
        }
        // The limit is many times what the disk can store.
        assert!(
            written.len() < 200_000,
            "the disk does not fill: {:?}",
            store.stats()
        );
    };
    assert!(matches!(error, StoreError::DiskFull(_)), "{error}");
    assert!(written.len() > 1000, "{} rows", written.len());
    for seed in written.iter().step_by(17) {
        assert_eq!(read(&store, format!("k{seed}/")).await, Some(noise(*seed)));
    }
    std::fs::remove_file(&filler).unwrap();
    let started = Instant::now();
    while let Err(error) = try_write(&store, "after/", "x").await {
        assert!(matches!(error, StoreError::DiskFull(_)), "{error}");
        assert!(
            started.elapsed() < Duration::from_secs(120),
            "no write succeeds: {error}"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    store.flush().await.unwrap();
    drop(store);
    let store = Store::open(config(), Arc::new(APPEND)).await.unwrap();
    for seed in &written {
        assert_eq!(read(&store, format!("k{seed}/")).await, Some(noise(*seed)));
    }
    assert!(read(&store, "after/").await.is_some());
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_refuses_writes_until_there_is_room() {
    fill(2 << 20).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_full_to_the_last_byte_recovers() {
    fill(0).await;
}
