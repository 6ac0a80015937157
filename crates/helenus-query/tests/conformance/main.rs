//! Compares answers with those that Apache Cassandra gave to the statements of `tests/conformance/cases`. No socket is involved.
//!
//! Each folder of cases is a test. `HELENUS_CASES=word cargo test -p helenus-query --test conformance` runs the cases whose name contains
//! the word.

mod answer;
mod case_clock;
mod case_file;
mod encoded;
mod known;
mod recorded;
mod runner;
mod shown;
mod text;
mod types;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use helenus_query::engine::AccessControl;
use helenus_query::engine::{Engine, EngineConfig, Limits, LocalNode};
use helenus_tablet::StoreConfig;

use crate::case_clock::CaseClock;
use crate::case_file::Case;
use crate::known::Known;
use crate::runner::Execution;

/// Stack of a thread, in bytes. Some statements nest deeply.
const STACK_BYTES: usize = 16 << 20;

/// Defines a test for each folder of cases.
macro_rules! areas {
    ($($area:ident)*) => {
        const AREAS: &[&str] = &[$(stringify!($area)),*];
        mod cases {
            $(#[test] fn $area() { super::check(stringify!($area)); })*
        }
    };
}

areas! {
    access aggregates batch cassandra6 collections compact consistency counters ddl_index ddl_keyspace ddl_table ddl_type deletions describe
    distinct_token error_order filtering functions indexes insert_update json limits literals lwt materialized_views names null_unset
    paging prepared sai sasi select_order_limit select_where selection static_columns syntax system_tables transactions ttl_timestamp
    types udt_tuple_vector user_functions
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance")
}

#[test]
fn each_folder_has_a_test() {
    let entries = std::fs::read_dir(folder().join("cases")).expect("the cases");
    let mut found: Vec<String> = entries
        .map(|entry| {
            entry
                .expect("a folder")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    found.sort();
    assert_eq!(found, AREAS);
}

/// Runs the cases of a folder.
fn check(area: &str) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_stack_size(STACK_BYTES)
        .enable_all()
        .build()
        .expect("a runtime");
    let filter = std::env::var("HELENUS_CASES").unwrap_or_default();
    let mut cases = case_file::load(&folder().join("cases"), area);
    cases.retain(|case| case.name.contains(&filter));
    let (secured, open): (Vec<Case>, Vec<Case>) = cases.into_iter().partition(|case| case.login().is_some());
    let mut found = runtime.block_on(differences(open, false));
    found.extend(runtime.block_on(differences(secured, true)));
    assert!(
        found.is_empty(),
        "{} differences\n{}",
        found.len(),
        found.join("\n")
    );
}

async fn differences(cases: Vec<Case>, secured: bool) -> Vec<String> {
    if cases.is_empty() {
        return Vec::new();
    }
    let known = Arc::new(known::known_differences(&folder().join("known_differences.txt")));
    let store = tempfile::tempdir().expect("a folder for the store");
    let clock = Arc::new(CaseClock::new());
    let engine = open(store.path(), secured, clock.clone()).await;
    // Cases that concern the whole node run alone, because they would see the effects of others. Cases that wait move the clock.
    let (alone, together): (Vec<Case>, Vec<Case>) = cases
        .into_iter()
        .partition(|case| secured || case.options.contains_key("alone") || case.waits());
    let running = together
        .into_iter()
        .map(|case| guarded(case, engine.clone(), clock.clone(), known.clone()));
    let mut found = futures::future::join_all(running).await.concat();
    for case in alone {
        found.extend(guarded(case, engine.clone(), clock.clone(), known.clone()).await);
    }
    engine.close().await.expect("the store closes");
    found
}

/// Runs a case. A panic is reported as a difference.
async fn guarded(case: Case, engine: Arc<Engine>, clock: Arc<CaseClock>, known: Arc<Known>) -> Vec<String> {
    let name = case.name.clone();
    let running = tokio::spawn(run(case, engine, clock, known)).await;
    running.unwrap_or_else(|failure| vec![format!("{name}: {failure}")])
}

async fn run(case: Case, engine: Arc<Engine>, clock: Arc<CaseClock>, known: Arc<Known>) -> Vec<String> {
    match Execution::run(&case, engine, &clock).await {
        Ok(executed) => recorded::differences(&case, &executed, &known),
        Err(error) => vec![format!("{}: could not run: {error}", case.name)],
    }
}

async fn open(path: &Path, secured: bool, clock: Arc<CaseClock>) -> Arc<Engine> {
    let config = EngineConfig {
        store: StoreConfig {
            fsync: false,
            ..StoreConfig::small(path)
        },
        node: LocalNode {
            cluster_name: "Helenus".to_owned(),
            data_center: "datacenter1".to_owned(),
            rack: "rack1".to_owned(),
            host_id: uuid::Uuid::from_u128(1),
            native_address: ([127, 0, 0, 1], 9042).into(),
            release_version: "5.0.5".to_owned(),
        },
        limits: Limits::default(),
        control: AccessControl {
            authenticates: secured,
            authorizes: secured,
        },
        clock,
    };
    let engine = Engine::open(config).await.expect("the store opens");
    if secured {
        engine.make_superuser(None).await.expect("a superuser");
    }
    engine
}
