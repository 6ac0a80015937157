//! Every DDL and DESCRIBE statement of the conformance suite, applied without a store. The answers are compared with Cassandra's.

use std::fs;
use std::path::{Path, PathBuf};

use helenus_cql::parser::parse_statement;

use super::in_memory::new_schema;
use super::*;
use crate::engine::LocalNode;
use crate::index::entries::hidden_table;
use crate::schema::documents;

/// Statements whose answers differ from Cassandra's, with the reason.
const KNOWN_DIFFERENCES: [(&str, &str); 22] = [
    ("cdc = {'enabled'", "ScyllaDB's map is known here"),
    ("USING 'SASIIndex'", "the short class name is accepted here"),
    ("SERVICE LEVEL", "statements of ScyllaDB that are known here"),
    ("SERVICE_LEVEL", "statements of ScyllaDB that are known here"),
    (
        "per_partition_rate_limit",
        "an option of ScyllaDB that is known here",
    ),
    ("transactions = {", "an option of YCQL that is known here"),
    ("BEGIN TRANSACTION", "transactions of Cassandra 6 are known here"),
    (
        "x LIKE t WITH INDEXES",
        "CREATE TABLE LIKE of Cassandra 6 is known here",
    ),
    (
        "made_396 LIKE h",
        "CREATE TABLE LIKE of Cassandra 6 is known here",
    ),
    (
        "x (k int CHECK k > 1",
        "constraints of Cassandra 6 are known here",
    ),
    (
        "v text CHECK LENGTH() > 4",
        "constraints of Cassandra 6 are known here",
    ),
    ("ALTER v CHECK v > 1", "constraints of Cassandra 6 are known here"),
    ("k3 (p int CHECK", "constraints of Cassandra 6 are known here"),
    (
        "t3 (k int PRIMARY KEY, v int CHECK",
        "constraints of Cassandra 6 are known here",
    ),
    ("made_346 (", "constraints of Cassandra 6 are known here"),
    (
        "GENERATED ROLE x",
        "generated roles of Cassandra 6 are known here",
    ),
    (
        "ROLE x WITH GENERATED",
        "generated passwords of Cassandra 6 are known here",
    ),
    (
        "DESCRIBE TABLE system.paxos",
        "Cassandra's index on its own Paxos table",
    ),
    ("SELECT p AS x, c, d FROM t", "Cassandra shows a Java object"),
    ("bad AS SELECT count(*)", "Cassandra shows a Java object"),
    (
        "t WHERE p = ? AND",
        "markers are refused when a statement is planned",
    ),
    (
        "b WHERE k = ? AND",
        "markers are refused when a statement is planned",
    ),
];

fn node() -> LocalNode {
    LocalNode {
        cluster_name: "Peer".to_owned(),
        data_center: "datacenter1".to_owned(),
        rack: "rack1".to_owned(),
        host_id: uuid::Uuid::nil(),
        native_address: "127.0.0.2:9142".parse().unwrap(),
        release_version: "5.0.5".to_owned(),
    }
}

/// A case being replayed.
struct Replay {
    node: LocalNode,
    schema: Schema,
    keyspace: Option<String>,
}

impl Replay {
    fn new(case_keyspace: &str) -> Replay {
        let node = node();
        let schema = new_schema();
        let mut replay = Replay {
            node,
            schema,
            keyspace: None,
        };
        replay.answer(&format!(
            "CREATE KEYSPACE {case_keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
        ));
        replay.keyspace = Some(case_keyspace.to_owned());
        replay
    }

    /// Returns the answer in the format of the suite. `None` for statements that are not DDL.
    fn answer(&mut self, text: &str) -> Option<Vec<String>> {
        use ast::Statement;
        let statement = match parse_statement(text) {
            Ok(parsed) => parsed.statement,
            Err(error) => return Some(vec![error_line(&error)]),
        };
        match &statement {
            Statement::Select(_)
            | Statement::Insert(_)
            | Statement::InsertJson(_)
            | Statement::InsertRows(_)
            | Statement::Update(_)
            | Statement::Delete(_)
            | Statement::Batch(_)
            | Statement::Transaction(_)
            | Statement::Truncate(_) => None,
            Statement::Use(name) => {
                self.schema.keyspace(name.as_str())?;
                self.keyspace = Some(name.0.clone());
                None
            }
            Statement::Describe(describe) => Some(self.describe(describe)?),
            statement => Some(self.apply(statement)),
        }
    }

