use helenus_cql::parser::parse_statement;
use helenus_cql::types::CqlType;
use helenus_tablet::StoreConfig;

use super::*;
use crate::engine::access::AccessControl;
use crate::engine::ddl::{DdlContext, apply as run};
use crate::index::building::{with_complete_index, without_old_entries};
use crate::limits::AutoSnapshot;
use crate::schema::roles::{Resource, Role, Roles, ServiceLevel};

/// Checks that the journal's lines from one schema to the next, applied to the first, lead to the second.
pub fn check_lines(before: &Schema, after: &Schema) {
    let mut found = before.clone();
    found.next_table_number = after.next_table_number;
    for line in difference(before, after) {
        apply(&mut found, &serde_json::to_string(&line).unwrap(), hidden_table).unwrap();
    }
    let text = |schema: &Schema| String::from_utf8(documents::encode(schema).unwrap()).unwrap();
    assert_eq!(text(&found), text(after));
}

async fn load(store: &Store) -> Result<Schema, CqlError> {
    super::load(store, crate::engine::system::keyspaces).await
}

async fn load_newer(store: &Store, known: &Schema) -> Result<Option<Schema>, CqlError> {
    super::load_newer(store, known, crate::engine::system::keyspaces).await
}

struct Open {
    store: Arc<Store>,
    _folder: tempfile::TempDir,
}

async fn open() -> Open {
    let folder = tempfile::tempdir().unwrap();
    let mut config = StoreConfig::small(folder.path());
    config.fsync = false;
    let hooks = crate::storage::RowHooks::without_schema();
    Open {
        store: Store::open(config, hooks).await.unwrap(),
        _folder: folder,
    }
}

/// Executes a statement, writes the new schema down and returns it.
async fn execute(store: &Arc<Store>, before: &Schema, statement: &str) -> Schema {
    let ctx = DdlContext {
        schema: before,
        data_centers: vec!["datacenter1".to_owned()],
        keyspace: Some("ks"),
        user: None,
        control: AccessControl::default(),
        masks_columns: true,
        auto_snapshot: AutoSnapshot {
            is_on: false,
            ttl: None,
        },
        now_us: 1,
    };
    let parsed = parse_statement(statement).unwrap().statement;
    let crate::engine::ddl::Effect::Changed(mut change) = run(&ctx, &parsed).unwrap() else {
        panic!("no change");
    };
    change.schema.version = Uuid::new_v4();
    crate::engine::ddl::schema_store::store(store, before, change.schema)
        .await
        .unwrap()
        .unwrap()
}

fn text(schema: &Schema) -> String {
    let text = String::from_utf8(documents::encode(schema).unwrap()).unwrap();
    format!("{} {} {text}", schema.version, schema.document_version)
}

async fn with_keyspace(store: &Arc<Store>) -> Schema {
    let empty = load(store).await.unwrap();
    execute(
        store,
        &empty,
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    )
    .await
}

#[tokio::test]
async fn concurrent_readers_find_the_same_schema() {
    let open = open().await;
    let mut schema = with_keyspace(&open.store).await;
    let mut follower = load(&open.store).await.unwrap();
    let sleeper = follower.clone();
    let mut bases = std::collections::BTreeSet::new();
    for number in 0..400 {
        let statement = match number % 10 {
            7 => format!("ALTER TABLE t{} ADD more text", number - 1),
            9 => format!("DROP TABLE t{}", number - 1),
            _ => format!("CREATE TABLE t{number} (k int PRIMARY KEY, v text) WITH comment = 'some words'"),
        };
        schema = execute(&open.store, &schema, &statement).await;
        bases.extend(schema.journal.base.as_ref().map(|base| base.name.clone()));
        // One reader follows each change, one reads from time to time, and one reads only now.
        follower = load_newer(&open.store, &follower).await.unwrap().unwrap();
        assert_eq!(text(&follower), text(&schema));
        if number % 150 == 0 {
            let late = load_newer(&open.store, &sleeper).await.unwrap().unwrap();
            assert_eq!(text(&late), text(&schema));
            assert_eq!(text(&load(&open.store).await.unwrap()), text(&schema));
        }
    }
    assert!(bases.len() > 1, "{bases:?}");
    assert!(load_newer(&open.store, &schema).await.unwrap().is_none());
    let kept = open.store.meta_list().await.unwrap();
    let left = kept.iter().filter(|name| name.starts_with("schema."));
    assert!(left.count() <= 2, "former bases are deleted: {kept:?}");
}

