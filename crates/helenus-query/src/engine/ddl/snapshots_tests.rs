use super::*;
use crate::engine::ddl::in_memory::InMemorySchema;
use crate::engine::ddl::schema_store::tests::check_lines;
use crate::limits::AutoSnapshot;

const NOW_MS: i64 = 1_700_000_000_000;
const HOUR: Duration = Duration::from_secs(3600);

/// Returns a schema whose snapshots expire after an hour, with a table that has an index, a view and a column of a user type.
fn schema() -> InMemorySchema {
    let mut schema = InMemorySchema::new("ks");
    schema.auto_snapshot = AutoSnapshot {
        is_on: true,
        ttl: Some(HOUR),
    };
    for statement in [
        "CREATE TYPE inner (n int)",
        "CREATE TYPE address (street text, i frozen<inner>)",
        "CREATE TYPE unused (n int)",
        "CREATE TABLE t (k int PRIMARY KEY, v int, a address)",
        "CREATE INDEX ti ON t (v)",
        "CREATE MATERIALIZED VIEW tv AS SELECT * FROM t WHERE k IS NOT NULL AND v IS NOT NULL PRIMARY KEY (v, k)",
        "CREATE TABLE other (k int PRIMARY KEY, v int)",
        "CREATE KEYSPACE elsewhere WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE elsewhere.t (k int PRIMARY KEY, v int)",
        "CREATE MATERIALIZED VIEW elsewhere.tv AS SELECT * FROM elsewhere.t WHERE k IS NOT NULL AND v IS NOT NULL PRIMARY KEY (v, k)",
    ] {
        schema.apply(statement).unwrap();
    }
    schema
}

/// Returns the only snapshot with that tag.
fn tagged<'s>(schema: &'s Schema, tag: &str) -> &'s Arc<Snapshot> {
    let mut tagged = schema.snapshots.values().filter(|snapshot| snapshot.tag == tag);
    let found = tagged.next().unwrap();
    assert!(tagged.next().is_none());
    found
}

fn table_names(keyspace: &Keyspace) -> Vec<&str> {
    keyspace.tables.keys().map(String::as_str).collect()
}

fn tags(schema: &Schema) -> Vec<&str> {
    schema.snapshots.keys().map(|(tag, _)| tag.as_str()).collect()
}

/// Returns the numbers of a table, its index and its view.
fn numbers(schema: &Schema) -> [u32; 3] {
    let table = schema.table("ks", "t").unwrap();
    let view = schema.table("ks", "tv").unwrap();
    [table.number.0, table.indexes[0].table.number.0, view.number.0]
}

/// Restores tables, and checks that the journal of the change leads to the same schema.
fn apply_restore(
    schema: &mut InMemorySchema,
    tag: Option<&str>,
    keyspace: Option<&str>,
    table: Option<&str>,
) -> Result<Restored, String> {
    let owned = |name: Option<&str>| name.map(str::to_owned);
    let wanted = Restore {
        tag: owned(tag),
        keyspace: owned(keyspace),
        table: owned(table),
        as_of: None,
    };
    let (next, restored) = restore(&schema.schema, &wanted, NOW_MS + 5, Some(HOUR))?;
    check_lines(&schema.schema, &next);
    // Other keyspaces are not changed.
    if let Some(elsewhere) = schema.schema.keyspace("elsewhere") {
        assert!(Arc::ptr_eq(elsewhere, next.keyspace("elsewhere").unwrap()));
    }
    schema.schema = next;
    Ok(restored)
}

