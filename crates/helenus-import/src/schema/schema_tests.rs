use helenus_cql::ast::Statement;
use helenus_cql::parser::{parse_statement, parse_type};
use helenus_cql::types::CqlType;
use helenus_cql::types::class_name::parse_class_name;

use super::compare::fits;
use super::missing_types::{missing_types, statements_of};
use super::replication::statement_for;
use super::script::SchemaText;
use super::*;
use crate::table_name::TableName;

/// As 3.11 writes it: options in capitals, and the dropped columns in CREATE TABLE.
const OLD: &str = "CREATE TYPE shop.address(street text, zip int);
CREATE TABLE IF NOT EXISTS shop.users (
	id int,
	at timestamp,
	home frozen<address>,
	tags set<text>,
	gone text,
	again int,
	PRIMARY KEY (id, at))
	WITH ID = 5a1c3950-0001-111e-aa00-000000000001
	AND CLUSTERING ORDER BY (at DESC)
	AND bloom_filter_fp_chance = 0.01
	AND dclocal_read_repair_chance = 0.1
	AND comment = 'a; b'
	AND extensions = {  };
ALTER TABLE shop.users DROP gone USING TIMESTAMP 1000;
ALTER TABLE shop.users DROP again USING TIMESTAMP 2000;
ALTER TABLE shop.users ADD again int;
CREATE INDEX by_tag ON shop.users (tags);
CREATE CUSTOM INDEX by_again ON shop.users (again) USING 'org.apache.cassandra.index.sasi.SASIIndex' WITH OPTIONS { 'mode': 'SPARSE' };";

fn read(texts: &[&str]) -> SourceSchema {
    try_read(texts).unwrap()
}

fn try_read(texts: &[&str]) -> Result<SourceSchema, String> {
    let schemas: Vec<SchemaText> = texts
        .iter()
        .enumerate()
        .map(|(number, text)| SchemaText {
            path: format!("/s{number}/schema.cql"),
            text: (*text).to_owned(),
        })
        .collect();
    SourceSchema::read(&schemas).map_err(|error| error.to_string())
}

fn name(text: &str) -> TableName {
    let (keyspace, table) = text.split_once('.').unwrap();
    TableName::new(keyspace, table)
}

fn planned(source: &SourceSchema, live: &LiveSchema) -> Plan {
    let options = PlanOptions {
        is_wanted: &|_| true,
        with_data: [name("other.data")].into(),
    };
    plan(source, live, &options)
}

fn whats(plan: &Plan) -> Vec<&str> {
    plan.statements
        .iter()
        .map(|statement| statement.what.as_str())
        .collect()
}

#[test]
fn snapshot_of_3_11_is_read() {
    let schema = read(&[OLD]);
    let shape = schema.shape(&name("shop.users")).unwrap().unwrap();
    let names: Vec<&str> = shape.columns.keys().map(String::as_str).collect();
    assert_eq!(names, ["again", "at", "home", "id", "tags"]);
    assert_eq!(shape.columns["at"].role, ColumnRole::Clustering(0));
    assert!(shape.columns["at"].is_descending);
    assert_eq!(shape.columns["id"].role, ColumnRole::PartitionKey(0));
    assert!(matches!(
        shape.columns["home"].ty,
        CqlType::Udt { frozen: true, .. }
    ));
    assert!(shape.columns["tags"].ty.is_multicell());
    assert_eq!(
        shape.dropped,
        [("again".to_owned(), 2000), ("gone".to_owned(), 1000)].into()
    );
}

#[test]
fn statements_are_planned_in_an_order_that_works() {
    let view = "CREATE MATERIALIZED VIEW shop.by_home AS SELECT * FROM shop.users WHERE id IS NOT NULL AND at IS NOT NULL \
                PRIMARY KEY (at, id);
                CREATE FUNCTION shop.f (a int) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'return a;';";
    let plan = planned(&read(&[OLD, view]), &LiveSchema::default());
    assert_eq!(
        whats(&plan),
        [
            "keyspace other",
            "keyspace shop",
            "type shop.address",
            "function shop.f",
            "table shop.users",
            "change of shop.users",
            "change of shop.users",
            "change of shop.users",
            "index on shop.users",
            "index on shop.users",
            "view shop.by_home"
        ]
    );
    // Options that Cassandra 4.0 removed are left out. All others stay.
    let table = &plan.statements[4].text;
    assert!(
        table.ends_with("bloom_filter_fp_chance = 0.01\n\t\n\tAND comment = 'a; b'\n\tAND extensions = {  }"),
        "{table}"
    );
    for statement in &plan.statements {
        assert!(parse_statement(&statement.text).is_ok(), "{}", statement.text);
    }
    let without_effect: Vec<&str> = plan.without_effect.iter().map(String::as_str).collect();
    assert_eq!(
        without_effect,
        [
            "bloom_filter_fp_chance",
            "dclocal_read_repair_chance",
            "extensions"
        ]
    );
}

