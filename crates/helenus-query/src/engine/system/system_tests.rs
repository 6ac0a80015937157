use helenus_cql::types::CqlType;

use super::definition::keyspaces;
use super::registry::{TABLES, find};

#[test]
fn definitions_are_those_of_cassandra() {
    let keyspaces = keyspaces(false);
    let counts: Vec<(&str, usize)> = keyspaces
        .iter()
        .map(|keyspace| (keyspace.name.as_str(), keyspace.tables.len()))
        .collect();
    assert_eq!(
        counts,
        [
            ("system", 26),
            ("system_schema", 12),
            ("system_auth", 8),
            ("system_distributed", 6),
            ("system_traces", 2),
            ("system_views", 44),
            ("system_virtual_schema", 3),
        ]
    );
    let local = &keyspaces[0].tables["local"];
    assert_eq!(local.id.to_string(), "7ad54392-bcdd-35a6-8417-4e047860b377");
    assert_eq!(local.options.gc_grace_s, 0);
    let (_, tokens) = local.column("tokens").unwrap();
    assert_eq!(tokens.ty, CqlType::set(CqlType::TEXT, false));
}

#[test]
fn tables_about_several_nodes_are_those_of_a_shared_store() {
    let (alone, shared) = (keyspaces(false), keyspaces(true));
    let mut more = Vec::new();
    for (alone, shared) in alone.iter().zip(&shared) {
        let added = shared
            .tables
            .keys()
            .filter(|name| !alone.tables.contains_key(*name));
        more.extend(added.map(|name| format!("{}.{name}", shared.name)));
    }
    let expected = ["system_views.cluster_nodes", "system_views.tablets"];
    assert_eq!(more, expected);
}

#[test]
fn tables_of_the_registry_are_defined_and_named_once() {
    let keyspaces = keyspaces(true);
    for (place, table) in TABLES.iter().enumerate() {
        let (keyspace, name) = (table.keyspace, table.name);
        let defined = keyspaces.iter().find(|defined| defined.name == keyspace);
        assert!(defined.unwrap().tables.contains_key(name), "{keyspace}.{name}");
        let first = find(keyspace, name).unwrap();
        assert!(std::ptr::eq(first, &TABLES[place]), "{keyspace}.{name}");
    }
}