#[test]
fn a_truncated_table_comes_back_with_its_rows_index_and_view() {
    let mut schema = schema();
    let before = numbers(&schema.schema);
    schema.apply("TRUNCATE t").unwrap();
    let emptied = numbers(&schema.schema);
    assert!(before.iter().all(|number| !emptied.contains(number)));
    let tag = format!("truncated-{NOW_MS}-t");
    assert_eq!(tags(&schema.schema), [&tag]);
    let snapshot = tagged(&schema.schema, &tag);
    assert_eq!(snapshot.expires_ms, Some(NOW_MS + 3_600_000));
    let types: Vec<&str> = snapshot.keyspace.types.keys().map(String::as_str).collect();
    assert_eq!(types, ["address", "inner"]);
    // Compaction must not sweep the rows of the snapshot.
    let kept: Vec<u32> = schema
        .schema
        .kept_tables()
        .flat_map(|table| {
            let indexes = table.indexes.iter().map(|index| index.table.number.0);
            indexes.chain([table.number.0]).collect::<Vec<_>>()
        })
        .collect();
    assert!(before.iter().chain(&emptied).all(|number| kept.contains(number)));

    let restored = apply_restore(&mut schema, None, Some("ks"), Some("t")).unwrap();
    assert_eq!(restored.tables, ["t"]);
    assert_eq!(restored.tag, tag);
    let replaced = format!("replaced-{}-t", NOW_MS + 5);
    assert_eq!(restored.replaced.as_deref(), Some(replaced.as_str()));
    assert_eq!(numbers(&schema.schema), before);
    let table = schema.schema.table("ks", "t").unwrap();
    assert_eq!(table.views, ["tv"]);
    // The replaced tables are a snapshot too, so that the restore can be undone.
    assert_eq!(tags(&schema.schema), [&replaced]);
    assert!(apply_restore(&mut schema, None, Some("ks"), Some("t")).is_err());
    apply_restore(&mut schema, Some(&replaced), None, None).unwrap();
    assert_eq!(numbers(&schema.schema), emptied);
}

#[test]
fn the_newest_snapshot_is_put_back_unless_one_is_named() {
    let mut schema = schema();
    let first = numbers(&schema.schema);
    schema.apply("TRUNCATE t").unwrap();
    let second = numbers(&schema.schema);
    // The second TRUNCATE is in the same millisecond.
    schema.apply("TRUNCATE t").unwrap();
    let (older, newer) = (
        format!("truncated-{NOW_MS}-t"),
        format!("truncated-{}-t", NOW_MS + 1),
    );
    assert_eq!(tags(&schema.schema), [&older, &newer]);
    apply_restore(&mut schema, None, Some("ks"), None).unwrap();
    assert_eq!(numbers(&schema.schema), second);
    apply_restore(&mut schema, Some(&older), Some("ks"), Some("t")).unwrap();
    assert_eq!(numbers(&schema.schema), first);
}

#[test]
fn a_dropped_table_comes_back_beside_the_others() {
    let mut schema = schema();
    let number = schema.schema.table("ks", "other").unwrap().number;
    schema.apply("DROP TABLE other").unwrap();
    schema.apply("CREATE TABLE other (x text PRIMARY KEY)").unwrap();
    let restored = apply_restore(&mut schema, None, Some("ks"), Some("other")).unwrap();
    let table = schema.schema.table("ks", "other").unwrap();
    assert_eq!(table.number, number);
    assert!(table.column("v").is_some());
    // The table of the same name that was created after the drop is not lost.
    apply_restore(&mut schema, restored.replaced.as_deref(), None, None).unwrap();
    assert!(schema.schema.table("ks", "other").unwrap().column("x").is_some());
}

#[test]
fn a_dropped_keyspace_comes_back_whole_or_table_by_table() {
    let mut schema = schema();
    schema
        .apply("CREATE FUNCTION f (n int) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'return n;'")
        .unwrap();
    let before = numbers(&schema.schema);
    let keyspace = schema.schema.keyspace("ks").unwrap().clone();
    schema.apply("DROP KEYSPACE ks").unwrap();
    let tag = format!("dropped-{NOW_MS}-ks");
    assert_eq!(tags(&schema.schema), [&tag]);

    let mut whole = InMemorySchema {
        schema: schema.schema.clone(),
        ..InMemorySchema::new("unused")
    };
    let restored = apply_restore(&mut whole, None, Some("ks"), None).unwrap();
    assert_eq!(restored.tables, ["other", "t"]);
    assert_eq!(restored.replaced, None);
    assert_eq!(numbers(&whole.schema), before);
    assert!(whole.schema.snapshots.is_empty());
    let found = whole.schema.keyspace("ks").unwrap();
    assert_eq!(found.types, keyspace.types);
    assert_eq!(found.functions, keyspace.functions);
    assert_eq!(found.replication, keyspace.replication);
    assert_eq!(table_names(found), table_names(&keyspace));

    apply_restore(&mut schema, Some(&tag), Some("ks"), Some("other")).unwrap();
    assert_eq!(table_names(schema.schema.keyspace("ks").unwrap()), ["other"]);
    assert!(schema.schema.keyspace("ks").unwrap().types.is_empty());
    // The other tables can still be restored.
    apply_restore(&mut schema, Some(&tag), None, None).unwrap();
    assert_eq!(numbers(&schema.schema), before);
    assert!(schema.schema.snapshots.is_empty());
}

