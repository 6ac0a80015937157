use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;
use crate::ast::*;
use crate::types::NativeType;

const ACCEPTED: &str = include_str!("accepted.cql");
const GOLDEN_ERRORS: &str = include_str!("golden_errors.txt");

fn parse(text: &str) -> Statement {
    parse_statement(text)
        .unwrap_or_else(|error| panic!("{text}: {error}"))
        .statement
}

fn select(text: &str) -> Select {
    match parse(text) {
        Statement::Select(select) => *select,
        other => panic!("{other:?}"),
    }
}

fn integer(text: &str) -> Term {
    Term::Literal(Literal {
        kind: LiteralKind::Integer,
        text: text.to_owned(),
    })
}

#[test]
fn statements_of_every_kind_are_accepted() {
    for line in ACCEPTED.lines() {
        let text = line.replace("\\n", "\n");
        parse(&text);
        parse(&format!("{text};"));
    }
}

#[test]
fn errors_read_as_those_of_cassandra() {
    let mut lines = GOLDEN_ERRORS.lines().skip(1);
    let mut wrong = Vec::new();
    while let (Some(statement), Some(expected)) = (lines.next(), lines.next()) {
        let found = match parse_statement(&statement.replace("\\n", "\n")) {
            Ok(_) => "OK".to_owned(),
            Err(CqlError::Syntax(message)) => format!("SyntaxException: {message}"),
            Err(CqlError::Invalid(message)) => format!("InvalidRequestException: {message}"),
            Err(other) => format!("{other:?}"),
        };
        if found != expected {
            wrong.push(format!("{statement}\n  {expected}\n  {found}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn select_that_bypasses_the_cache() {
    let read = select("SELECT a FROM t WHERE a IN ? AND b < now() AND c <= ? BYPASS CACHE USING TIMEOUT 2s");
    assert_eq!(read.relations.len(), 3);
    assert!(read.timeout.is_some());
    assert_eq!(select("SELECT a FROM t LIMIT 1 BYPASS CACHE").relations.len(), 0);
    assert!(parse_statement("SELECT a FROM t BYPASS").is_err());
}

#[test]
fn select_with_a_timeout() {
    assert_eq!(
        select("SELECT a FROM t USING TIMEOUT 1500ms").timeout,
        Some(std::time::Duration::from_millis(1500))
    );
    let where_clause = select("SELECT a FROM t WHERE a = 'x' AND b IN ? USING TIMEOUT 2s");
    assert_eq!(where_clause.timeout, Some(std::time::Duration::from_secs(2)));
    assert_eq!(select("SELECT a FROM t LIMIT 1").timeout, None);
    for refused in [
        "USING TIMEOUT -1s",
        "USING TIMEOUT 1d",
        "USING TTL 1s",
        "USING TIMEOUT",
        "USING TIMEOUT 1",
    ] {
        assert!(
            parse_statement(&format!("SELECT a FROM t {refused}")).is_err(),
            "{refused}"
        );
    }
}

#[test]
fn select_with_all_its_clauses() {
    let select = select(
        "SELECT JSON DISTINCT a AS \"B\", count(*), writetime(m['k']) FROM Ks.\"T\" WHERE Token(a) > ? AND (b, c) IN ((1, 2), (3, 4)) \
         GROUP BY a ORDER BY b DESC, v ANN OF [1] PER PARTITION LIMIT 2 LIMIT :lim ALLOW FILTERING",
    );
    assert!(select.json && select.distinct && select.allow_filtering);
    assert_eq!(select.table.to_string(), "ks.T");
    assert_eq!(select.items[0].alias, Some(Ident::from("B")));
    assert_eq!(select.items[1].selector, Selector::CountRows);
    assert_eq!(select.items[2].selector.column_name(), "writetime(m['k'])");
    assert_eq!(
        select.relations[0],
        Relation::Token {
            columns: vec![Ident::from("a")],
            operator: Operator::Gt,
            term: Term::Marker(0),
        }
    );
    assert!(
        matches!(&select.relations[1], Relation::TupleIn { values: InValues::Values(values), .. } if values.len() == 2)
    );
    assert!(select.order_by[0].descending);
    assert!(select.order_by[1].ann_of.is_some());
    assert_eq!(select.per_partition_limit, Some(integer("2")));
    assert_eq!(select.limit, Some(Term::Marker(1)));
}

#[test]
fn bind_markers_are_numbered_in_the_order_of_the_text() {
    let parsed = parse_statement("UPDATE t USING TTL ? SET a = :x, b[?] = ? WHERE k IN ? IF a = :y").unwrap();
    let names: Vec<_> = parsed
        .bind_markers
        .iter()
        .map(|marker| marker.name.as_ref().map(Ident::as_str))
        .collect();
    assert_eq!(names, [None, Some("x"), None, None, None, Some("y")]);
}

#[test]
fn json_and_distinct_may_be_columns() {
    for text in [
        "SELECT json FROM t",
        "SELECT json, a FROM t",
        "SELECT json AS x FROM t",
        "SELECT distinct FROM t",
        "SELECT distinct.a FROM t",
        "SELECT distinct AS x FROM t",
    ] {
        let select = select(text);
        assert!(!select.json && !select.distinct, "{text}");
    }
    assert!(select("SELECT JSON AS FROM t").json);
    assert!(select("SELECT JSON * FROM t").json);
}

#[test]
fn terms() {
    let term = |text: &str| match parse(&format!("INSERT INTO t (a) VALUES ({text})")) {
        Statement::Insert(insert) => insert.values.into_iter().next().unwrap(),
        other => panic!("{other:?}"),
    };
    assert_eq!(term("(1)"), Term::Tuple(vec![integer("1")]));
    assert_eq!(term("{}"), Term::Set(Vec::new()));
    assert_eq!(
        term("{a: 1, b: 2, a: 3}"),
        Term::UserType(vec![
            (Ident::from("b"), integer("2")),
            (Ident::from("a"), integer("3")),
        ])
    );
    assert_eq!(
        term("(int) 1"),
        Term::TypeHint {
            ty: TypeName::Native(NativeType::Int),
            term: Box::new(integer("1")),
        }
    );
    assert!(matches!(term("('a')"), Term::Tuple(_)));
    assert!(matches!(term("(ks.ut) {a: 1}"), Term::TypeHint { .. }));
    assert!(matches!(
        term("(frozen<map<int, vector<float, 3>>>) {}"),
        Term::TypeHint { .. }
    ));
    assert!(matches!(term("-f()"), Term::Negation(_)));
    assert_eq!(
        term("1 + 2 * 3").to_string(),
        "system.\"_add\"(1, system.\"_multiply\"(2, 3))"
    );
    assert_eq!(term("'it''s'").to_string(), "'it's'");
    assert_eq!(term("-infinity").to_string(), "-Infinity");
}

#[test]
fn assignments() {
    let operation = |text: &str| match parse(&format!("UPDATE t SET {text} WHERE k = 0")) {
        Statement::Update(update) => update.assignments.into_iter().next().unwrap().operation,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        operation("c = c - 3"),
        AssignmentOperation::Subtract(integer("3"))
    );
    assert_eq!(operation("c = c -3"), AssignmentOperation::Add(integer("-3")));
    assert_eq!(operation("c = 3 + c"), AssignmentOperation::Prepend(integer("3")));
    assert_eq!(operation("c += 3"), AssignmentOperation::Add(integer("3")));
    assert!(matches!(
        operation("c = f(1) + 2"),
        AssignmentOperation::Set(Term::Operation { .. })
    ));
    assert!(matches!(
        operation("c = c + 1 + f(2)"),
        AssignmentOperation::Add(Term::Operation { .. })
    ));
}

#[test]
fn conditions() {
    let condition = |text: &str| match parse(&format!("DELETE FROM t WHERE k = 0 IF {text}")) {
        Statement::Delete(delete) => delete.condition,
        other => panic!("{other:?}"),
    };
    assert_eq!(condition("EXISTS"), IfClause::Exists);
    assert!(matches!(condition("exists = 1"), IfClause::Conditions(_)));
    assert!(
        matches!(condition("m['k'] IN (1, ?) AND u.f != 2"), IfClause::Conditions(all) if all.len() == 2)
    );
}

#[test]
fn names_of_result_columns() {
    for (text, expected) in [
        ("a", "a"),
        ("\"A\"", "A"),
        ("count(*)", "count"),
        ("count(1)", "count"),
        ("(a + b) * 2", "(a + b) * 2"),
        ("max(v)", "system.max(v)"),
        ("ks.f(v, 1)", "ks.f(v, 1)"),
        ("token(a, b)", "system.token(a, b)"),
        ("cast(a AS varchar)", "cast(a as text)"),
        ("writetime(v)", "writetime(v)"),
        ("ttl(m['k'])", "ttl(m['k'])"),
        ("u.f.g", "u.f.g"),
        ("m['a'..]", "m['a'..]"),
        ("m[1..2]", "m[1..2]"),
        ("(int) a", "(int)a"),
        ("(a, 1)", "(a, 1)"),
        ("[a, b]", "[a, b]"),
        ("{a: b}", "{a: b}"),
        ("a + 1", "a + 1"),
        ("-a", "-a"),
    ] {
        let select = select(&format!("SELECT {text} FROM t"));
        assert_eq!(select.items[0].selector.column_name(), expected, "{text}");
    }
}

/// Checks that unlimited nesting is refused, and that long flat statements take linear time.
#[test]
fn nesting_is_limited_and_length_is_not() {
    let deep = |open: &str, close: &str| {
        let text = format!("SELECT {}a{} FROM t", open.repeat(100_000), close.repeat(100_000));
        parse_statement(&text).unwrap_err();
        let text = format!(
            "INSERT INTO t (a) VALUES ({}1{})",
            open.repeat(100_000),
            close.repeat(100_000)
        );
        parse_statement(&text).unwrap_err();
    };
    deep("(", ")");
    deep("[", "]");
    deep("{", "}");
    deep("f(", ")");
    deep("-(", ")");
    deep("(int)", "");
    deep("a + ", "");
    deep("a.", "");
    deep("a[", "]");
    parse_statement(&format!("SELECT a FROM t WHERE {}a = 1", "(".repeat(100_000))).unwrap_err();
    parse_statement(&format!("CREATE TABLE t (a {}int", "frozen<".repeat(100_000))).unwrap_err();
    parse_statement(&format!("SELECT a{} FROM t", ".b".repeat(100_000))).unwrap_err();

    let begin = Instant::now();
    let list = vec!["(1, 'x')"; 200_000].join(", ");
    parse(&format!("SELECT a FROM t WHERE (a, b) IN ({list})"));
    parse(&format!("SELECT {} FROM t", vec!["(a)"; 200_000].join(", ")));
    assert!(begin.elapsed() < Duration::from_secs(20));
}

/// Checks that the deepest accepted tree fits into the stack of a worker thread, also when the tree is dropped.
#[test]
fn the_deepest_tree_fits_a_stack_of_two_megabytes() {
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(|| {
        for (open, close) in [("[", "]"), ("{", "}"), ("f(", ")"), ("(", ")")] {
            let depth = (1..MAX_DEPTH)
                .rev()
                .map(|depth| {
                    format!(
                        "INSERT INTO t (a) VALUES ({}1{})",
                        open.repeat(depth),
                        close.repeat(depth)
                    )
                })
                .find_map(|text| parse_statement(&text).ok());
            assert!(depth.is_some());
            let depth = (1..MAX_DEPTH)
                .rev()
                .map(|depth| format!("SELECT {}a{} FROM t", open.repeat(depth), close.repeat(depth)))
                .find_map(|text| parse_statement(&text).ok());
            assert!(depth.is_some());
        }
        parse(&format!("SELECT a{} FROM t", " + a".repeat(MAX_LINKS)));
    });
    thread.unwrap().join().unwrap();
}

fn token_soup() -> impl Strategy<Value = String> {
    let words: Vec<String> = ACCEPTED
        .split([' ', '(', ')', ',', '\n'])
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .chain(
            "( ) [ ] { } , ; : . .. = != < > + - * / % ? ' \" $$ -- /* \n ä µ 1 0x -1 1e -n"
                .split(' ')
                .map(str::to_owned),
        )
        .collect();
    prop::collection::vec(prop::sample::select(words), 0..40).prop_map(|words| words.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn token_soup_never_panics(text in token_soup()) {
        let _ = parse_statement(&text);
    }

    #[test]
    fn any_text_never_panics(text in "\\PC{0,60}") {
        let _ = parse_statement(&text);
    }
}

/// Parses statements with pieces cut, doubled, swapped and spoiled, for as long as HELENUS_FUZZ_SECONDS says.
#[test]
fn mutated_statements_never_panic() {
    let seconds = std::env::var("HELENUS_FUZZ_SECONDS")
        .ok()
        .and_then(|seconds| seconds.parse().ok())
        .unwrap_or(1);
    let end = Instant::now() + Duration::from_secs(seconds);
    let statements: Vec<Vec<char>> = ACCEPTED.lines().map(|line| line.chars().collect()).collect();
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % bound.max(1) as u64) as usize
    };
    while Instant::now() < end {
        for _ in 0..100 {
            let mut text = statements[next(statements.len())].clone();
            for _ in 0..=next(4) {
                let from = next(text.len());
                let to = from + next(text.len() - from + 1).min(12);
                match next(4) {
                    0 => drop(text.drain(from..to)),
                    1 => {
                        let piece = text[from..to].to_vec();
                        let at = next(text.len());
                        text.splice(at..at, piece);
                    }
                    2 => {
                        let other = &statements[next(statements.len())];
                        let start = next(other.len());
                        let piece = other[start..(start + 10).min(other.len())].to_vec();
                        text.splice(from..to, piece);
                    }
                    _ => text.insert(from, ['\'', '"', '\0', '(', '{', '-', '$', 'é'][next(8)]),
                }
            }
            let text: String = text.into_iter().collect();
            let _ = parse_statement(&text);
        }
    }
}

#[test]
fn columns_are_masked_and_unmasked() {
    let change = |text: &str| match parse(text) {
        Statement::AlterTable(statement) => statement.change,
        other => panic!("{other:?}"),
    };
    let TableChange::Mask {
        if_exists,
        mask: Some(mask),
        ..
    } = change("ALTER TABLE t ALTER IF EXISTS c MASKED WITH ks.f(1, null)")
    else {
        panic!("no mask");
    };
    assert!(if_exists);
    assert_eq!((mask.function.to_string().as_str(), mask.args.len()), ("ks.f", 2));
    let TableChange::Mask { mask: None, .. } = change("ALTER TABLE t ALTER c DROP MASKED") else {
        panic!("a mask");
    };
    let TableChange::Add { columns, .. } = change("ALTER TABLE t ADD c text STATIC MASKED WITH DEFAULT")
    else {
        panic!("no column");
    };
    let mask = columns.first().and_then(|column| column.mask.as_ref());
    assert_eq!(
        mask.map(|mask| mask.function.to_string()).as_deref(),
        Some("system.mask_default")
    );
}

#[test]
fn select_parses_as_of() {
    let snapshot = |text: &str| match parse_statement(text).map(|parsed| parsed.statement) {
        Ok(Statement::Select(select)) => Ok(select.as_of),
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error.to_string()),
    };
    assert_eq!(snapshot("SELECT * FROM t WHERE k = 1"), Ok(None));
    assert_eq!(
        snapshot("SELECT * FROM ks.t AS OF SNAPSHOT 'a-1' WHERE k = 1 LIMIT 3"),
        Ok(Some(AsOf::Snapshot("a-1".to_owned())))
    );
    assert_eq!(
        snapshot("select * from t as of snapshot Before"),
        Ok(Some(AsOf::Snapshot("before".to_owned())))
    );
    let time = |text: &str| Ok(Some(AsOf::Time(text.to_owned())));
    assert_eq!(
        snapshot("SELECT * FROM t AS OF '2026-11-23 14:00:00Z' WHERE k = 1"),
        time("2026-11-23 14:00:00Z")
    );
    assert_eq!(
        snapshot("SELECT * FROM t AS OF 1764000000000"),
        time("1764000000000")
    );
    assert!(
        snapshot("SELECT * FROM t AS OF yesterday")
            .unwrap_err()
            .contains("SNAPSHOT and the name")
    );
    assert!(snapshot("SELECT * FROM t AS OF SNAPSHOT").is_err());
    assert!(
        snapshot("SELECT * FROM t AS x")
            .unwrap_err()
            .contains("line 1:16")
    );
}

#[test]
fn keyspaces_and_tables_may_be_made_as_copies() {
    let parse = |text: &str| parse_statement(text).map(|parsed| parsed.statement);
    let Ok(Statement::CopyKeyspace(copy)) = parse(
        "CREATE KEYSPACE IF NOT EXISTS test AS COPY OF shop AS OF SNAPSHOT 'a-1' WITH durable_writes = false",
    ) else {
        panic!("a copy of a keyspace");
    };
    assert_eq!((copy.name.as_str(), copy.origin.as_str()), ("test", "shop"));
    assert!(copy.if_not_exists && !copy.properties.is_empty());
    assert_eq!(copy.as_of, Some(AsOf::Snapshot("a-1".to_owned())));
    let Ok(Statement::CopyTable(copy)) = parse("create table test.t as copy of \"Shop\".t") else {
        panic!("a copy of a table");
    };
    assert_eq!(copy.origin.keyspace.map(|name| name.0).as_deref(), Some("Shop"));
    assert_eq!((copy.if_not_exists, copy.as_of), (false, None));
    let said = |text: &str| parse(text).unwrap_err().to_string();
    assert!(said("CREATE KEYSPACE test AS COPY shop").contains("line 1:21"));
    assert!(said("CREATE TABLE t AS SELECT").contains("line 1:15"));
    assert!(said("CREATE TABLE t AS COPY OF s.t WITH comment = ''").contains("WITH"));
    assert!(parse("CREATE KEYSPACE test AS COPY OF shop AS OF SNAPSHOT").is_err());
}

#[test]
fn insert_rows_is_a_statement_of_its_own() {
    for (text, columns) in [
        (
            "INSERT INTO ks.t (a, \"B\", rows) ROWS ?;",
            &["a", "B", "rows"][..],
        ),
        ("insert into ks.t () rows ?", &[]),
    ] {
        let Statement::InsertRows(insert) = parse(text) else {
            panic!("{text}");
        };
        let names: Vec<&str> = insert.columns.iter().map(Ident::as_str).collect();
        assert_eq!(names, columns);
        assert_eq!(insert.table.name.as_str(), "t");
        assert_eq!(insert.rows, Term::Marker(0));
        assert!(!insert.without_cdc);
    }
    assert!(matches!(
        parse("INSERT INTO t (a) ROWS ? without cdc"),
        Statement::InsertRows(insert) if insert.without_cdc
    ));
    assert!(matches!(
        parse("INSERT INTO t (a) ROWS 0x01"),
        Statement::InsertRows(insert) if matches!(insert.rows, Term::Literal(_))
    ));
    // The word names tables and columns as before.
    assert!(matches!(
        parse("INSERT INTO rows (rows) VALUES (1)"),
        Statement::Insert(_)
    ));
}

#[test]
fn insert_rows_takes_no_clauses_and_is_in_no_batch() {
    for text in [
        "INSERT INTO t (a) ROWS ? USING TIMESTAMP 1",
        "INSERT INTO t (a) ROWS ? IF NOT EXISTS",
        "INSERT INTO t (a) ROWS (?)",
        "INSERT INTO t (a) ROWS 'text'",
        "INSERT INTO t (a) ROWS ?, ?",
        "INSERT INTO t (a,) ROWS ?",
        "INSERT INTO t (a ROWS ?",
        "INSERT INTO t (a) ROWS ? WITHOUT",
        "INSERT INTO t (a) ROWS ? WITHOUT CDC CDC",
        "INSERT INTO t (a) ROWS ? CDC",
    ] {
        assert!(
            matches!(parse_statement(text), Err(CqlError::Syntax(_))),
            "{text}"
        );
    }
    let batch = "BEGIN BATCH INSERT INTO t (a) VALUES (1); INSERT INTO t (a) ROWS ? APPLY BATCH";
    let refused = "INSERT … ROWS cannot be in a batch: send it as a statement of its own";
    assert_eq!(parse_statement(batch), Err(CqlError::invalid(refused)));
}
