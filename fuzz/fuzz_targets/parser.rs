//! Fuzzes the parser. For any text of a client it returns a statement or an error, and never panics.
#![no_main]

use helenus_cql::parser::parse_statement;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = parse_statement(text);
});