    fn apply(&mut self, statement: &ast::Statement) -> Vec<String> {
        let ctx = DdlContext {
            schema: &self.schema,
            data_centers: vec![self.node.data_center.clone()],
            keyspace: self.keyspace.as_deref(),
            user: None,
            control: AccessControl::default(),
            masks_columns: false,
            auto_snapshot: AutoSnapshot::default(),
            now_us: 1_700_000_000_000_000,
        };
        if crate::schema::roles::is_about_roles(statement) {
            let roles = ctx.roles();
            let managed = crate::engine::access::authorize::may_manage(&roles, statement);
            let managed = managed.and_then(|()| access::validate(&roles, statement));
            return match managed {
                Ok(()) => vec!["void".to_owned()],
                Err(error) => vec![error_line(&error)],
            };
        }
        let planned = crate::analysis::definition_check::check(statement, ctx.keyspace, false);
        match planned.and_then(|()| super::apply(&ctx, statement)) {
            Err(error) => {
                let (error, warnings) = error.split();
                with_warnings(error_line(&error), warnings)
            }
            Ok(Effect::Unchanged(warnings)) => with_warnings("void".to_owned(), warnings),
            Ok(Effect::Changed(change)) => {
                schema_store::tests::check_lines(&self.schema, &change.schema);
                let events = difference::events(&self.schema, &change.schema);
                let is_reported = |event: &SchemaChange| unqualified(event) == unqualified(&change.event);
                assert!(
                    events.iter().any(is_reported),
                    "{:?} is not told of",
                    change.event
                );
                self.schema = change.schema;
                with_warnings(change_line(&change.event), change.warnings)
            }
        }
    }

    fn describe(&self, statement: &ast::Describe) -> Option<Vec<String>> {
        crate::engine::describe::recorded(&self.schema, self.keyspace.as_deref(), statement)
            .map(|answer| answer.unwrap_or_else(|error| vec![error_line(&error)]))
    }
}

fn with_warnings(first: String, warnings: Vec<String>) -> Vec<String> {
    let warnings = warnings
        .into_iter()
        // Cassandra has no such warning, and the cases are Cassandra's answers.
        .filter(|warning| !warning.contains(" no effect in Helenus: "))
        .map(|warning| format!("warning: {}", warning.replace('\n', "\\n")));
    std::iter::once(first).chain(warnings).collect()
}

fn change_line(event: &SchemaChange) -> String {
    let change = match event.change {
        ChangeKind::Created => "CREATED",
        ChangeKind::Updated => "UPDATED",
        ChangeKind::Dropped => "DROPPED",
    };
    let keyspace = &event.keyspace;
    match &event.target {
        SchemaTarget::Keyspace => format!("schema_change {change} KEYSPACE {keyspace}"),
        SchemaTarget::Table(name) => format!("schema_change {change} TABLE {keyspace} {name}"),
        SchemaTarget::Type(name) => format!("schema_change {change} TYPE {keyspace} {name}"),
        SchemaTarget::Function { name, arg_types } => {
            let types = arg_types.join(", ");
            format!("schema_change {change} FUNCTION {keyspace} {name} ({types})")
        }
        SchemaTarget::Aggregate { name, arg_types } => {
            let types = arg_types.join(", ");
            format!("schema_change {change} AGGREGATE {keyspace} {name} ({types})")
        }
    }
}

/// Returns the change with bare types. Only the response to the client shows the types of functions and aggregates as they were written,
/// with the keyspaces of user types. Events do not.
fn unqualified(event: &SchemaChange) -> String {
    let line = change_line(event);
    let line = line.replace(&format!("{}.", event.keyspace), "");
    line.replace("frozen<tuple", "tuple").replace('>', "")
}

