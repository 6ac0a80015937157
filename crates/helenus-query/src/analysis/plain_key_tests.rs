use bytes::Bytes;
use helenus_cql::parser::parse_statement;
use helenus_row::key::compose_partition_key;

use super::*;
use crate::analysis::{Planned, plan};
use crate::engine::ddl::in_memory::InMemorySchema;

fn schema() -> InMemorySchema {
    let mut schema = InMemorySchema::new("ks");
    for statement in [
        "CREATE TABLE one (k int PRIMARY KEY, v int)",
        "CREATE TABLE two (a text, b bigint, c int, v int, PRIMARY KEY ((a, b), c))",
        "CREATE TABLE many (k frozen<set<int>> PRIMARY KEY, v int)",
        "CREATE TABLE id (k uuid PRIMARY KEY, v int)",
    ] {
        schema.apply(statement).expect(statement);
    }
    schema
}

fn planned(schema: &InMemorySchema, text: &str) -> Planned {
    let parsed = parse_statement(text).expect(text);
    plan(&schema.schema, schema.keyspace.as_deref(), &parsed).expect(text)
}

fn set(bytes: &[u8]) -> BoundValue {
    BoundValue::Set(Bytes::copy_from_slice(bytes))
}

#[test]
fn tokens_are_those_of_the_serialized_keys() {
    let schema = schema();
    let (int, seven) = (5_i32.to_be_bytes(), 7_i64.to_be_bytes());
    let single = Some(murmur3_token(&int));
    for (text, values) in [
        ("SELECT v FROM one WHERE k = ?", vec![set(&int)]),
        ("SELECT * FROM one WHERE k = 5", vec![]),
        (
            "INSERT INTO one (v, k) VALUES (?, ?)",
            vec![set(b"\0\0\0\x01"), set(&int)],
        ),
        (
            "INSERT INTO one (v, k) VALUES (1, ?) IF NOT EXISTS",
            vec![set(&int)],
        ),
        (
            "UPDATE one SET v = ? WHERE k = ?",
            vec![BoundValue::Null, set(&int)],
        ),
        ("DELETE FROM one WHERE k = ?", vec![set(&int)]),
        // A list of one value is planned as the value.
        ("UPDATE one SET v = 1 WHERE k IN (?)", vec![set(&int)]),
    ] {
        let key = planned(&schema, text).key.expect(text);
        assert_eq!(key.token(&values), single, "{text}");
    }
    let composed = compose_partition_key(&[&b"x"[..], &seven]).expect("a key");
    for (text, values) in [
        (
            "SELECT v FROM two WHERE a = ? AND b = ?",
            vec![set(b"x"), set(&seven)],
        ),
        (
            "SELECT v FROM two WHERE b = ? AND a = 'x' AND c > 2",
            vec![set(&seven)],
        ),
        (
            "DELETE FROM two WHERE a = 'x' AND b = 7 AND c = ?",
            vec![set(&int)],
        ),
    ] {
        let key = planned(&schema, text).key.expect(text);
        assert_eq!(key.token(&values), Some(murmur3_token(&composed)), "{text}");
    }
}

#[test]
fn computed_and_several_keys_have_no_token() {
    let schema = schema();
    for text in [
        "SELECT v FROM one",
        "SELECT v FROM one WHERE k IN (1, 2)",
        "SELECT v FROM one WHERE token(k) = 3",
        "SELECT v FROM many WHERE k = ?",
        "INSERT INTO id (k, v) VALUES (uuid(), 1)",
        "INSERT INTO one JSON '{\"k\": 1}'",
        "UPDATE one SET v = 1 WHERE k IN (1, 2)",
        "SELECT * FROM system_views.settings WHERE name = 'x'",
        "BEGIN BATCH INSERT INTO one (k, v) VALUES (1, 1) APPLY BATCH",
    ] {
        assert!(planned(&schema, text).key.is_none(), "{text}");
    }
}

#[test]
fn unusual_values_are_left_to_the_binding() {
    let schema = schema();
    let key = planned(&schema, "SELECT v FROM one WHERE k = ?")
        .key
        .expect("a key");
    for value in [BoundValue::Null, BoundValue::Unset, set(b""), set(&[0; 2000])] {
        assert_eq!(key.token(&[value]), None);
    }
    assert_eq!(key.token(&[]), None);
}
