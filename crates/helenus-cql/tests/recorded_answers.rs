//! Tests the parser against Cassandra's recorded responses to all statements of the conformance suite (`tests/conformance`). If Cassandra's
//! error has a position in the text, the parser must return the same error. Other statements must not be syntax errors. Known differences are
//! left out.

use std::fs;
use std::path::{Path, PathBuf};

use helenus_cql::ast::Statement;
use helenus_cql::error::CqlError;
use helenus_cql::parser::parse_statement;

#[path = "../../helenus-query/tests/conformance/known.rs"]
mod known;

fn recorded_files(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the conformance cases") {
        let path = entry.expect("a directory entry").path();
        if path.is_dir() {
            recorded_files(&path, out);
        } else if path.extension().is_some_and(|e| e == "out") {
            out.push(path);
        }
    }
}

/// Replaces the runner's escapes: backslash, newline and carriage return.
fn unescape(line: &str) -> String {
    let mut out = String::new();
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (c, c == '\\') {
            (_, true) => match chars.next() {
                Some('n') => out.push('\n'),
                Some('r') => out.push('\r'),
                Some(other) => out.push(other),
                None => {}
            },
            (c, false) => out.push(c),
        }
    }
    out
}

/// Words of Cassandra 6 that are known here.
const NEWER_WORDS: [&str; 2] = ["CHECK", "GENERATED"];

/// Returns the name of a case, such as `types/roundtrip`, by its recorded file.
fn case_name(cases: &Path, file: &Path) -> String {
    let name = file
        .strip_prefix(cases)
        .expect("a file of the cases")
        .with_extension("");
    name.to_string_lossy().into_owned()
}

/// Prefixes with which the runner records BATCH messages, which are not text.
const BATCHES: [&str; 4] = ["LOGGED: ", "UNLOGGED: ", "COUNTER: ", "UNKNOWN: "];

/// Returns the recorded statements, each with the text of its syntax error if there was one. Executions of prepared statements, BATCH
/// messages and abbreviated statements are omitted.
fn recorded_statements(path: &Path) -> Vec<(String, Option<String>)> {
    let text = fs::read_to_string(path).expect("a recorded file");
    let lines: Vec<&str> = text.lines().collect();
    let pairs = lines.windows(2).filter(|pair| pair[0].starts_with("> "));
    let statements = pairs.filter(|pair| !pair[0].contains(" -- ") && !pair[0].contains("%rep("));
    let is_batch = |head: &str| BATCHES.iter().any(|kind| head.starts_with(kind));
    // Statements of a client that failed to authenticate were not parsed.
    let is_unread = |answer: &str| answer.starts_with("error BadCredentials: ");
    statements
        .filter(|pair| !is_batch(&pair[0][2..]) && !is_unread(pair[1]))
        .map(|pair| {
            let head = &pair[0][2..];
            let statement = unescape(head.strip_prefix("PREPARE ").unwrap_or(head));
            let error = pair[1].strip_prefix("error SyntaxError: ").map(unescape);
            (statement, error)
        })
        .collect()
}

#[test]
fn syntax_errors_are_the_recorded_ones() {
    let conformance = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"))
        .join("../../tests/conformance");
    let cases = conformance.join("cases");
    let known = known::known_differences(&conformance.join("known_differences.txt"));
    let mut files = Vec::new();
    recorded_files(&cases, &mut files);
    let mut failures = Vec::new();
    let mut count = 0;
    let recorded = files.iter().flat_map(|file| {
        let name = case_name(&cases, file);
        let of_case = recorded_statements(file).into_iter();
        of_case.map(move |(statement, expected)| (name.clone(), statement, expected))
    });
    for (case, statement, expected) in recorded {
        count += 1;
        // Cassandra 5 stops at these words of Cassandra 6. An error behind them is found later here.
        let is_newer = |error: &String| {
            NEWER_WORDS
                .iter()
                .any(|word| error.contains(&format!("at input '{word}'")))
        };
        let is_negated = statement.contains(" NOT BETWEEN ") || statement.contains(" NOT LIKE ");
        if is_negated || expected.as_ref().is_some_and(is_newer) {
            continue;
        }
        let starts = known.get(&case).map_or(&[][..], Vec::as_slice);
        let is_known = starts.iter().any(|start| {
            let start = start.strip_prefix("PREPARE ").unwrap_or(start);
            statement.starts_with(start)
        });
        if is_known {
            continue;
        }
        let actual = match parse_statement(&statement) {
            // Cassandra 5, which gave these answers, has no transactions.
            _ if statement.starts_with("BEGIN TRANSACTION") => continue,
            Err(CqlError::Syntax(message)) => Some(message),
            // Cassandra has no service levels.
            Ok(parsed) if matches!(parsed.statement, Statement::ServiceLevel(_)) => continue,
            // Cassandra lacks this clause of ScyllaDB.
            Ok(_) if statement.contains(" BYPASS CACHE") => continue,
            _ => None,
        };
        // Syntax errors without a position are not compared. They result from checks of properties and types, which are made later here, or
        // from errors in Cassandra.
        let unplaced = expected.as_ref().is_some_and(|e| !e.starts_with("line "));
        if actual != expected && !unplaced {
            failures.push(format!("> {statement}\n  - {expected:?}\n  + {actual:?}"));
        }
    }
    assert!(count > 5000, "only {count} statements were found");
    assert!(
        failures.is_empty(),
        "{} of {count} differ:\n{}",
        failures.len(),
        failures.join("\n")
    );
}