fn error_line(error: &CqlError) -> String {
    let kind = match error {
        CqlError::Invalid(_) => "Invalid".to_owned(),
        CqlError::Syntax(_) => "SyntaxError".to_owned(),
        CqlError::Config(_) => "ConfigError".to_owned(),
        CqlError::Unauthorized(_) => "Unauthorized".to_owned(),
        CqlError::AlreadyExists { keyspace, table, .. } => {
            format!("AlreadyExists [ks={keyspace} table={table}]")
        }
        other => format!("{other:?}"),
    };
    format!("error {kind}: {}", error.to_string().replace('\n', "\\n"))
}

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"))
        .join("../../tests/conformance/cases");
    let mut cases = Vec::new();
    let areas = fs::read_dir(folder).unwrap().map(|area| area.unwrap().path());
    // Access control needs a node, which this test does not have.
    for area in areas.filter(|area| !area.ends_with("access")) {
        for file in fs::read_dir(area).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "out") {
                cases.push(path);
            }
        }
    }
    cases.sort();
    cases
}

/// Masks ids and times, which differ from run to run.
fn masked(lines: &[String]) -> Vec<String> {
    let mask = |line: &String| {
        let mut line = line.clone();
        for (before, length) in [("WITH ID = ", 36), ("USING TIMESTAMP ", 16)] {
            let mut from = 0;
            while let Some(at) = line.get(from..).and_then(|rest| rest.find(before)) {
                let start = from + at + before.len();
                let end = (start + length).min(line.len());
                line.replace_range(start..end, "*");
                from = start;
            }
        }
        line
    };
    lines.iter().map(mask).collect()
}

/// Returns true for schema statements. Statements that Cassandra answers with an internal error are left out.
fn is_compared(statement: &str, expected: &[String]) -> bool {
    let word = statement
        .split_whitespace()
        .next()
        .unwrap_or_default()
        .to_uppercase();
    let is_schema = ["CREATE", "ALTER", "DROP", "USE", "DESCRIBE", "DESC"].contains(&word.as_str());
    let is_bug = |line: &String| line.starts_with("error ServerError") || line.contains("Failed parsing");
    let is_known = KNOWN_DIFFERENCES.iter().any(|(part, _)| statement.contains(part));
    // Values of a prepared statement follow it after ` -- `. Comments come before its last line.
    let has_values = statement
        .rsplit("\\n")
        .next()
        .is_some_and(|last| last.contains(" -- "));
    is_schema && !is_known && !has_values && !expected.iter().any(is_bug)
}

/// Returns the statement with every `%rep(text,count)` expanded.
fn expanded(statement: &str) -> String {
    let Some((before, rest)) = statement.split_once("%rep(") else {
        return statement.to_owned();
    };
    let (repeated, after) = rest.split_once(')').unwrap();
    let (text, count) = repeated.split_once(',').unwrap();
    format!(
        "{before}{}{}",
        text.repeat(count.parse().unwrap()),
        expanded(after)
    )
}

/// Returns the statements of a case whose error messages differ from run to run.
fn compared_by_code(case: &str, keyspace: &str) -> Vec<String> {
    let lines: Vec<&str> = case.lines().collect();
    let pairs = lines.iter().zip(lines.iter().skip(1));
    let of_code = pairs.filter(|(directive, _)| **directive == "-- code_only");
    of_code
        .map(|(_, statement)| statement.trim_end_matches(';').replace("%ks", keyspace))
        .collect()
}

/// Reduces an error to its code, such as `error Invalid`.
fn keep_code(line: &mut String) {
    if line.starts_with("error ") {
        line.truncate(line.find(':').unwrap_or(line.len()));
    }
}