#[test]
fn nothing_is_planned_for_what_is_there() {
    let source = read(&[OLD]);
    let mut live = LiveSchema::default();
    live.keyspaces.extend(["shop".to_owned(), "other".to_owned()]);
    live.types = source.user_types.clone();
    let index = |name: &str| ("shop".to_owned(), name.to_owned());
    live.indexes.extend([index("by_tag"), index("by_again")]);
    let shape = source.shape(&name("shop.users")).unwrap().unwrap();
    live.tables.insert(name("shop.users"), shape.clone());
    assert_eq!(whats(&planned(&source, &live)), Vec::<&str>::new());
    live.indexes.remove(&index("by_tag"));
    assert_eq!(whats(&planned(&source, &live)), ["index on shop.users"]);
    assert_eq!(differences(&shape, &shape), Vec::<String>::new());
}

#[test]
fn differences_are_named() {
    let source = read(&[OLD]).shape(&name("shop.users")).unwrap().unwrap();
    let target = "CREATE TYPE shop.address(street text, zip text);
        CREATE TABLE shop.users (id int, at timestamp, other int, tags list<text> static, again int, gone text,
            home frozen<address>, extra int, PRIMARY KEY (id, at, other));";
    let target = read(&[target]).shape(&name("shop.users")).unwrap().unwrap();
    let found = differences(&source, &target);
    for part in [
        "column at is descending in the source, and ascending on the target",
        "column home has the type frozen<address>",
        "column tags is a regular column in the source, and a static column on the target",
        "column tags has the type set<text> in the source, and list<text> on the target",
        "column gone is dropped in the source",
        "column other is clustering column 2 on the target",
    ] {
        assert!(found.iter().any(|line| line.contains(part)), "{part}: {found:#?}");
    }
    assert_eq!(found.len(), 6, "{found:#?}");
    let lacking = "CREATE TABLE shop.users (id int, at timestamp, PRIMARY KEY (id, at)) WITH CLUSTERING ORDER BY (at DESC);";
    let lacking = read(&[lacking]).shape(&name("shop.users")).unwrap().unwrap();
    let found = differences(&source, &lacking);
    assert!(
        found.iter().any(|line| line.contains("ADD tags set<text>")),
        "{found:#?}"
    );
}

#[test]
fn files_of_several_nodes_are_combined() {
    let more = OLD
        .replace("zip int)", "zip int, town text)")
        .replace("again int,", "again int, added int,");
    let schema = read(&[OLD, &more, OLD]);
    assert_eq!(schema.types.len(), 1);
    assert!(schema.types[0].text.contains("town"));
    let shape = schema.shape(&name("shop.users")).unwrap().unwrap();
    assert!(shape.columns.contains_key("added"));
    let notes: Vec<&String> = schema.notes.iter().collect();
    assert!(
        notes[0].contains("/s1/schema.cql and /s0/schema.cql differ; the first is used"),
        "{notes:?}"
    );
}

#[test]
fn types_are_made_after_the_types_of_their_fields() {
    let text = "CREATE TYPE a.outer (f frozen<map<int, frozen<inner>>>);
                CREATE TYPE a.inner (f int);
                CREATE TABLE a.t (k int PRIMARY KEY, i frozen<inner>, o outer);";
    let more = text.replace("a.inner (f int)", "a.inner (f int, g int)");
    let schema = read(&[text, &more]);
    let plan = planned(&schema, &LiveSchema::default());
    assert_eq!(
        whats(&plan),
        [
            "keyspace a",
            "keyspace other",
            "type a.inner",
            "type a.outer",
            "table a.t"
        ]
    );
    // The outer type has all fields of the inner one.
    let outer = schema.user_types.get("a", "outer").unwrap();
    assert!(format!("{outer:?}").contains("\"g\""), "{outer:?}");
    let error = try_read(&["CREATE TYPE a.b (c frozen<d>); CREATE TYPE a.d (e frozen<b>);"]).unwrap_err();
    assert!(
        error.contains("type a.b, field c: the user type a.d is unknown"),
        "{error}"
    );
}