#[tokio::test]
async fn a_follower_keeps_the_tables_that_have_not_changed() {
    let open = open().await;
    let mut schema = with_keyspace(&open.store).await;
    let create = |name: &str| format!("CREATE TABLE {name} (k int PRIMARY KEY)");
    schema = execute(&open.store, &schema, &create("a")).await;
    let follower = load(&open.store).await.unwrap();
    execute(&open.store, &schema, &create("b")).await;
    let newer = load_newer(&open.store, &follower).await.unwrap().unwrap();
    let table = |schema: &Schema| schema.table("ks", "a").unwrap().clone();
    assert!(Arc::ptr_eq(&table(&follower), &table(&newer)));
    assert!(newer.table("ks", "b").is_some());
}

#[tokio::test]
async fn first_writer_wins_and_second_gets_an_error() {
    let open = open().await;
    let schema = with_keyspace(&open.store).await;
    execute(&open.store, &schema, "CREATE TABLE a (k int PRIMARY KEY)").await;
    let mut other = schema.clone();
    other.version = Uuid::new_v4();
    assert!(
        crate::engine::ddl::schema_store::store(&open.store, &schema, other)
            .await
            .unwrap()
            .is_none()
    );
}

#[tokio::test]
async fn schema_of_format_1_is_read_and_rewritten() {
    let open = open().await;
    let old = r#"{"format":1,"next_table_number":2,"keyspaces":[{"name":"ks","class":"SimpleStrategy","options":{"replication_factor":"1"},"durable_writes":true,"types":[],"tables":[{"name":"t","id":"00000000-0000-0000-0000-000000000001","number":1,"next_column_id":1,"columns":[{"name":"k","ty":{"native":"int"},"kind":"partition_key","position":0,"id":0}]}]}]}"#;
    let put = open.store.meta_put(NAME, old.as_bytes(), MetaExpect::Absent);
    put.await.unwrap();
    let schema = load(&open.store).await.unwrap();
    assert!(schema.table("ks", "t").is_some());
    let next = execute(&open.store, &schema, "CREATE TABLE u (k int PRIMARY KEY)").await;
    assert_eq!(text(&load(&open.store).await.unwrap()), text(&next));
    let follower = load_newer(&open.store, &schema).await.unwrap().unwrap();
    assert_eq!(text(&follower), text(&next));
}

/// Returns the format that the document names.
async fn format(store: &Store) -> u32 {
    let document = store.meta_get(NAME).await.unwrap().unwrap().content;
    let text = String::from_utf8(document.to_vec()).unwrap();
    documents::format(text.lines().next().unwrap()).unwrap()
}

