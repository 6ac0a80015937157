//! Tests of current masks on tables as of an earlier time ([`crate::analysis::history_masks`]).

use std::sync::Arc;

use crate::analysis::history_masks::with_current_masks;
use crate::engine::ddl::in_memory::InMemorySchema;
use crate::limits::AutoSnapshot;
use crate::schema::Keyspace;

/// Returns a keyspace `ks` with a table `t` without masks, and a view of it.
fn schema() -> InMemorySchema {
    let mut schema = InMemorySchema::new("ks");
    schema.auto_snapshot = AutoSnapshot {
        is_on: true,
        ttl: None,
    };
    run(
        &mut schema,
        &[
            "CREATE TYPE point (x int)",
            "CREATE TABLE t (k int, c text, v text, p frozen<point>, PRIMARY KEY (k, c))",
        ],
    );
    schema
}

fn run(schema: &mut InMemorySchema, statements: &[&str]) {
    for statement in statements {
        schema
            .apply(statement)
            .unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
}

fn now(schema: &InMemorySchema) -> Arc<Keyspace> {
    schema.schema.keyspace("ks").unwrap().clone()
}

/// Returns the masks of an earlier table, as `column function`.
fn masks(schema: &InMemorySchema, earlier: &Arc<Keyspace>, table: &str) -> Vec<String> {
    let masked = with_current_masks(&schema.schema, earlier, Some(table));
    let columns = masked.tables[table].columns.iter();
    let shown = columns.filter_map(|column| Some(format!("{} {}", column.name, column.mask.as_ref()?.name)));
    shown.collect()
}

#[test]
fn nothing_changes_without_masks() {
    let mut schema = schema();
    let earlier = now(&schema);
    run(&mut schema, &["ALTER TABLE t ADD w int"]);
    assert!(Arc::ptr_eq(
        &with_current_masks(&schema.schema, &earlier, None),
        &earlier
    ));
}

#[test]
fn former_and_current_masks_apply() {
    let mut schema = schema();
    run(&mut schema, &["ALTER TABLE t ALTER v MASKED WITH DEFAULT"]);
    let earlier = now(&schema);
    run(
        &mut schema,
        &[
            "ALTER TABLE t ALTER v DROP MASKED",
            "ALTER TABLE t ALTER c MASKED WITH mask_replace('x')",
        ],
    );
    assert_eq!(
        masks(&schema, &earlier, "t"),
        ["c mask_replace", "v mask_default"]
    );
    run(&mut schema, &["ALTER TABLE t ALTER v MASKED WITH mask_null()"]);
    assert_eq!(masks(&schema, &earlier, "t"), ["c mask_replace", "v mask_null"]);
}

#[test]
fn a_renamed_key_is_masked_under_its_earlier_name() {
    let mut schema = schema();
    let earlier = now(&schema);
    run(
        &mut schema,
        &[
            "ALTER TABLE t RENAME c TO d",
            "ALTER TABLE t ALTER d MASKED WITH DEFAULT",
            "ALTER TABLE t ADD c text",
        ],
    );
    assert_eq!(masks(&schema, &earlier, "t"), ["c mask_default"]);
}

#[test]
fn a_dropped_column_keeps_its_last_mask() {
    let mut schema = schema();
    let earlier = now(&schema);
    run(
        &mut schema,
        &[
            "ALTER TABLE t ALTER v MASKED WITH DEFAULT",
            "ALTER TABLE t DROP v",
        ],
    );
    assert_eq!(masks(&schema, &earlier, "t"), ["v mask_default"]);
    // The column that is added again is a different one. Later, only the new column exists.
    run(&mut schema, &["ALTER TABLE t ADD v text"]);
    assert_eq!(masks(&schema, &earlier, "t"), ["v mask_default"]);
    let later = now(&schema);
    assert!(masks(&schema, &later, "t").is_empty());
}

#[test]
fn a_dropped_table_has_the_masks_of_its_newest_snapshot() {
    let mut schema = schema();
    let earlier = now(&schema);
    run(
        &mut schema,
        &["ALTER TABLE t ALTER v MASKED WITH DEFAULT", "DROP TABLE t"],
    );
    assert_eq!(masks(&schema, &earlier, "t"), ["v mask_default"]);
    // A later table of the same name has no influence, with or without masks.
    run(
        &mut schema,
        &["CREATE TABLE t (k int, c text MASKED WITH DEFAULT, v text, PRIMARY KEY (k, c))"],
    );
    assert_eq!(masks(&schema, &earlier, "t"), ["v mask_default"]);
}

#[test]
fn a_view_has_the_masks_of_its_base() {
    const VIEW: &str = "CREATE MATERIALIZED VIEW tv AS SELECT * FROM t WHERE k IS NOT NULL AND c IS NOT NULL PRIMARY KEY (c, k)";
    let mut schema = schema();
    run(&mut schema, &[VIEW]);
    let earlier = now(&schema);
    run(
        &mut schema,
        &[
            "DROP MATERIALIZED VIEW tv",
            "ALTER TABLE t ALTER v MASKED WITH DEFAULT",
        ],
    );
    assert_eq!(masks(&schema, &earlier, "tv"), ["v mask_default"]);
}

#[test]
fn a_mask_that_can_not_be_applied_shows_null() {
    const FUNCTION: &str = "CREATE FUNCTION hide (v text) CALLED ON NULL INPUT RETURNS text LANGUAGE java AS 'return \"hidden\";'";
    let mut schema = schema();
    let earlier = now(&schema);
    run(
        &mut schema,
        &[
            FUNCTION,
            "ALTER TYPE point ADD y int",
            "ALTER TABLE t ALTER p MASKED WITH DEFAULT",
            "ALTER TABLE t ALTER v MASKED WITH hide()",
        ],
    );
    assert_eq!(masks(&schema, &earlier, "t"), ["p mask_null", "v hide"]);
    let masked = with_current_masks(&schema.schema, &earlier, None);
    assert_eq!(masked.functions.len(), 1, "the function comes with the mask");
    run(&mut schema, &["ALTER TABLE t DROP v", "DROP FUNCTION hide"]);
    assert_eq!(masks(&schema, &earlier, "t"), ["p mask_null", "v mask_null"]);
}
