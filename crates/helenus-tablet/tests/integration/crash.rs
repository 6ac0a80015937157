//! A `kill -9` at any time loses no acknowledged write and tears no batch.
#![allow(clippy::disallowed_methods, reason = "the test runs on the machine")]

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use helenus_tablet::WriteBatch;

use crate::support::*;

const FOLDER: &str = "HELENUS_TABLET_CRASH_FOLDER";
const ROUND: &str = "HELENUS_TABLET_CRASH_ROUND";
const WRITERS: usize = 8;

/// Runs in a process of its own, which `survives_kill` kills.
#[test]
#[ignore = "the other half of survives_kill"]
fn child() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let round = std::env::var(ROUND).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async move {
        let store = open(folder.as_ref()).await;
        println!("ready");
        let padding = "p".repeat(700);
        let tasks = (0..WRITERS).map(|writer| {
            let (store, round, padding) = (store.clone(), round.clone(), padding.clone());
            tokio::spawn(async move {
                for index in 0.. {
                    let operand = format!("{round}-{index},");
                    let mut batch = WriteBatch::new();
                    batch.merge(i64::MIN, key(format!("low{writer}/")), key(&operand));
                    batch.merge(i64::MAX, key(format!("high{writer}/")), key(&operand));
                    batch.merge(
                        i64::MAX,
                        key(format!("bulk{writer}/{round}-{index}")),
                        key(&padding),
                    );
                    store.write(batch, true).await.unwrap();
                    // Each line is written as a whole, because the pipe takes it in one call.
                    println!("{writer} {operand}");
                    if index % 500 == 250 && writer == 0 {
                        let store = store.clone();
                        tokio::spawn(async move { store.flush().await });
                    }
                }
            })
        });
        futures::future::join_all(tasks).await;
    });
}

#[test]
fn survives_kill() {
    let folder = tempfile::tempdir().unwrap();
    let rounds: usize = std::env::var("HELENUS_TABLET_CRASH_ROUNDS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(4);
    let mut acknowledged: Vec<Vec<String>> = vec![Vec::new(); WRITERS];
    for round in 0..rounds {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "crash::child", "--ignored", "--nocapture"])
            .env(FOLDER, folder.path())
            .env(ROUND, round.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        while !lines.next().unwrap().unwrap().contains("ready") {}
        let killer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(300 + 137 * round as u64 % 500));
            child.kill().unwrap();
            child.wait().unwrap();
        });
        for line in lines.map_while(Result::ok) {
            let Some((writer, operand)) = line.split_once(' ') else {
                continue;
            };
            if let (Ok(writer), true) = (writer.parse::<usize>(), operand.ends_with(',')) {
                acknowledged[writer].push(operand.to_string());
            }
        }
        killer.join().unwrap();
        check(folder.path(), &mut acknowledged);
    }
    let total: usize = acknowledged.iter().map(Vec::len).sum();
    println!("{total} writes over {rounds} kills");
    assert!(total > 100);
}

fn check(folder: &std::path::Path, acknowledged: &mut [Vec<String>]) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let store = open(folder).await;
        for (writer, acknowledged) in acknowledged.iter_mut().enumerate() {
            let get = async |token: i64, name: String| {
                let row = store
                    .tablet(token)
                    .unwrap()
                    .get(name.as_bytes())
                    .await
                    .unwrap()
                    .unwrap_or_default();
                String::from_utf8(row.to_vec()).unwrap()
            };
            let low = get(i64::MIN, format!("low{writer}/")).await;
            let high = get(i64::MAX, format!("high{writer}/")).await;
            assert_eq!(low, high, "a batch was torn between tablets");
            let found: Vec<String> = low.split_inclusive(',').map(str::to_string).collect();
            assert!(
                found.len() >= acknowledged.len(),
                "{} of {} are there",
                found.len(),
                acknowledged.len()
            );
            assert_eq!(&found[..acknowledged.len()], acknowledged.as_slice());
            assert!(
                found.len() <= acknowledged.len() + 1,
                "one write was in flight, {found:?} are there"
            );
            for operand in &found {
                let name = format!("bulk{writer}/{}", operand.trim_end_matches(','));
                assert_eq!(get(i64::MAX, name).await.len(), 700);
            }
            *acknowledged = found;
        }
        // Sometimes a clean end comes between two kills.
        if acknowledged[0].len().is_multiple_of(2) {
            store.close().await.unwrap();
        }
    });
}
