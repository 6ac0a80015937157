//! Compares the results of several targets.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::Value;

use super::reader::LogReader;
use super::replay::shown;
use super::results::ResultsReader;
use crate::cli::fql::CompareResultsArgs;

/// Prints the queries whose results differ, with the difference. Returns their number.
///
/// # Errors
/// Fails if results or queries cannot be read, or there are fewer results than queries.
pub fn compare(args: &CompareResultsArgs) -> Result<u64> {
    let mut queries = LogReader::open(&args.queries)?;
    let open = |folder: &PathBuf| ResultsReader::open(folder);
    let mut readers = args.results.iter().map(open).collect::<Result<Vec<_>>>()?;
    let (mut count, mut mismatches) = (0_u64, 0);
    while let Some((entry, _)) = queries.next()? {
        count += 1;
        let next = readers.iter_mut().map(ResultsReader::next);
        let results = next.collect::<Result<Vec<Option<Value>>>>()?;
        let results: Option<Vec<Value>> = results.into_iter().collect();
        let results = results.context("there are fewer results than queries")?;
        if let Some(difference) = difference(&results) {
            mismatches += 1;
            println!("{difference} Query = {}", shown(&entry));
        }
    }
    println!("{count} queries, {mismatches} with different results");
    Ok(mismatches)
}

/// Returns the first difference from the first result, in fqltool's words. `None` if all are equal.
fn difference(results: &[Value]) -> Option<String> {
    let (first, others) = results.split_first()?;
    let differing = |(place, other)| difference_of_two(first, other, place + 1);
    others.iter().enumerate().find_map(differing)
}

/// Returns the difference between two results. Two errors are equal.
fn difference_of_two(first: &Value, other: &Value, place: usize) -> Option<String> {
    match (first.get("error"), other.get("error")) {
        (Some(_), Some(_)) => return None,
        (Some(error), None) => return Some(format!("MISMATCH result 0 is an error: {error}.")),
        (None, Some(error)) => return Some(format!("MISMATCH result {place} is an error: {error}.")),
        (None, None) => {}
    }
    if first["columns"] != other["columns"] {
        return Some(format!("COLUMN DEFINITION MISMATCH of results 0 and {place}."));
    }
    let (first, other) = (rows(first), rows(other));
    let differing = first.iter().zip(other).position(|(first, other)| first != other);
    let what = match differing {
        Some(row) => format!("row {row} is {} and {}", first[row], other[row]),
        None if first.len() == other.len() => return None,
        None => format!("{} rows and {} rows", first.len(), other.len()),
    };
    Some(format!("MISMATCH of results 0 and {place}: {what}."))
}

fn rows(result: &Value) -> &[Value] {
    result["rows"].as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn results_are_compared_by_columns_rows_and_failure() {
        let rows = |rows: Value| json!({ "columns": [["k", "t", "v", "int"]], "rows": rows });
        let equal = [rows(json!([["01"], [null]])), rows(json!([["01"], [null]]))];
        assert_eq!(difference(&equal), None);
        let of = |other: Value| difference(&[rows(json!([["01"], [null]])), other]).unwrap();
        assert!(of(rows(json!([["01"]]))).contains("2 rows and 1 rows"));
        assert!(of(rows(json!([["01"], ["02"]]))).contains("row 1 is [null] and [\"02\"]"));
        assert!(of(json!({ "error": "x" })).contains("result 1 is an error"));
        assert!(of(json!({ "columns": [], "rows": [] })).starts_with("COLUMN DEFINITION"));
        let failed = [json!({ "error": "x" }), json!({ "error": "y" })];
        assert_eq!(difference(&failed), None);
    }
}