#[tokio::test]
async fn a_function_keeps_older_binaries_out_until_it_is_gone() {
    let open = open().await;
    let schema = with_keyspace(&open.store).await;
    let of_type = execute(&open.store, &schema, "CREATE TYPE p (a int, b text)").await;
    assert_eq!(format(&open.store).await, 3);
    let create =
        "CREATE FUNCTION f (s p, v list<int>) CALLED ON NULL INPUT RETURNS p LANGUAGE java AS 'return s;'";
    let one = execute(&open.store, &of_type, create).await;
    assert_eq!(format(&open.store).await, 5);
    let create = "CREATE AGGREGATE a (list<int>) SFUNC f STYPE p INITCOND {a: 1, b: 'x'}";
    let two = execute(&open.store, &one, create).await;
    let follower = load_newer(&open.store, &of_type).await.unwrap().unwrap();
    for loaded in [&follower, &load(&open.store).await.unwrap()] {
        assert_eq!(text(loaded), text(&two));
        let (found, made) = (loaded.keyspace("ks").unwrap(), two.keyspace("ks").unwrap());
        assert_eq!(found.functions, made.functions);
        assert_eq!(found.aggregates, made.aggregates);
        assert!(found.aggregates.contains_key("a(frozen<list<int>>)"));
    }
    assert!(text(&two).contains(r#"{"format":3,"#));
    let dropped = execute(&open.store, &two, "DROP AGGREGATE a").await;
    assert_eq!(format(&open.store).await, 5);
    let dropped = execute(&open.store, &dropped, "DROP FUNCTION f").await;
    assert_eq!(format(&open.store).await, 3);
    assert_eq!(text(&load(&open.store).await.unwrap()), text(&dropped));
}

#[tokio::test]
async fn a_compact_table_keeps_older_binaries_out_until_it_is_gone() {
    let open = open().await;
    let schema = with_keyspace(&open.store).await;
    let format = async || format(&open.store).await;
    assert_eq!(format().await, 3);
    let create = "CREATE TABLE t (k int, c int, PRIMARY KEY (k, c)) WITH COMPACT STORAGE";
    let compact = execute(&open.store, &schema, create).await;
    assert_eq!(format().await, 4);
    let loaded = load(&open.store).await.unwrap();
    assert_eq!(text(&loaded), text(&compact));
    assert!(loaded.table("ks", "t").unwrap().is_dense());
    // The table's value column still has a type that older binaries do not know.
    let ordinary = execute(&open.store, &loaded, "ALTER TABLE t DROP COMPACT STORAGE").await;
    assert_eq!(format().await, 4);
    let dropped = execute(&open.store, &ordinary, "DROP TABLE t").await;
    assert_eq!(format().await, 3);
    assert_eq!(text(&load(&open.store).await.unwrap()), text(&dropped));
}

#[tokio::test]
async fn a_newer_format_is_refused() {
    let open = open().await;
    let newer = format!("{{\"format\":{}}}\n\"what this one does not know\"", JOURNAL + 1);
    let put = open.store.meta_put(NAME, newer.as_bytes(), MetaExpect::Absent);
    put.await.unwrap();
    let refused = load(&open.store).await.unwrap_err().to_string();
    assert!(refused.contains("use a newer helenus"), "{refused}");
}

#[tokio::test]
async fn roles_are_written_down_with_the_schema() {
    let open = open().await;
    let empty = load(&open.store).await.unwrap();
    let role = |name: &str, of: &[&str]| Role {
        name: name.to_owned(),
        can_login: true,
        salted_hash: Some("$2a$10$x".to_owned()),
        member_of: of.iter().map(|of| (*of).to_owned()).collect(),
        permissions: [
            Resource::AllKeyspaces,
            Resource::table("k", "t"),
            Resource::function("k", "f", &[helenus_cql::types::CqlType::INT]),
            Resource::MBean("a:b=*".to_owned()),
        ]
        .into_iter()
        .map(|on| (on.clone(), on.applicable()))
        .collect(),
        ..Role::default()
    };
    let with = |schema: &Schema, change: &dyn Fn(&mut Roles)| {
        let mut next = schema.clone();
        next.version = Uuid::new_v4();
        change(Arc::make_mut(&mut next.access));
        check_lines(schema, &next);
        next
    };
    let two = with(&empty, &|access| {
        for role in [role("ann", &["bob"]), role("bob", &[])] {
            access.roles.insert(role.name.clone(), Arc::new(role));
        }
        access.identities.insert("x".to_owned(), "ann".to_owned());
    });
    let two = crate::engine::ddl::schema_store::store(&open.store, &empty, two)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(load(&open.store).await.unwrap().access, two.access);
    assert_eq!(format(&open.store).await, 6);
    let one = with(&two, &|access| {
        access.roles.remove("bob");
    });
    let one = crate::engine::ddl::schema_store::store(&open.store, &two, one)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(load(&open.store).await.unwrap().access, one.access);
    assert_eq!(
        load_newer(&open.store, &two).await.unwrap().unwrap().access,
        one.access
    );
}

#[tokio::test]
async fn service_levels_are_written_down_with_the_roles() {
    let open = open().await;
    let empty = load(&open.store).await.unwrap();
    let changed = |schema: &Schema, access: Roles| {
        let mut next = schema.clone();
        next.version = Uuid::new_v4();
        next.access = Arc::new(access);
        check_lines(schema, &next);
        next
    };
    let role = Role {
        name: "app".to_owned(),
        service_level: Some("gold".to_owned()),
        ..Role::default()
    };
    let mut access = Roles::default().with_role(role);
    let gold = ServiceLevel {
        name: "gold".to_owned(),
        max_requests_per_second: Some(7),
        timeout: Some(std::time::Duration::from_millis(500)),
    };
    access.service_levels.insert("gold".to_owned(), gold);
    let with_level = changed(&empty, access.clone());
    let with_level = crate::engine::ddl::schema_store::store(&open.store, &empty, with_level)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(load(&open.store).await.unwrap().access, with_level.access);
    assert_eq!(format(&open.store).await, 10);
    let mut found = empty.clone();
    documents::read(&documents::encode(&with_level).unwrap(), &mut found, hidden_table).unwrap();
    assert_eq!(found.access, with_level.access);

    access.service_levels.clear();
    let without = changed(&with_level, access);
    let without = crate::engine::ddl::schema_store::store(&open.store, &with_level, without)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(load(&open.store).await.unwrap().access, without.access);
    // The journal still contains the line about service levels.
    assert_eq!(format(&open.store).await, 10);
}

#[tokio::test]
async fn ordered_index_excludes_older_binaries_until_dropped() {
    let open = open().await;
    let schema = with_keyspace(&open.store).await;
    let format = async || format(&open.store).await;
    let table = execute(
        &open.store,
        &schema,
        "CREATE TABLE t (k int PRIMARY KEY, v int, w text)",
    )
    .await;
    let by_hash = execute(&open.store, &table, "CREATE INDEX ON t (v)").await;
    let by_hash = execute(&open.store, &by_hash, "CREATE INDEX ON t (w) USING 'sai'").await;
    assert_eq!(format().await, 3);
    let order = |schema: &Schema, name: &str| {
        let indexes = &schema.table("ks", "t").unwrap().indexes;
        let index = indexes.iter().find(|index| index.name == name).unwrap();
        index.order.clone()
    };
    let ordered = execute(&open.store, &by_hash, "CREATE INDEX i ON t (v) USING 'sai'").await;
    assert_eq!(format().await, 7);
    let loaded = load(&open.store).await.unwrap();
    assert_eq!(text(&loaded), text(&ordered));
    for (name, expected) in [("t_v_idx", None), ("t_w_idx", None), ("i", Some(CqlType::INT))] {
        assert_eq!(order(&loaded, name), expected, "{name}");
    }
    // An index of an older version is ordered by hash, whatever its type.
    let whole = String::from_utf8(documents::encode(&ordered).unwrap()).unwrap();
    let older = whole.replace(r#","is_ordered":true"#, "");
    assert_ne!(older, whole);
    let mut found = schema.clone();
    documents::read(older.as_bytes(), &mut found, hidden_table).unwrap();
    assert_eq!(order(&found, "i"), None);
    execute(&open.store, &ordered, "DROP INDEX i").await;
    assert_eq!(format().await, 3);
}

#[tokio::test]
async fn vector_index_excludes_older_binaries_and_old_has_no_lists() {
    let open = open().await;
    let schema = with_keyspace(&open.store).await;
    let has_lists = |schema: &Schema| schema.table("ks", "t").unwrap().indexes[0].has_posting_lists;
    let table = "CREATE TABLE t (k int PRIMARY KEY, v vector<float, 2>)";
    let table = execute(&open.store, &schema, table).await;
    let indexed = execute(&open.store, &table, "CREATE INDEX i ON t (v) USING 'sai'").await;
    assert_eq!(format(&open.store).await, 8);
    assert!(has_lists(&load(&open.store).await.unwrap()));
    let whole = String::from_utf8(documents::encode(&indexed).unwrap()).unwrap();
    let older = whole.replace(r#","has_posting_lists":true"#, "");
    assert_ne!(older, whole);
    let mut found = schema.clone();
    documents::read(older.as_bytes(), &mut found, hidden_table).unwrap();
    assert!(!has_lists(&found));
}

#[tokio::test]
async fn masks_exclude_older_binaries_until_dropped() {
    let open = open().await;
    let schema = with_keyspace(&open.store).await;
    let create = "CREATE TABLE t (k int PRIMARY KEY, v text MASKED WITH mask_inner(1, null))";
    let masked = execute(&open.store, &schema, create).await;
    assert_eq!(format(&open.store).await, 9);
    let loaded = load(&open.store).await.unwrap();
    assert_eq!(text(&loaded), text(&masked));
    let (_, column) = loaded.table("ks", "t").unwrap().column("v").unwrap();
    let mask = column.mask.as_deref().unwrap();
    assert_eq!(mask.function_name(), "system.mask_inner");
    assert_eq!(
        mask.arguments.iter().filter(|(_, value)| value.is_none()).count(),
        1
    );
    execute(&open.store, &masked, "ALTER TABLE t ALTER v DROP MASKED").await;
    assert_eq!(format(&open.store).await, 3);
}

#[tokio::test]
async fn an_index_with_old_entries_is_built_again() {
    let open = open().await;
    let keyspace = with_keyspace(&open.store).await;
    let typed = execute(&open.store, &keyspace, "CREATE TYPE ty (a int, b int)").await;
    let create = "CREATE TABLE t (k int PRIMARY KEY, u frozen<ty>, v int)";
    let table = execute(&open.store, &typed, create).await;
    assert_eq!(format(&open.store).await, 3);
    let by_number = execute(&open.store, &table, "CREATE INDEX iv ON t (v)").await;
    assert_eq!(format(&open.store).await, 3);
    let made = execute(&open.store, &by_number, "CREATE INDEX iu ON t (u)").await;
    assert_eq!(format(&open.store).await, 14);
    assert_eq!(text(&load(&open.store).await.unwrap()), text(&made));
    let whole = String::from_utf8(documents::encode(&made).unwrap()).unwrap();
    let whole = whole.replace(r#""is_complete":false"#, r#""is_complete":true"#);
    let states = |schema: &Schema| -> Vec<(bool, bool)> {
        let indexes = schema.table("ks", "t").unwrap().indexes.iter();
        indexes
            .map(|index| (index.is_complete, index.has_old_entries))
            .collect()
    };
    let read = |text: &str| {
        let mut schema = keyspace.clone();
        documents::read(text.as_bytes(), &mut schema, hidden_table).unwrap();
        schema
    };
    assert_eq!(states(&read(&whole)), [(true, false), (true, false)]);
    let older = read(&whole.replace(r#","omits_trailing_nulls":true"#, ""));
    assert_eq!(states(&older), [(true, false), (false, true)]);
    // Before the index is built, the schema states that all nodes write the new form.
    let table = older.table("ks", "t").unwrap();
    let agreed = without_old_entries(&older, table, &table.indexes[1]).unwrap();
    check_lines(&older, &agreed);
    assert_eq!(states(&agreed), [(true, false), (false, false)]);
    assert!(without_old_entries(&agreed, table, &table.indexes[1]).is_none());
    let built = with_complete_index(&agreed, table, &table.indexes[1]).unwrap();
    assert_eq!(states(&built), [(true, false), (true, false)]);
}

#[tokio::test]
async fn wide_vectors_keep_older_binaries_out() {
    let open = open().await;
    let keyspace = with_keyspace(&open.store).await;
    let create = "CREATE TABLE t (k int PRIMARY KEY, v vector<float, 65535>)";
    let narrow = execute(&open.store, &keyspace, create).await;
    assert_eq!(format(&open.store).await, 3);
    let add = "ALTER TABLE t ADD w frozen<map<int, vector<float, 65536>>>";
    let wide = execute(&open.store, &narrow, add).await;
    assert_eq!(format(&open.store).await, 14);
    assert_eq!(text(&load(&open.store).await.unwrap()), text(&wide));
    // The journal still contains the line that an older binary cannot read.
    let dropped = execute(&open.store, &wide, "DROP TABLE t").await;
    assert_eq!(format(&open.store).await, 14);
    assert_eq!(text(&load(&open.store).await.unwrap()), text(&dropped));
}

#[tokio::test]
async fn constraints_keep_older_binaries_out() {
    let open = open().await;
    let keyspace = with_keyspace(&open.store).await;
    let create = "CREATE TABLE t (k int CHECK k > 1 PRIMARY KEY, v text)";
    let first = execute(&open.store, &keyspace, create).await;
    assert_eq!(format(&open.store).await, 16);
    let alter = "ALTER TABLE t ALTER v CHECK NOT NULL AND LENGTH() < 5 AND REGEXP() != 'x''y'";
    let both = execute(&open.store, &first, alter).await;
    assert_eq!(text(&load(&open.store).await.unwrap()), text(&both));
    let read = load(&open.store).await.unwrap();
    let shown = |schema: &Schema| {
        let columns = schema.table("ks", "t").unwrap().columns.iter();
        let constraints = columns.flat_map(|column| {
            let of = column.constraints.iter();
            of.map(|constraint| constraint.to_cql(&column.name))
                .collect::<Vec<_>>()
        });
        constraints.collect::<Vec<_>>()
    };
    assert_eq!(
        shown(&read),
        ["k > 1", "NOT NULL", "LENGTH() < 5", "REGEXP() != 'x''y'"]
    );
    // The form in which schemas are stored.
    assert!(text(&read).contains(
        r#""constraints":[{"constraint":"NOT_NULL"},{"constraint":"LENGTH","comparison":["<","5"]},{"constraint":"REGEXP","comparison":["!=","x'y"]}]"#
    ));
    let mut found = keyspace.clone();
    documents::read(&documents::encode(&both).unwrap(), &mut found, hidden_table).unwrap();
    assert_eq!(shown(&found), shown(&both));
    let dropped = execute(&open.store, &both, "DROP TABLE t").await;
    assert_eq!(text(&load(&open.store).await.unwrap()), text(&dropped));
}
