//! `--workload.NAME=VALUE` (or `-w.NAME=VALUE`) and `--field.TABLE.COLUMN=GENERATOR`: flags whose names depend on the workload.
//!
//! Fixed flags replace these flags before the parser sees the command line.

use std::ffi::OsString;

/// The fixed flag for a workload's parameter. Its value is `NAME=VALUE`.
pub const WORKLOAD_FLAG: &str = "--workload-parameter";
/// The fixed flag for a column's generator. Its value is `TABLE.COLUMN=GENERATOR`.
pub const FIELD_FLAG: &str = "--field-generator";

const PREFIXES: [(&str, &str); 3] = [
    ("--workload.", WORKLOAD_FLAG),
    ("-w.", WORKLOAD_FLAG),
    ("--field.", FIELD_FLAG),
];

/// Replaces the dynamic flags of a command line by fixed ones. The value of a flag may also be the next word.
pub fn rewrite(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut rewritten = Vec::new();
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        let Some((flag, rest)) = argument.to_str().and_then(dynamic) else {
            rewritten.push(argument);
            continue;
        };
        let mut pair = OsString::from(rest);
        if !rest.contains('=') {
            pair.push("=");
            pair.push(arguments.next().unwrap_or_default());
        }
        rewritten.push(flag.into());
        rewritten.push(pair);
    }
    rewritten
}

fn dynamic(argument: &str) -> Option<(&'static str, &str)> {
    PREFIXES
        .iter()
        .find_map(|(prefix, flag)| Some((*flag, argument.strip_prefix(prefix)?)))
}

/// Splits `NAME=VALUE`, and removes quotes that a shell may have left around the value.
pub fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            let value = value.trim_matches(['\'', '"']);
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err(format!("{text:?} lacks a name or a value: NAME=VALUE")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dynamic_flags_become_known_ones() {
        let arguments = [
            "run",
            "--workload.tables=10",
            "-w.x",
            "7",
            "--field.kv.v='random(1,2)'",
        ];
        let rewritten = rewrite(arguments.map(OsString::from));
        let expected = [
            "run",
            "--workload-parameter",
            "tables=10",
            "--workload-parameter",
            "x=7",
            "--field-generator",
            "kv.v='random(1,2)'",
        ];
        assert_eq!(rewritten, expected.map(OsString::from));
    }

    #[test]
    fn pairs_lose_quotes_and_need_both_halves() {
        assert_eq!(
            pair("kv.v='random(1,2)'"),
            Ok(("kv.v".into(), "random(1,2)".into()))
        );
        assert!(pair("x=").is_err());
        assert!(pair("=x").is_err());
        assert!(pair("x").is_err());
    }
}