#[test]
fn a_type_may_have_grown_unless_keys_are_made_of_it() {
    let mut schema = schema();
    schema.apply("TRUNCATE t").unwrap();
    schema.apply("ALTER TYPE address ADD zip int").unwrap();
    schema.apply("ALTER TYPE address RENAME street TO road").unwrap();
    apply_restore(&mut schema, None, Some("ks"), Some("t")).unwrap();
    let (_, column) = schema.schema.table("ks", "t").unwrap().column("a").unwrap();
    let ty = schema.schema.keyspace("ks").unwrap().types["address"].clone();
    assert!(ty.fields.len() == 3 && ty.fields[0].name == "road");
    assert!(matches!(&column.ty, helenus_cql::types::CqlType::Udt { definition, .. } if *definition == ty));

    schema
        .apply("CREATE TABLE keyed (k frozen<unused> PRIMARY KEY, v int)")
        .unwrap();
    schema.apply("DROP TABLE keyed").unwrap();
    schema.apply("ALTER TYPE unused ADD more int").unwrap();
    let refused = apply_restore(&mut schema, None, Some("ks"), Some("keyed")).unwrap_err();
    assert!(
        refused.starts_with("type ks.unused is not what it was"),
        "{refused}"
    );
}

#[test]
fn what_stands_in_the_way_is_named() {
    let mut schema = schema();
    schema.apply("TRUNCATE t").unwrap();
    schema.apply("DROP MATERIALIZED VIEW tv").unwrap();
    schema.apply("CREATE TABLE tv (k int PRIMARY KEY)").unwrap();
    let refused =
        |schema: &mut InMemorySchema| apply_restore(schema, None, Some("ks"), Some("t")).unwrap_err();
    assert_eq!(
        refused(&mut schema),
        "there is another ks.tv by now: drop it first"
    );
    schema.apply("DROP TABLE tv").unwrap();
    schema.apply("DROP INDEX ti").unwrap();
    schema.apply("CREATE INDEX ti ON other (v)").unwrap();
    assert_eq!(
        refused(&mut schema),
        "index ti is on table ks.other by now: drop it first"
    );
    schema.apply("DROP INDEX ti").unwrap();
    apply_restore(&mut schema, None, Some("ks"), Some("t")).unwrap();

    let wrong = |tag: Option<&str>, keyspace: Option<&str>, table: Option<&str>| {
        let mut copy = InMemorySchema {
            schema: schema.schema.clone(),
            keyspace: None,
            ..InMemorySchema::new("unused")
        };
        apply_restore(&mut copy, tag, keyspace, table).unwrap_err()
    };
    let missing = "; see nodetool listsnapshots";
    assert_eq!(
        wrong(Some("none"), None, None),
        format!("there is no snapshot none{missing}")
    );
    assert_eq!(
        wrong(None, Some("ks"), Some("nothing")),
        format!("there is no snapshot of ks.nothing{missing}")
    );
    let dropped = format!("dropped-{NOW_MS}-tv");
    assert_eq!(
        wrong(Some(&dropped), Some("elsewhere"), None),
        format!("snapshot {dropped} is of keyspace ks, not of elsewhere")
    );
    assert_eq!(
        wrong(Some(&dropped), None, Some("t")),
        format!("snapshot {dropped} has no table t of keyspace ks")
    );
}

#[test]
fn a_view_is_not_restored_alone() {
    let mut schema = schema();
    schema.apply("TRUNCATE t").unwrap();
    let tag = format!("truncated-{NOW_MS}-t");
    let refused = apply_restore(&mut schema, Some(&tag), None, Some("tv")).unwrap_err();
    assert_eq!(refused, "tv is a materialized view: restore its base table, t");
}