fn replay(path: &Path, differences: &mut Vec<String>) -> usize {
    let text = fs::read_to_string(path).unwrap();
    let name = path.file_stem().unwrap().to_string_lossy().into_owned();
    let area = path
        .parent()
        .unwrap()
        .file_name()
        .unwrap()
        .to_string_lossy()
        .into_owned();
    let mut replay = Replay::new(&format!("c_{area}_{name}"));
    let case = fs::read_to_string(path.with_extension("cql")).unwrap();
    let says = |directive: &str| case.lines().any(|line| line.starts_with(directive));
    let names_other = |line: &str| line.starts_with("-- keyspace:") && !line.ends_with(" %ks");
    // Access control needs a node, which this test does not have.
    if case.lines().any(names_other) || says("-- case login:") {
        return 0;
    }
    // Cases whose requests name a keyspace name this one.
    if says("-- case nouse:") && !says("-- keyspace:") {
        replay.keyspace = None;
    }
    let by_code = compared_by_code(&case, &format!("c_{area}_{name}"));
    let mut compared = 0;
    for block in text.split("\n> ").skip(1) {
        let mut lines = block.lines().map(str::to_owned);
        let statement = lines.next().unwrap_or_default();
        let expected: Vec<String> = lines
            .filter(|line| !line.is_empty() && line != "-- more")
            .collect();
        if !is_compared(&statement, &expected) {
            continue;
        }
        let Some(answer) = replay.answer(&expanded(&statement.replace("\\n", "\n"))) else {
            continue;
        };
        compared += 1;
        let (mut answer, mut expected) = (masked(&answer), masked(&expected));
        if by_code.contains(&statement) {
            answer.iter_mut().chain(&mut expected).for_each(keep_code);
        }
        let same = |(answer, expected): (&String, &String)| match expected.split_once("<masked>") {
            Some((shown, _)) => answer.starts_with(shown),
            None => answer == expected,
        };
        if answer.len() != expected.len() || !answer.iter().zip(&expected).all(same) {
            differences.push(format!(
                "{area}/{name}: {statement}\n  expected {}\n  found    {}",
                expected.join("\n           "),
                answer.join("\n           ")
            ));
        }
    }
    compared
}

#[test]
fn ddl_is_answered_as_by_cassandra() {
    let mut differences = Vec::new();
    let mut compared = 0;
    for path in cases() {
        compared += replay(&path, &mut differences);
    }
    assert!(compared > 500, "only {compared} statements");
    assert!(
        differences.is_empty(),
        "{} of {compared} differ:\n{}",
        differences.len(),
        differences.join("\n")
    );
}

#[test]
fn table_options_round_trip_and_defaults_are_not_stored() {
    let mut replay = Replay::new("kept");
    replay.answer("CREATE TABLE plain (k int PRIMARY KEY, v text)");
    let plain = documents::encode(&replay.schema).unwrap();
    replay.answer("CREATE TABLE told (k int PRIMARY KEY) WITH gc_grace_seconds = 7 AND comment = 'c'");
    let written = documents::encode(&replay.schema).unwrap();
    assert!(plain.len() < 700, "{}", String::from_utf8_lossy(&plain));
    let mut found = new_schema();
    documents::read(&written, &mut found, hidden_table).unwrap();
    for name in ["plain", "told"] {
        let of = |schema: &Schema| schema.keyspace("kept").unwrap().tables[name].options.clone();
        assert_eq!(of(&found), of(&replay.schema), "{name}");
    }
    assert_eq!(documents::encode(&found).unwrap(), written);
}

#[test]
fn function_events_follow_tables_and_drops_precede_them() {
    let mut replay = Replay::new("told");
    let events = |replay: &mut Replay, statement: &str| {
        let before = replay.schema.clone();
        let answer = replay.answer(statement).unwrap();
        assert!(answer[0].starts_with("schema_change"), "{statement}: {answer:?}");
        let events = difference::events(&before, &replay.schema);
        let short = |event: &SchemaChange| change_line(event).replace("schema_change ", "");
        events.iter().map(short).collect::<Vec<_>>()
    };
    events(&mut replay, "CREATE TYPE p (a int)");
    events(&mut replay, "CREATE TABLE t (k int PRIMARY KEY, v frozen<p>)");
    let function = "FUNCTION f(s int, v p) RETURNS NULL ON NULL INPUT RETURNS int LANGUAGE java AS 'return s";
    let made = events(&mut replay, &format!("CREATE {function};'"));
    assert_eq!(made, ["CREATED FUNCTION told f (int, p)"]);
    let replaced = events(&mut replay, &format!("CREATE OR REPLACE {function} + 1;'"));
    assert_eq!(replaced, ["UPDATED FUNCTION told f (int, p)"]);
    let again = replay.answer(&format!("CREATE OR REPLACE {function} + 1;'"));
    assert_eq!(again.unwrap(), ["void"]);
    let made = events(&mut replay, "CREATE AGGREGATE a(p) SFUNC f STYPE int INITCOND 0");
    assert_eq!(made, ["CREATED AGGREGATE told a (p)"]);
    assert_eq!(
        events(&mut replay, "ALTER TYPE p RENAME a TO b"),
        [
            "UPDATED TYPE told p",
            "UPDATED TABLE told t",
            "UPDATED FUNCTION told f (int, p)",
            "UPDATED AGGREGATE told a (p)"
        ]
    );
    let keyspace = replay.schema.keyspace("told").unwrap();
    let argument = &keyspace.functions["f(int, frozen<p>)"].arguments[1].1;
    assert_eq!(argument.freeze(), keyspace.tables["t"].columns[1].ty);
    assert_eq!(
        events(&mut replay, "DROP KEYSPACE told"),
        [
            "DROPPED AGGREGATE told a (p)",
            "DROPPED FUNCTION told f (int, p)",
            "DROPPED TABLE told t",
            "DROPPED TYPE told p",
            "DROPPED KEYSPACE told"
        ]
    );
}