#[test]
fn types_that_no_file_has_come_from_the_sstables() {
    let text = "CREATE TYPE a.known (f int);
                CREATE TABLE a.t (k int PRIMARY KEY, l list<frozen<outer>>, m frozen<known>);";
    let schemas = [SchemaText {
        path: "schema.cql".into(),
        text: text.to_owned(),
    }];
    let missing = missing_types(&schemas).unwrap();
    assert_eq!(missing, [("a".to_owned(), "outer".to_owned())].into());
    // As SSTables name them. `inner` occurs in no statement.
    let class = |fields: &str| {
        format!(
            "ListType(UserType(a,6f75746572,66:MapType(Int32Type,UserType(a,696e6e6572,67:UTF8Type)){fields}))"
        )
    };
    let types = [class(""), class(",69:BooleanType")].map(|class| parse_class_name(&class).unwrap());
    let added = statements_of(&missing, types.iter()).unwrap();
    assert_eq!(
        added.text,
        "CREATE TYPE a.outer (f frozen<map<int, frozen<inner>>>, i boolean);\nCREATE TYPE a.inner (g text);\n"
    );
    assert!(statements_of(&missing, [].iter()).is_none());
}

#[test]
fn wrong_statements_have_file_and_line() {
    let error =
        try_read(&["CREATE TYPE a.b (c int);\n\nCREATE TABLE a.t (k nosuch<int> PRIMARY KEY);"]).unwrap_err();
    assert!(error.starts_with("/s0/schema.cql line 3: "), "{error}");
    let error = try_read(&["CREATE TABLE a.t (k int PRIMARY KEY, u frozen<missing>);"])
        .unwrap()
        .shape(&name("a.t"))
        .unwrap_err()
        .to_string();
    assert!(error.contains("user type a.missing is unknown"), "{error}");
    let thrift = "/*\nWarning: Table a.t omitted because it has constructs not compatible with CQL (was created via legacy API).\n*/";
    assert_eq!(read(&[thrift]).omitted.len(), 1);
}

#[test]
fn replication_becomes_what_the_target_accepts() {
    let made = |text: &str, data_centers: &[&str]| {
        let Statement::CreateKeyspace(create) = parse_statement(text).unwrap().statement else {
            panic!("{text}");
        };
        let data_centers = data_centers.iter().map(|name| (*name).to_owned()).collect();
        let made = statement_for(&create, &data_centers);
        parse_statement(&made.text).unwrap();
        made
    };
    let two = "CREATE KEYSPACE ks WITH replication = {'class': 'NetworkTopologyStrategy', 'dc1': '3', 'dc2': '5'} AND durable_writes = false";
    let here = made(two, &["here"]);
    assert_eq!(
        here.text,
        "CREATE KEYSPACE IF NOT EXISTS ks WITH replication = {'class': 'NetworkTopologyStrategy', 'here': '5'} AND durable_writes = false"
    );
    assert!(here.note.unwrap().contains("no effect here"));
    assert_eq!(made(two, &["dc1", "dc2"]).note, None);
    assert!(made(two, &["dc1", "dc2"]).text.contains("'dc1': '3', 'dc2': '5'"));
    let simple = "CREATE KEYSPACE ks WITH replication = {'class': 'org.apache.cassandra.locator.SimpleStrategy', 'replication_factor': '3'}";
    assert_eq!(made(simple, &["here"]).note, None);
    let transient =
        "CREATE KEYSPACE ks WITH replication = {'class': 'NetworkTopologyStrategy', 'here': '3/1'}";
    assert!(made(transient, &["here"]).text.contains("'here': '3'"));
    let everywhere = "CREATE KEYSPACE ks WITH replication = {'class': 'EverywhereStrategy'}";
    assert!(
        made(everywhere, &[])
            .text
            .contains("'SimpleStrategy', 'replication_factor': '1'")
    );
}

#[test]
fn types_fit_if_their_values_do() {
    let ty = |text: &str| resolve_type(&UserTypes::default(), "ks", &parse_type(text).unwrap()).unwrap();
    for (from, to) in [
        ("ascii", "text"),
        ("int", "varint"),
        ("timeuuid", "uuid"),
        ("map<ascii, int>", "map<text, int>"),
        ("frozen<list<int>>", "frozen<list<int>>"),
        ("tuple<int>", "tuple<int, text>"),
        ("vector<float, 3>", "vector<float, 3>"),
        ("float", "blob"),
    ] {
        assert!(fits(&ty(from), &ty(to)), "{from} {to}");
    }
    for (from, to) in [
        ("text", "int"),
        ("varint", "int"),
        ("list<int>", "frozen<list<int>>"),
        ("set<int>", "list<int>"),
        ("tuple<int, text>", "tuple<int>"),
        ("vector<float, 3>", "vector<float, 2>"),
        ("counter", "bigint"),
        ("counter", "blob"),
    ] {
        assert!(!fits(&ty(from), &ty(to)), "{from} {to}");
    }
}
