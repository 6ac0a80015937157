//! Recorded outcomes, and the comparison of outcomes with them.

use std::collections::BTreeSet;

use crate::case_file::Case;
use crate::known::Known;
use crate::runner::Executed;

/// A recorded outcome: the statement's text, and the outcome's lines.
struct Recorded {
    head: String,
    lines: Vec<String>,
}

fn read(case: &Case) -> Vec<Recorded> {
    let path = case.path.with_extension("out");
    let source = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut blocks: Vec<Recorded> = Vec::new();
    for line in source.split('\n').skip(2) {
        if let Some(head) = line.strip_prefix("> ") {
            let (head, lines) = (head.to_owned(), Vec::new());
            blocks.push(Recorded { head, lines });
        } else if let Some(block) = blocks.last_mut().filter(|_| !line.is_empty()) {
            block.lines.push(line.to_owned());
        }
    }
    blocks
}

/// Returns descriptions of the outcomes that differ from the recorded ones.
pub fn differences(case: &Case, executed: &[Executed], known: &Known) -> Vec<String> {
    let recorded = read(case);
    let exact = case
        .options
        .get("messages")
        .is_some_and(|messages| messages == "exact");
    let known = known.get(&case.name).map_or(&[][..], Vec::as_slice);
    let mut found = Vec::new();
    let mut next = 0;
    for outcome in executed {
        // A prepared statement that is refused has no executions. Their records are skipped.
        let place = recorded[next..]
            .iter()
            .position(|block| block.head == outcome.head);
        let Some(place) = place else {
            found.push(reported(case, outcome, "not recorded", &[]));
            continue;
        };
        let expected = &recorded[next + place].lines;
        next += place + 1;
        let is_known = || known.iter().any(|start| outcome.head.starts_with(start.as_str()));
        if !is_same(expected, outcome, exact) && !is_known() {
            found.push(reported(case, outcome, "differs", expected));
        }
    }
    found
}

fn reported(case: &Case, outcome: &Executed, what: &str, expected: &[String]) -> String {
    let line = |sign: char| move |line: &String| format!("\n  {sign} {line}");
    let expected: String = expected.iter().map(line('-')).collect();
    let actual: String = outcome.lines.iter().map(line('+')).collect();
    format!(
        "{}:{} {what}\n  > {}{expected}{actual}",
        case.name, outcome.line, outcome.head
    )
}

/// Returns an `error` line's code with its fields, and its message.
fn error(lines: &[String]) -> Option<(&str, &str)> {
    let line = lines.first()?.strip_prefix("error ")?;
    let after_fields = line
        .find("]: ")
        .filter(|_| line.split(':').next().is_some_and(|code| code.contains('[')));
    let at = after_fields.map_or_else(|| line.find(": "), |at| Some(at + 1))?;
    Some((&line[..at], &line[at + 2..]))
}

fn code(fields: &str) -> &str {
    fields.split(' ').next().unwrap_or(fields)
}

fn is_same(expected: &[String], outcome: &Executed, exact: bool) -> bool {
    if expected == outcome.lines {
        return true;
    }
    let Some((fields, message)) = error(expected) else {
        return outcome.is_unordered && sorted(expected) == sorted(&outcome.lines);
    };
    let actual = error(&outcome.lines);
    // Cassandra fails here because of a bug of its own. Any refusal is accepted.
    if matches!(code(fields), "ServerError" | "ReadFailure" | "WriteFailure") {
        return actual.is_some();
    }
    actual.is_some_and(|(actual_fields, actual_message)| {
        if outcome.is_code_only {
            return code(actual_fields) == code(fields);
        }
        let is_alike = match exact {
            true => in_order(message) == in_order(actual_message),
            false => names_are_reported(code(fields), &outcome.head, message, actual_message),
        };
        is_alike && actual_fields == fields && expected[1..] == outcome.lines[1..]
    })
}

fn sorted(lines: &[String]) -> Vec<&String> {
    let mut lines: Vec<&String> = lines.iter().collect();
    lines.sort();
    lines
}

/// Returns the message with the overloads of a function sorted. Cassandra lists them in the order of a hash table.
fn in_order(message: &str) -> String {
    let overloads = message
        .split_once("signatures: ")
        .and_then(|(start, rest)| Some((start, rest.rsplit_once(')')?)));
    let Some((start, (list, end))) = overloads else {
        return message.to_owned();
    };
    let mut list: Vec<&str> = list.trim_start_matches("system.").split(", system.").collect();
    list.sort_unstable();
    format!("{start}signatures: {list:?}{end}")
}

/// Words of CQL and of English, which are not names in a message.
const COMMON: &str = "a add aggregate all allow alter an and any are as asc at batch be begin by cannot clustering column columns \
    contains counter create custom delete desc distinct does drop each entries exists filtering for from frozen full function group \
    has if in index insert into is it json key keys keyspace like limit list map materialized no not null of on only or order \
    partition per permission primary role select set static table that the this timestamp to token ttl tuple type unlogged update \
    use user using value values vector view where with writetime";

fn words(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

/// Returns true if our message contains all names and values of the statement that the recorded message contains. The part of the statement
/// that a syntax error quotes does not count.
fn names_are_reported(code: &str, statement: &str, recorded: &str, actual: &str) -> bool {
    let recorded = match code {
        "SyntaxError" => recorded.split(" (").next().unwrap_or(recorded),
        _ => recorded,
    };
    let (statement, actual) = (words(statement), words(actual));
    let common: BTreeSet<&str> = COMMON.split_whitespace().collect();
    words(recorded)
        .iter()
        .filter(|word| statement.contains(*word) && !common.contains(word.as_str()))
        .all(|word| actual.contains(word))
}

#[test]
fn names_of_the_statement_are_held_to_and_words_are_not() {
    let statement = "SELECT nosuch FROM t WHERE k = 1";
    let recorded = "Undefined column name nosuch in table ks.t";
    let tells = |actual| names_are_reported("Invalid", statement, recorded, actual);
    assert!(tells("table t has no column nosuch"));
    assert!(!tells("table t has no such column"));
}

#[test]
fn what_a_syntax_error_quotes_is_not_held_to() {
    let recorded = "line 1:12 mismatched input 'FORM' expecting K_FROM (SELECT nosuch [FORM] t)";
    let tells = |actual| names_are_reported("SyntaxError", "SELECT nosuch FORM t", recorded, actual);
    assert!(tells("line 1:12: FROM expected, not FORM"));
    assert!(!tells("line 1:12: FROM expected"));
}