#[test]
fn tables_and_nodes_may_have_no_snapshots() {
    let mut schema = schema();
    schema
        .apply("ALTER TABLE t WITH allow_auto_snapshot = false")
        .unwrap();
    schema.apply("TRUNCATE t").unwrap();
    assert!(schema.schema.snapshots.is_empty());
    schema.auto_snapshot.is_on = false;
    schema.apply("TRUNCATE other").unwrap();
    assert!(schema.schema.snapshots.is_empty());
    schema.auto_snapshot.is_on = true;
    schema.auto_snapshot.ttl = None;
    schema.apply("DROP KEYSPACE ks").unwrap();
    let snapshot = tagged(&schema.schema, &format!("dropped-{NOW_MS}-ks"));
    // Neither the table `t` nor its view is in the snapshot.
    assert_eq!(table_names(&snapshot.keyspace), ["other"]);
    assert!(!snapshot.is_expired(i64::MAX));
}

#[test]
fn snapshots_are_cleared_by_tag_keyspace_age_and_expiry() {
    let mut schema = schema();
    schema.apply("TRUNCATE t").unwrap();
    schema.now_us += 10_000_000;
    schema.apply("TRUNCATE other").unwrap();
    let (first, second) = (
        format!("truncated-{NOW_MS}-t"),
        format!("truncated-{}-other", NOW_MS + 10_000),
    );
    let cleared = |tag: Option<&str>, keyspaces: &[&str], taken_before_ms: Option<i64>| {
        let which = Clear {
            tag: tag.map(str::to_owned),
            keyspaces: keyspaces.iter().map(|name| (*name).to_owned()).collect(),
            taken_before_ms,
        };
        clear(&schema.schema, &which).map_or_else(String::new, |(next, gone)| {
            check_lines(&schema.schema, &next);
            assert_eq!(next.snapshots.len() + gone.len(), 2);
            gone.join(" ")
        })
    };
    assert_eq!(cleared(None, &[], None), format!("{first} {second}"));
    assert_eq!(cleared(Some(&second), &[], None), second);
    assert!(cleared(Some(&second), &["elsewhere"], None).is_empty());
    assert_eq!(cleared(None, &["ks"], Some(NOW_MS + 1)), first);
    assert!(expire(&schema.schema, NOW_MS + 3_599_999).is_none());
    let (next, gone) = expire(&schema.schema, NOW_MS + 3_600_000).unwrap();
    assert_eq!(gone, [first]);
    assert_eq!(tags(&next), [&second]);
}

fn pinned(number: u32) -> Arc<[PinnedTablet]> {
    let tablet = |id| PinnedTablet {
        id,
        tokens: helenus_tablet::TokenRange { first: 0, last: 9 },
        manifest: u64::from(number),
        checkpoint: uuid::Uuid::from_u128(u128::from(number)),
    };
    Arc::new([tablet(1), tablet(2)])
}

fn to_take_of(tag: &str, keyspaces: &[&str], tables: &[&str]) -> Take {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Take {
        tag: tag.to_owned(),
        keyspaces: owned(keyspaces),
        tables: owned(tables),
        ttl_ms: None,
        skip_flush: false,
        as_of: None,
    }
}

/// Takes a snapshot, and checks that the journal of the change leads to the same schema.
fn take_now(schema: &mut InMemorySchema, which: &Take, number: u32) -> Result<(), String> {
    let keyspaces = to_take(&schema.schema, which)?;
    let next = take(&schema.schema, which, &keyspaces, &pinned(number), NOW_MS)?;
    check_lines(&schema.schema, &next);
    schema.schema = next;
    Ok(())
}

