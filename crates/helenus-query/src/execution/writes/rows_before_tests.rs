use crate::engine::{Engine, EngineConfig};
use crate::request::{ClientState, QueryParameters};

#[tokio::test(flavor = "multi_thread")]
async fn image_and_index_read_a_row_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = EngineConfig::small(folder.path());
    let engine = Engine::open(config).await.expect("the store opens");
    let run = async |text: &str| {
        let outcome = engine
            .query(&ClientState::default(), text, &QueryParameters::default())
            .await;
        outcome.unwrap_or_else(|error| panic!("{text}: {error}"));
    };
    run("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}").await;
    run("CREATE TABLE k.t (p int, c int, v int, PRIMARY KEY (p, c)) WITH cdc = {'enabled': true, 'preimage': true}")
        .await;
    run("CREATE INDEX ON k.t (v)").await;
    // A deletion makes a header, which must be read too.
    run("DELETE FROM k.t WHERE p = 1").await;
    run("INSERT INTO k.t (p, c, v) VALUES (1, 1, 1)").await;
    let gets = || engine.store().stats().totals.gets;
    let before = gets();
    run("UPDATE k.t SET v = 2 WHERE p = 1 AND c = 1").await;
    assert_eq!(gets() - before, 2, "the header and the row");
}
