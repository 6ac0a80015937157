use helenus_cql::parser::parse_statement;
use helenus_tablet::{TableOrigin, TokenRange};

use super::*;
use crate::engine::ddl::in_memory::InMemorySchema;
use crate::engine::ddl::schema_store::tests::check_lines;
use crate::schema::documents::formats;

fn pinned(number: u128) -> Arc<[PinnedTablet]> {
    Arc::new([PinnedTablet {
        id: 1,
        tokens: TokenRange { first: 0, last: 9 },
        manifest: 7,
        checkpoint: Uuid::from_u128(number),
    }])
}

/// Returns a table with an index, a view and a column of a user type, in a keyspace with functions and aggregates.
fn schema() -> InMemorySchema {
    let mut schema = InMemorySchema::new("ks");
    for statement in [
        "CREATE TYPE point (x int, y int)",
        "CREATE FUNCTION plus (a int, b int) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'return a + b;'",
        "CREATE AGGREGATE total (int) SFUNC plus STYPE int INITCOND 0",
        "CREATE TABLE t (k int PRIMARY KEY, v int, p frozen<point>)",
        "CREATE INDEX ON t (v)",
        "CREATE MATERIALIZED VIEW tv AS SELECT * FROM t WHERE k IS NOT NULL AND v IS NOT NULL PRIMARY KEY (v, k)",
    ] {
        schema.apply(statement).unwrap();
    }
    schema
}

/// Makes a branch on pinned tablets with that number. Checks that the journal of the change leads to the same schema.
fn copy(schema: &mut InMemorySchema, text: &str, number: u128) -> Result<Vec<(TableId, TableId)>, CqlError> {
    let statement = parse_statement(text).unwrap().statement;
    let ctx = schema.context();
    let copy = Copy::of(&statement).unwrap();
    if !copy.is_to_be_made(&ctx)? {
        return Ok(Vec::new());
    }
    let source = copy.source(&ctx, None)?;
    let pinned = source.pinned.unwrap_or_else(|| pinned(number));
    let Branch { change, numbers } = copy.make(&ctx, &source.keyspace, &pinned)?;
    check_lines(&schema.schema, &change.schema);
    // An index on a user type needs a newer format than branches.
    let newer = u32::from(change.schema.has_indexes_without_trailing_nulls());
    assert_eq!(formats::of_journal(&change.schema), 13 + newer);
    assert_eq!(formats::of_base(&change.schema), 11 + newer);
    schema.schema = change.schema;
    Ok(numbers)
}

/// Returns the numbers of the pinned tablets, each with the number of the table in them, the nearest origin first.
fn origins(table: &Table) -> Vec<(u128, u32)> {
    let nearest = table.origin.as_deref();
    let chain = std::iter::successors(nearest, |origin: &&TableOrigin| origin.below.as_deref());
    chain
        .map(|origin| (origin.pinned[0].checkpoint.as_u128(), origin.table))
        .collect()
}

fn table_of<'s>(schema: &'s InMemorySchema, keyspace: &str, name: &str) -> &'s Arc<Table> {
    schema.schema.table(keyspace, name).unwrap()
}

#[test]
fn a_keyspace_comes_along_as_a_whole() {
    let mut schema = schema();
    let numbers = copy(
        &mut schema,
        "CREATE KEYSPACE b AS COPY OF ks WITH durable_writes = false",
        1,
    )
    .unwrap();
    let (earlier, now) = (
        schema.schema.keyspace("ks").unwrap(),
        schema.schema.keyspace("b").unwrap(),
    );
    assert_eq!(earlier.replication, now.replication);
    assert!(earlier.durable_writes && !now.durable_writes);
    assert!(now.types.values().all(|ty| ty.keyspace == "b"));
    assert!(now.functions.values().all(|of| of.keyspace == "b"));
    assert!(now.aggregates.values().all(|of| of.keyspace == "b"));
    let (origin, table) = (table_of(&schema, "ks", "t"), table_of(&schema, "b", "t"));
    assert!(origin.id != table.id && origin.number != table.number);
    assert!(table.column("p").unwrap().1.ty.references_udt("b", "point"));
    assert_eq!(origins(table), [(1, origin.number.0)]);
    let (of_origin, index) = (&origin.indexes[0], &table.indexes[0]);
    assert_eq!((&index.name, index.is_complete), (&of_origin.name, true));
    assert_eq!(origins(&index.table), [(1, of_origin.table.number.0)]);
    let view = table_of(&schema, "b", "tv");
    assert_eq!(view.view.as_ref().unwrap().base_table_id, table.id);
    assert_eq!(table.views, ["tv"]);
    assert_eq!(numbers.len(), 3);
    assert!(numbers.contains(&(table_of(&schema, "ks", "tv").number, view.number)));
    assert_eq!(schema.schema.branches().count(), 2);
    // The origin itself is no branch.
    assert!(schema.schema.branches().all(|table| table.keyspace == "b"));
}