#[test]
fn a_tag_is_given_once_to_each_keyspace() {
    let mut schema = schema();
    take_now(&mut schema, &to_take_of("x", &["ks"], &[]), 1).unwrap();
    let again = take_now(&mut schema, &to_take_of("x", &[], &["ks.other"]), 2);
    assert_eq!(again.unwrap_err(), "Snapshot x already exists.");
    take_now(&mut schema, &to_take_of("x", &["elsewhere"], &[]), 2).unwrap();
    assert_eq!(tags(&schema.schema), ["x", "x"]);
    // Compaction need not keep any rows for these snapshots, because their tablets are pinned.
    assert_eq!(
        schema.schema.kept_tables().count(),
        schema.schema.stored_tables().count()
    );
    let which = Clear {
        tag: Some("x".to_owned()),
        keyspaces: vec!["ks".to_owned()],
        ..Clear::default()
    };
    let (next, cleared) = clear(&schema.schema, &which).unwrap();
    check_lines(&schema.schema, &next);
    assert_eq!(cleared, ["x"]);
    let left: Vec<_> = next
        .snapshots
        .keys()
        .map(|(_, keyspace)| keyspace.as_str())
        .collect();
    assert_eq!(left, ["elsewhere"]);
}

#[test]
fn a_snapshot_of_a_table_has_its_views_and_types() {
    let mut schema = schema();
    take_now(&mut schema, &to_take_of("x", &[], &["ks.t", "elsewhere.t"]), 1).unwrap();
    let of = |keyspace: &str| &schema.schema.snapshots[&("x".to_owned(), keyspace.to_owned())];
    assert_eq!(table_names(&of("ks").keyspace), ["t", "tv"]);
    let types: Vec<&String> = of("ks").keyspace.types.keys().collect();
    assert_eq!(types, ["address", "inner"]);
    assert_eq!(table_names(&of("elsewhere").keyspace), ["t", "tv"]);
    assert_eq!(of("ks").pinned, Some(pinned(1)));
}

#[test]
fn restore_renumbers_pinned_tables_and_keeps_snapshot() {
    let mut schema = schema();
    let before = numbers(&schema.schema);
    take_now(&mut schema, &to_take_of("x", &["ks"], &[]), 1).unwrap();
    let wanted = Restore {
        tag: Some("x".to_owned()),
        keyspace: None,
        table: Some("t".to_owned()),
        as_of: None,
    };
    let (next, adoption) = begin_adoption(&schema.schema, &wanted, NOW_MS).unwrap().unwrap();
    check_lines(&schema.schema, &next);
    schema.schema = next;
    let from: Vec<u32> = adoption.numbers.iter().map(|(from, _)| from.0).collect();
    let to: Vec<u32> = adoption.numbers.iter().map(|(_, to)| to.0).collect();
    let sorted = |numbers: &[u32]| {
        let mut numbers = numbers.to_vec();
        numbers.sort_unstable();
        numbers
    };
    assert_eq!(sorted(&from), sorted(&before));
    assert!(to.iter().all(|number| *number > *before.iter().max().unwrap()));
    // Rows that are written under the new numbers from now on are not swept.
    let kept: Vec<u32> = schema.schema.kept_tables().map(|table| table.number.0).collect();
    assert!(adoption.numbers.iter().any(|(_, to)| kept.contains(&to.0)));
    apply_restore(&mut schema, Some(&adoption.tag), None, None).unwrap();
    assert_eq!(sorted(&numbers(&schema.schema)), sorted(&to));
    let origin = schema.schema.table("ks", "t").unwrap().origins();
    assert!(
        origin
            .iter()
            .all(|(_, origin)| origin.pinned == pinned(1) && from.contains(&origin.table))
    );
    for name in ["t", "tv"] {
        let table = schema.schema.table("ks", name).unwrap().clone();
        let next = end_adoption(&schema.schema, &table).unwrap();
        check_lines(&schema.schema, &next);
        assert!(end_adoption(&next, &table).is_none());
        schema.schema = next;
    }
    assert_eq!(sorted(&numbers(&schema.schema)), sorted(&to));
    assert!(!schema.schema.has_origins());
    assert_eq!(tags(&schema.schema), [&format!("replaced-{}-t", NOW_MS + 5), "x"]);
    // A snapshot that TRUNCATE has left needs no copy.
    schema.apply("TRUNCATE t").unwrap();
    let wanted = Restore {
        keyspace: Some("ks".to_owned()),
        ..Restore::default()
    };
    assert!(begin_adoption(&schema.schema, &wanted, NOW_MS).unwrap().is_none());
}