#[test]
fn an_argument_has_a_name_that_java_takes() {
    let mut replay = Replay::new("named");
    let mut answer = |name: &str| {
        let statement = format!(
            "CREATE FUNCTION f(\"{name}\" int) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'return null;'"
        );
        replay.answer(&statement).unwrap().join("")
    };
    for name in ["a b", "1a", "a-b", "a.b", "a)"] {
        let refused = answer(name);
        assert!(
            refused.starts_with("error Invalid: Java source compilation failed"),
            "{refused}"
        );
    }
    assert!(answer("A$_1").starts_with("schema_change CREATED"));
}

#[test]
fn schema_events_cover_every_change_of_a_statement() {
    let mut replay = Replay::new("told");
    let mut reported = |statement: &str| {
        let before = replay.schema.clone();
        let answer = replay.answer(statement).unwrap();
        assert!(answer[0].starts_with("schema_change"), "{statement}: {answer:?}");
        let events = difference::events(&before, &replay.schema);
        let short = |event: &SchemaChange| {
            change_line(event)
                .replace("schema_change ", "")
                .replace(" told", "")
        };
        events.iter().map(short).collect::<Vec<_>>()
    };
    assert_eq!(reported("CREATE TYPE inner (a int)"), ["CREATED TYPE inner"]);
    assert_eq!(
        reported("CREATE TYPE outer (i frozen<inner>)"),
        ["CREATED TYPE outer"]
    );
    let t = "CREATE TABLE t (k int PRIMARY KEY, v int, l list<frozen<outer>>)";
    assert_eq!(reported(t), ["CREATED TABLE t"]);
    assert_eq!(
        reported("CREATE TABLE other (k int PRIMARY KEY)"),
        ["CREATED TABLE other"]
    );
    let view = "CREATE MATERIALIZED VIEW whole AS SELECT * FROM t WHERE k IS NOT NULL AND v IS NOT NULL PRIMARY KEY (v, k)";
    assert_eq!(reported(view), ["CREATED TABLE whole"]);
    assert_eq!(
        reported("ALTER TABLE t ADD w int"),
        ["UPDATED TABLE t", "UPDATED TABLE whole"]
    );
    assert_eq!(reported("ALTER TABLE t WITH comment = 'c'"), ["UPDATED TABLE t"]);
    assert_eq!(reported("CREATE INDEX i ON t (w)"), ["UPDATED TABLE t"]);
    assert_eq!(
        reported("ALTER TYPE inner ADD b int"),
        [
            "UPDATED TYPE inner",
            "UPDATED TYPE outer",
            "UPDATED TABLE t",
            "UPDATED TABLE whole"
        ]
    );
    assert_eq!(
        reported("ALTER KEYSPACE told WITH durable_writes = false"),
        ["UPDATED KEYSPACE"]
    );
    assert_eq!(
        reported("DROP KEYSPACE told"),
        [
            "DROPPED TABLE whole",
            "DROPPED TABLE other",
            "DROPPED TABLE t",
            "DROPPED TYPE inner",
            "DROPPED TYPE outer",
            "DROPPED KEYSPACE"
        ]
    );
}
