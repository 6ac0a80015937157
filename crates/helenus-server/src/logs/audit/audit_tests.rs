use helenus_cql::error::CqlError;

use super::entry::EntryKind;
use super::options::{AuditOptions, AuditPatch};
use super::{Requester, statement};

fn line(text: &str, keyspace: Option<&str>, error: Option<&CqlError>) -> String {
    let by = Requester {
        user: Some("ann"),
        peer: ([10, 0, 0, 1], 5000).into(),
        node: ([10, 0, 0, 9], 9042).into(),
        keyspace,
    };
    let mut entry = statement::entry(text, keyspace);
    if let Some(error) = error {
        entry.fail(error);
    }
    entry.line(&by, "ann", 17)
}

#[test]
fn lines_are_those_of_cassandra() {
    let begin = "user:ann|host:10.0.0.9:9042|source:/10.0.0.1|port:5000|timestamp:17";
    assert_eq!(
        line("SELECT * FROM t\nWHERE p = 1", Some("k"), None),
        format!("{begin}|type:SELECT|category:QUERY|ks:k|scope:t|operation:SELECT * FROM t WHERE p = 1\n")
    );
    assert_eq!(
        line("INSERT INTO l.t (v) ROWS ?", Some("k"), None),
        format!("{begin}|type:UPDATE|category:DML|ks:l|scope:t|operation:INSERT INTO l.t (v) ROWS ?\n")
    );
    assert_eq!(
        line("DROP KEYSPACE l", Some("k"), None),
        format!("{begin}|type:DROP_KEYSPACE|category:DDL|ks:l|operation:DROP KEYSPACE l\n")
    );
    let refused = CqlError::Unauthorized("no".to_owned());
    assert_eq!(
        line("TRUNCATE l.t", Some("k"), Some(&refused)),
        format!("{begin}|type:UNAUTHORIZED_ATTEMPT|category:AUTH|ks:l|scope:t|operation:TRUNCATE l.t; no\n")
    );
}

#[test]
fn passwords_are_not_written_even_of_statements_that_fail() {
    let text = "ALTER ROLE ann WITH PASSWORD = 'secret' AND LOGIN = maybe";
    for error in [None, Some(CqlError::invalid("mismatched input near 'secret'"))] {
        let line = line(text, None, error.as_ref());
        assert!(!line.contains("secret"), "{line}");
        assert!(
            line.ends_with("operation:ALTER ROLE ann WITH PASSWORD *******\n"),
            "{line}"
        );
    }
}

#[test]
fn what_is_excluded_goes_before_what_is_included() {
    let patch = AuditPatch::parse("included_keyspaces=a,b\nexcluded_keyspaces=b\nexcluded_categories=query")
        .expect("options");
    let options = patch.on(AuditOptions::default());
    assert!(options.includes("ann", "DML", Some("a")));
    assert!(!options.includes("ann", "DML", Some("b")));
    assert!(!options.includes("ann", "DML", Some("c")));
    assert!(!options.includes("ann", "QUERY", Some("a")));
    assert!(!options.includes("ann", EntryKind::LoginSuccess.category(), None));
    let options = AuditOptions::default();
    assert!(options.includes("ann", "AUTH", None));
    assert!(!options.includes("ann", "QUERY", Some("system")));
}

#[test]
fn misspelt_options_are_refused() {
    for text in [
        "included_categories=SELECTS",
        "roll_cycle=WEEKLY",
        "users=ann",
        "block",
    ] {
        assert!(AuditPatch::parse(text).is_err(), "{text}");
    }
}
