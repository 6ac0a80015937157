//! Hourly snapshots, daily branches and history in simulated time. Everything that is needed is kept, and nothing else is left over.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};

use helenus_tablet::StoreConfig;

use super::*;
use crate::clock::SetClock;
use crate::engine::EngineConfig;
use crate::engine::history::keeper;
use crate::request::{ClientState, QueryParameters};
use crate::response::Response;

const HOUR_US: i64 = 3_600_000_000;
/// Length of the window of history.
const WINDOW: Duration = Duration::from_secs(36 * 3600);
/// Hours for which a snapshot is kept, and days for which a branch is kept.
const SNAPSHOT_HOURS: i64 = 24;
const BRANCH_DAYS: i64 = 3;
const KEYS: i64 = 5;
/// Maximum number of SSTables at the end. The month has written more than a thousand.
const FILES_MAX: usize = 24;

/// Runs a statement. Returns the first cell of its answer, which is a bigint, or `None` without rows.
async fn run(engine: &Arc<Engine>, text: &str) -> Option<i64> {
    let outcome = engine
        .query(&ClientState::default(), text, &QueryParameters::default())
        .await;
    let Response::Rows(rows) = outcome.unwrap_or_else(|error| panic!("{text}: {error}")).response else {
        return None;
    };
    let cell = rows.content.iter().flatten().flatten().next()?.clone();
    Some(i64::from_be_bytes(cell.as_ref().try_into().expect("a bigint")))
}

async fn sum(engine: &Arc<Engine>, table: &str) -> i64 {
    let found = run(engine, &format!("SELECT sum(n) FROM {table}")).await;
    found.expect("a sum")
}

fn ssts(folder: &Path) -> BTreeSet<String> {
    let tablets = std::fs::read_dir(folder.join("tablets")).expect("tablets");
    let files = tablets.flat_map(|tablet| {
        let compacted = tablet.expect("a tablet").path().join("compacted");
        std::fs::read_dir(compacted).into_iter().flatten().flatten()
    });
    files
        .map(|file| file.file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".sst"))
        .collect()
}

/// Unpins the tablets that no snapshot, branch or history needs. Returns the number of their checkpoints.
async fn left_over(engine: &Engine) -> usize {
    let of_history = engine.pinned_by_history().await.expect("the past is read");
    let schema = engine.schema();
    let kept = pinned_by(&schema).chain(&of_history);
    let kept: BTreeSet<Uuid> = kept.map(|of| of.checkpoint).collect();
    let unpinned = engine.context.store.unpin_others(&kept).await;
    unpinned.expect("checkpoints are listed")
}

#[tokio::test(flavor = "multi_thread")]
async fn days_of_snapshots_and_branches_leave_nothing_over() {
    keep_and_release(7).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: cargo test -p helenus-query a_month_of_snapshots -- --ignored"]
async fn a_month_of_snapshots_and_branches_leaves_nothing_over() {
    keep_and_release(30).await;
}

async fn keep_and_release(days: i64) {
    let folder = tempfile::tempdir().expect("a folder");
    let clock = Arc::new(SetClock(AtomicI64::new(1_800_000_000_000_000)));
    let mut config = EngineConfig {
        clock: clock.clone(),
        store: StoreConfig {
            garbage_age: Duration::from_millis(10),
            ..StoreConfig::small(folder.path())
        },
        ..EngineConfig::small(folder.path())
    };
    config.limits.auto_snapshot.is_on = false;
    config.limits.point_in_time_window = Some(WINDOW);
    let engine = Engine::open(config).await.expect("the store opens");
    run(
        &engine,
        "CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    )
    .await;
    run(&engine, "CREATE TABLE shop.t (k bigint PRIMARY KEY, n bigint)").await;
    // Expected sums of the snapshots and branches.
    let (mut snapshots, mut branches) = (BTreeMap::new(), BTreeMap::new());
    for hour in 0..days * 24 {
        clock.0.fetch_add(HOUR_US, Ordering::Relaxed);
        let key = hour % KEYS;
        run(
            &engine,
            &format!("INSERT INTO shop.t (k, n) VALUES ({key}, {hour})"),
        )
        .await;
        let take = Take {
            tag: format!("hour{hour}"),
            as_of: None,
            keyspaces: Vec::new(),
            tables: vec!["shop.t".to_owned()],
            ttl_ms: Some((SNAPSHOT_HOURS * HOUR_US / 1000) as u64),
            skip_flush: false,
        };
        engine.take_snapshot(&take).await.expect("a snapshot is taken");
        snapshots.insert(hour, sum(&engine, "shop.t").await);
        expire(&engine).await.expect("old snapshots go");
        snapshots.retain(|taken, _| hour - taken < SNAPSHOT_HOURS);
        assert_eq!(engine.schema().snapshots.len(), snapshots.len());
        if hour % 24 != 23 {
            continue;
        }
        let day = hour / 24;
        // Branches are made of the present and of an earlier hour, in turns.
        let as_of = match day % 2 {
            0 => String::new(),
            _ => format!("AS OF SNAPSHOT hour{}", hour - day % SNAPSHOT_HOURS),
        };
        run(
            &engine,
            &format!("CREATE KEYSPACE day{day} AS COPY OF shop {as_of}"),
        )
        .await;
        run(
            &engine,
            &format!("INSERT INTO day{day}.t (k, n) VALUES (99, {day})"),
        )
        .await;
        let earlier = match day % 2 {
            0 => snapshots[&hour],
            _ => snapshots[&(hour - day % SNAPSHOT_HOURS)],
        };
        branches.insert(day, earlier + day);
        if day >= BRANCH_DAYS {
            let before = engine.schema();
            run(&engine, &format!("DROP KEYSPACE day{}", day - BRANCH_DAYS)).await;
            engine.unpin_cleared(&before).await;
            branches.remove(&(day - BRANCH_DAYS));
        }
        engine.context.store.compact().await.expect("all is compacted");
        for (day, shown) in &branches {
            assert_eq!(sum(&engine, &format!("day{day}.t")).await, *shown, "day {day}");
        }
        for (taken, shown) in snapshots.iter().step_by(7) {
            let table = format!("shop.t AS OF SNAPSHOT hour{taken}");
            assert_eq!(sum(&engine, &table).await, *shown, "hour {taken}");
        }
        engine.take_base().await.expect("a moment is kept");
        keeper::trim(&engine, WINDOW, engine.now_ms())
            .await
            .expect("what is old goes");
        // The bases that are kept are one from before the window, and those in it.
        let kept = engine.history_report().await.expect("a report");
        assert!((1..=4).contains(&kept.bases), "day {day}: {kept:?}");
        assert_eq!(left_over(&engine).await, 0, "day {day}");
    }
    let before = engine.schema();
    for day in branches.keys() {
        run(&engine, &format!("DROP KEYSPACE day{day}")).await;
    }
    engine.unpin_cleared(&before).await;
    engine
        .clear_snapshots(&Clear::default())
        .await
        .expect("snapshots are cleared");
    keeper::remove(&engine).await.expect("the past goes");
    assert_eq!(left_over(&engine).await, 0);
    // The files of the tablets remain, and some that are too new to be deleted by the time of the last write.
    engine.context.store.compact().await.expect("all is compacted");
    clock.0.fetch_add(1_000_000, Ordering::Relaxed);
    run(&engine, "INSERT INTO shop.t (k, n) VALUES (1, 1)").await;
    let are_few = async {
        while ssts(folder.path()).len() > FILES_MAX {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), are_few)
        .await
        .unwrap_or_else(|_| panic!("files are left over: {:?}", ssts(folder.path())));
}
