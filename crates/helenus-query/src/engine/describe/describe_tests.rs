use std::collections::BTreeMap;

use uuid::Uuid;

use super::*;

/// Answers of Cassandra 5.0.5 to DESCRIBE KEYSPACE ... WITH INTERNALS, for each system keyspace.
const SYSTEM_KEYSPACES_DESCRIBED: &str = include_str!("system_keyspaces.txt");

fn schema() -> Schema {
    let keyspaces: BTreeMap<_, _> = crate::engine::system::keyspaces(false)
        .into_iter()
        .map(|keyspace| (keyspace.name.clone(), Arc::new(keyspace)))
        .collect();
    Schema {
        version: Uuid::nil(),
        generation: 1,
        document_version: 0,
        next_table_number: 1,
        keyspaces,
        access: Arc::default(),
        snapshots: Arc::default(),
        journal: Arc::default(),
    }
}

#[test]
fn system_keyspaces_are_described_as_in_cassandra() {
    let schema = schema();
    let mut described = Vec::new();
    for keyspace in &SYSTEM_KEYSPACES {
        let target = DescribeTarget::Keyspace {
            name: Some(ast::Ident::from(keyspace.name)),
            only: false,
        };
        for element in element::describe(&schema, None, &target).unwrap() {
            described.push(element.create_statement(true));
        }
    }
    let described = format!("{}\n", described.join("\n\n"));
    for (line, (found, expected)) in described
        .lines()
        .zip(SYSTEM_KEYSPACES_DESCRIBED.lines())
        .enumerate()
    {
        assert_eq!(found, expected, "line {}", line + 1);
    }
    assert_eq!(described, SYSTEM_KEYSPACES_DESCRIBED);
}
