use super::super::reader::tests::entry;
use super::*;
use crate::cli;

fn wanted(entry: &Entry, words: &[&str]) -> bool {
    let words = ["helenus-stress", "fql", "replay", "--target", "db", "log"]
        .iter()
        .chain(words);
    let cli::Command::Fql(args) = cli::parse(words.map(Into::into)).command else {
        panic!("not fql")
    };
    let cli::fql::FqlCommand::Replay(args) = args.command else {
        panic!("not replay")
    };
    is_wanted(entry, &args)
}

#[test]
fn schema_changes_and_other_keyspaces_are_left_out() {
    let mut create = entry(1, "-- new\nCREATE TABLE t (k int PRIMARY KEY)");
    assert!(!wanted(&create, &[]));
    assert!(wanted(&create, &["--replay-ddl-statements"]));
    create.keyspace = Some("shop".to_owned());
    assert!(!wanted(&create, &["--replay-ddl-statements", "--keyspace", "k"]));

    let mut insert = entry(1, "INSERT INTO create_t (k) VALUES (1)");
    assert!(wanted(&insert, &["--keyspace", "shop"]));
    insert.keyspace = Some("shop".to_owned());
    assert!(wanted(&insert, &[]) && wanted(&insert, &["--keyspace", "shop"]));
    assert!(!wanted(&insert, &["--keyspace", "other"]));
    // The keyspace of a request takes precedence over that of its connection.
    insert.parameters.keyspace = Some("other".to_owned());
    assert!(wanted(&insert, &["--keyspace", "other"]));
}

#[test]
fn requests_are_dated_as_they_were() {
    let timestamp = |entry: &Entry| match request(entry) {
        Request::Query(query) => query.parameters.timestamp_us,
        _ => panic!("not a query"),
    };
    let mut entry = entry(1, "INSERT");
    assert_eq!(timestamp(&entry), None);
    entry.generated_timestamp_us = Some(5);
    assert_eq!(timestamp(&entry), Some(5));
    entry.parameters.timestamp_us = Some(7);
    assert_eq!(timestamp(&entry), Some(7));
}

#[test]
fn the_pace_is_that_of_the_log_or_a_multiple() {
    let mut pace = Pace::new(Instant::now(), 2.0);
    let dues = [1000, 3000, 2000, 500].map(|start_ms| pace.due(start_ms).as_millis());
    assert_eq!(dues, [0, 1000, 500, 0]);
}