#[test]
fn branch_of_branch_names_both_cuts() {
    let mut schema = schema();
    copy(&mut schema, "CREATE KEYSPACE b AS COPY OF ks", 1).unwrap();
    schema.keyspace = Some("b".to_owned());
    schema.apply("CREATE INDEX later ON t (p)").unwrap();
    copy(&mut schema, "CREATE KEYSPACE c AS COPY OF b", 2).unwrap();
    let numbers = ["ks", "b"].map(|keyspace| table_of(&schema, keyspace, "t").number.0);
    let table = table_of(&schema, "c", "t").clone();
    assert_eq!(origins(&table), [(2, numbers[1]), (1, numbers[0])]);
    // An index that was created in the first branch has only that one as its origin.
    let depths = |table: &Table| -> Vec<usize> {
        let indexes = table.indexes.iter();
        indexes.map(|index| origins(&index.table).len()).collect()
    };
    assert_eq!(depths(&table), [2, 1]);
    assert_eq!(depths(table_of(&schema, "b", "t")), [1, 0]);
    schema.keyspace = Some("c".to_owned());
    schema.apply("ALTER TABLE t ADD w int").unwrap();
    assert_eq!(depths(table_of(&schema, "c", "t")), [2, 1]);
    schema.auto_snapshot.is_on = true;
    schema.apply("TRUNCATE t").unwrap();
    let emptied = table_of(&schema, "c", "t");
    assert!(emptied.origin.is_none() && emptied.origins().is_empty());
    assert_eq!(depths(emptied), [0, 0]);
    // The rows that TRUNCATE left behind are still read over their origin.
    assert_eq!(
        schema
            .schema
            .kept_tables()
            .filter(|of| of.origin.is_some())
            .count(),
        4
    );
    let (tag, _) = schema.schema.snapshots.keys().next().unwrap().clone();
    copy(
        &mut schema,
        &format!("CREATE TABLE u AS COPY OF t AS OF SNAPSHOT '{tag}'"),
        3,
    )
    .unwrap();
    assert_eq!(
        origins(table_of(&schema, "c", "u")),
        [(3, table.number.0), (2, numbers[1]), (1, numbers[0])]
    );
}

#[test]
fn a_table_takes_its_indexes_and_types_with_it() {
    let mut schema = schema();
    schema
        .apply(
            "CREATE KEYSPACE other WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        )
        .unwrap();
    copy(&mut schema, "CREATE TABLE u AS COPY OF t", 1).unwrap();
    copy(&mut schema, "CREATE TABLE other.t AS COPY OF ks.t", 2).unwrap();
    let index = |keyspace, table| table_of(&schema, keyspace, table).indexes[0].name.clone();
    assert_eq!([index("ks", "u"), index("other", "t")], ["u_v_idx", "t_v_idx"]);
    assert!(table_of(&schema, "ks", "u").views.is_empty());
    let other = table_of(&schema, "other", "t");
    assert!(other.column("p").unwrap().1.ty.references_udt("other", "point"));
    assert!(
        schema
            .schema
            .keyspace("other")
            .unwrap()
            .types
            .contains_key("point")
    );
    let said = |schema: &mut InMemorySchema, text: &str| copy(schema, text, 9).unwrap_err().to_string();
    assert!(said(&mut schema, "CREATE TABLE w AS COPY OF tv").contains("copy its base table, t,"));
    assert!(said(&mut schema, "CREATE TABLE tv AS COPY OF t").contains("already existing"));
    assert!(
        said(&mut schema, "CREATE TABLE w AS COPY OF t AS OF SNAPSHOT x")
            .contains("no snapshot x of keyspace ks")
    );
    assert!(said(&mut schema, "CREATE KEYSPACE ks AS COPY OF other").contains("existing keyspace"));
    assert_eq!(
        copy(
            &mut schema,
            "CREATE KEYSPACE IF NOT EXISTS ks AS COPY OF nothing",
            9
        )
        .unwrap(),
        []
    );
    schema.apply("DROP TYPE other.point").unwrap_err();
}
