use std::sync::atomic::{AtomicI64, Ordering};

use super::*;
use crate::clock::SetClock;
use crate::engine::EngineConfig;
use crate::request::{ClientState, QueryParameters};

const HOUR: Duration = Duration::from_hours(1);

async fn run(engine: &Arc<Engine>, text: &str) {
    let outcome = engine
        .query(&ClientState::default(), text, &QueryParameters::default())
        .await;
    outcome.unwrap_or_else(|error| panic!("{text}: {error}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn age_is_that_of_the_oldest_change_left() {
    let folder = tempfile::tempdir().expect("a folder");
    let clock = Arc::new(SetClock(AtomicI64::new(1_800_000_000_000_000)));
    let advance = |by: Duration| {
        let us = i64::try_from(by.as_micros()).expect("a short time");
        clock.0.fetch_add(us, Ordering::Relaxed);
    };
    let config = EngineConfig {
        clock: clock.clone(),
        ..EngineConfig::small(folder.path())
    };
    let engine = Engine::open(config).await.expect("the store opens");
    run(
        &engine,
        "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    )
    .await;
    for (name, ttl_s) in [("kept", 0), ("day", 86_400)] {
        run(
            &engine,
            &format!("CREATE TABLE k.{name} (p int PRIMARY KEY, v int) WITH cdc = {{'enabled': true, 'ttl': {ttl_s}}}"),
        )
        .await;
    }
    let age = async |name: &str| {
        let logs = engine.change_logs().await.expect("the store is read");
        let log = logs
            .iter()
            .find(|log| log.table.cdc_log_of.as_deref() == Some(name));
        log.expect("a log").oldest_age
    };
    assert_eq!(age("kept").await, None);
    for p in 0..3 {
        run(&engine, &format!("INSERT INTO k.kept (p, v) VALUES ({p}, 0)")).await;
        run(&engine, &format!("INSERT INTO k.day (p, v) VALUES ({p}, 0)")).await;
        advance(HOUR);
    }
    let close_to = |found: Option<Duration>, expected: Duration| {
        let found = found.expect("changes");
        // Writes within one microsecond have different timestamps.
        assert!(
            found <= expected && expected - found < Duration::from_millis(1),
            "{found:?}"
        );
    };
    close_to(age("kept").await, 3 * HOUR);
    close_to(age("day").await, 3 * HOUR);
    advance(21 * HOUR + HOUR / 2);
    close_to(age("kept").await, 24 * HOUR + HOUR / 2);
    close_to(age("day").await, 23 * HOUR + HOUR / 2);
    advance(24 * HOUR);
    assert_eq!(age("day").await, None);
}
