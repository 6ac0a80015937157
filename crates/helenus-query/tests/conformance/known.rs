//! The file of intended differences from Cassandra. The test of the parser in `helenus-cql` includes this module too.

use std::collections::BTreeMap;
use std::path::Path;

/// Intended differences by case, as beginnings of statements.
pub type Known = BTreeMap<String, Vec<String>>;

/// Reads a file whose lines are `case | beginning of the statement | reason`.
pub fn known_differences(path: &Path) -> Known {
    let source = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut known = Known::new();
    for line in source.lines().filter(|line| !line.starts_with('#')) {
        let parts: Vec<&str> = line.split(" | ").map(str::trim).collect();
        if let [case, start @ .., _reason] = parts.as_slice()
            && !start.is_empty()
        {
            known
                .entry((*case).to_owned())
                .or_default()
                .push(start.join(" | "));
        }
    }
    known
}
