//! Fuzzes the body of a function. Any text is refused or can be called. Neither panics, takes long, or overflows the stack.
#![no_main]

use std::time::{Duration, Instant};

use helenus_cql::types::CqlType;
use helenus_cql::value::CqlValue;
use helenus_java::{Function, Signature, Types};
use libfuzzer_sys::fuzz_target;

struct NoTypes;

impl Types for NoTypes {
    fn user_type(&self, _: &str) -> Option<CqlType> {
        None
    }

    fn named(&self, _: &str) -> Option<CqlType> {
        None
    }
}

fuzz_target!(|body: &str| {
    let arguments = [
        ("i", CqlType::INT),
        ("t", CqlType::TEXT),
        ("l", CqlType::list(CqlType::INT, false)),
        ("p", CqlType::tuple(vec![CqlType::INT, CqlType::TEXT])),
    ];
    let signature = Signature {
        arguments: arguments.map(|(name, ty)| (name.to_owned(), ty)).to_vec(),
        returns: CqlType::INT,
        is_called_on_null: true,
    };
    let Ok(function) = Function::compile(body, signature) else {
        return;
    };
    let values = vec![
        Some(CqlValue::Int(7)),
        Some(CqlValue::Text("Helenus".into())),
        Some(CqlValue::List(vec![CqlValue::Int(1), CqlValue::Int(2)])),
        None,
    ];
    let begun = Instant::now();
    let _ = function.call(values, &NoTypes, begun + Duration::from_millis(20));
    assert!(begun.elapsed() < Duration::from_secs(2), "it went on after its time");
});
