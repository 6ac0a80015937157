//! Plans, printed and compared with the text in `tests/plans`. Neither a store nor a server is involved.
//!
//! A file consists of blocks: a word, the statements, `----`, and the expected result.
//!
//! - `schema`: statements that change the schema, each ended by `;`. Expects nothing.
//! - `plan`: one statement. Expects its plan, or the error with which planning refuses it.
//!
//! `HELENUS_REWRITE_PLANS=1 cargo test -p helenus-query plan_tests` writes the plans into the files.

use std::fs;
use std::path::{Path, PathBuf};

use helenus_cql::parser::parse_statement;

use crate::analysis::{Plan, Planned, plan};
use crate::engine::ddl::in_memory::InMemorySchema;

const SEPARATOR: &str = "----";

/// A block of a file.
struct Block {
    /// Text before the block: comments and blank lines.
    preface: String,
    word: String,
    input: String,
    expected: String,
}

fn blocks(text: &str) -> Vec<Block> {
    let mut lines = text.lines().peekable();
    let mut blocks = Vec::new();
    while lines.peek().is_some() {
        let mut preface = String::new();
        while let Some(line) = lines.next_if(|line| line.is_empty() || line.starts_with('#')) {
            preface += &format!("{line}\n");
        }
        let Some(word) = lines.next() else { break };
        let joined = |lines: Vec<&str>| lines.join("\n");
        let input = std::iter::from_fn(|| lines.next().filter(|line| *line != SEPARATOR));
        let input = joined(input.collect());
        let expected = std::iter::from_fn(|| lines.next_if(|line| !line.is_empty()));
        let expected = joined(expected.collect());
        blocks.push(Block {
            preface,
            word: word.to_owned(),
            input,
            expected,
        });
    }
    blocks
}

fn printed(planned: &Planned) -> Vec<String> {
    let (first, rest) = match &planned.plan {
        Plan::Select(plan) => (format!("SELECT {}", plan.table().full_name()), plan.explain()),
        Plan::Modification(plan) => (
            format!("{} {}", plan.kind, plan.table().full_name()),
            plan.explain(),
        ),
        Plan::InsertRows(plan) => (
            format!("INSERT ROWS {}", plan.table().full_name()),
            plan.explain(),
        ),
        Plan::Batch(plan) => ("BATCH".to_owned(), plan.explain()),
        Plan::Transaction(_) => ("TRANSACTION".to_owned(), Vec::new()),
        Plan::Direct(_) => ("resolved when it runs".to_owned(), Vec::new()),
    };
    let mut lines = vec![first];
    lines.extend(rest.into_iter().map(|line| format!("  {line}")));
    if !planned.partition_key_indexes.is_empty() {
        lines.push(format!(
            "  routed by markers: {:?}",
            planned.partition_key_indexes
        ));
    }
    lines
}

fn answer(schema: &mut InMemorySchema, block: &Block) -> String {
    match block.word.as_str() {
        "schema" => {
            for statement in block
                .input
                .split(';')
                .map(str::trim)
                .filter(|text| !text.is_empty())
            {
                schema
                    .apply(statement)
                    .unwrap_or_else(|error| panic!("{statement}: {error}"));
            }
            String::new()
        }
        "plan" => {
            let planned = parse_statement(&block.input)
                .and_then(|parsed| plan(&schema.schema, schema.keyspace.as_deref(), &parsed));
            match planned {
                Ok(planned) => printed(&planned).join("\n"),
                Err(error) => format!("error: {error}"),
            }
        }
        word => panic!("no such block: {word}"),
    }
}

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plans");
    let entries = fs::read_dir(&folder).expect("the folder of plans");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    files
}

/// Returns the text of the file with the actual plans, and the plans that differ from it.
fn replay(text: &str) -> (String, Vec<String>) {
    let mut schema = InMemorySchema::new("ks");
    let (mut rewritten, mut differences) = (String::new(), Vec::new());
    for block in blocks(text) {
        let actual = answer(&mut schema, &block);
        if actual != block.expected {
            differences.push(format!(
                "{}\nexpected:\n{}\nactual:\n{actual}",
                block.input, block.expected
            ));
        }
        let answer = if actual.is_empty() {
            actual
        } else {
            format!("{actual}\n")
        };
        rewritten += &format!(
            "{}{}\n{}\n{SEPARATOR}\n{answer}",
            block.preface, block.word, block.input
        );
    }
    (rewritten, differences)
}

#[test]
fn plans_are_the_recorded_ones() {
    let rewrites = std::env::var_os("HELENUS_REWRITE_PLANS").is_some();
    let mut differences = Vec::new();
    for path in files() {
        let text = fs::read_to_string(&path).expect("a file of plans");
        let (rewritten, found) = replay(&text);
        if rewrites {
            fs::write(&path, rewritten).expect("the file is written");
        } else {
            differences.extend(
                found
                    .into_iter()
                    .map(|found| format!("{}: {found}", path.display())),
            );
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
}
