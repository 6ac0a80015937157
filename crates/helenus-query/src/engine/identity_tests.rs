use helenus_cql::parser::parse_statement;

use super::*;

fn qualified(text: &str) -> bool {
    table_names(&parse_statement(text).expect(text).statement).are_qualified()
}

#[test]
fn a_statement_is_qualified_if_each_of_its_tables_is() {
    assert!(qualified("SELECT * FROM ks.t"));
    assert!(qualified("TRUNCATE ks.t"));
    assert!(qualified(
        "BEGIN BATCH DELETE FROM ks.t WHERE k = 1; INSERT INTO ks.t (k) VALUES (1); APPLY BATCH"
    ));
    assert!(!qualified("UPDATE t SET v = 1 WHERE k = 1"));
    assert!(!qualified(
        "BEGIN BATCH DELETE FROM ks.t WHERE k = 1; INSERT INTO t (k) VALUES (1); APPLY BATCH"
    ));
    assert!(!qualified("USE ks"));
}

/// Compares the id and the wording with those of Cassandra 5.0.5.
#[test]
fn the_warning_names_the_statement_by_its_id() {
    let id = prepared_id(Some("proto"), "USE proto");
    let warning = use_warning(Some("proto"), Some("proto"), &id);
    assert!(warning.ends_with("statement keyspace: proto, statement id: fed97f88c6a9e77a1237b464c51d2085"));
}
