//! Runs bodies and compares their results with those of a Java 17 virtual machine, in UTC and the language of the United States. `d` is a
//! `timestamp`, `t` a `text`. A result that begins with `threw` is an exception.

use std::time::{Duration, Instant};

use helenus_cql::types::CqlType;
use helenus_cql::value::CqlValue;

use crate::function_tests::NoTypes;
use crate::{Function, Signature};

const RESULTS: &str = include_str!("jvm_results.txt");

fn run(body: &str) -> String {
    let signature = Signature {
        arguments: vec![
            ("d".to_owned(), CqlType::TIMESTAMP),
            ("t".to_owned(), CqlType::TEXT),
        ],
        returns: CqlType::TEXT,
        is_called_on_null: true,
    };
    let function = match Function::compile(body, signature) {
        Ok(function) => function,
        Err(error) => return format!("refused: {error}"),
    };
    let arguments = vec![
        Some(CqlValue::Timestamp(1_614_834_367_089)),
        Some(CqlValue::Text("2021-03-04".to_owned())),
    ];
    match function.call(arguments, &NoTypes, Instant::now() + Duration::from_secs(60)) {
        Ok(Some(CqlValue::Text(text))) => text,
        Ok(other) => format!("{other:?}"),
        Err(failure) => format!("threw {failure}"),
    }
}

#[test]
fn results_are_those_of_a_virtual_machine() {
    let lines: Vec<&str> = RESULTS.lines().collect();
    let mut differing = Vec::new();
    for case in lines.chunks(2) {
        let [body, expected] = case else {
            panic!("{case:?}")
        };
        let expected = expected.strip_prefix("=> ").expect(expected);
        let given = run(body);
        if given != expected {
            differing.push(format!("{body}\n   expected {expected}\n   given    {given}"));
        }
    }
    assert!(
        lines.len() > 100 && differing.is_empty(),
        "{}",
        differing.join("\n")
    );
}

/// Checks that the error names classes of Java that are not supported.
#[test]
fn unknown_classes_of_java_are_named() {
    let refused = |body: &str| run(body);
    for (body, class) in [
        (
            "return java.time.YearMonth.now().toString();",
            "java.time.YearMonth",
        ),
        (
            "java.text.DecimalFormat f = null; return t;",
            "java.text.DecimalFormat",
        ),
        ("return new java.util.Scanner(t).next();", "java.util.Scanner"),
        (
            "return \"\" + java.time.chrono.IsoChronology.INSTANCE;",
            "java.time.chrono.IsoChronology",
        ),
    ] {
        let message = refused(body);
        let wanted = format!("{class} is not supported in functions");
        assert!(message.contains(&wanted), "{message}");
    }
    let message = refused("return java.time.format.DateTimeFormatter.ofPattern(\"[yyyy]\").toString();");
    assert!(message.contains("is not supported in functions"), "{message}");
}
