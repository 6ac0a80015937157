use super::token::KEYWORDS;
use super::*;

fn kinds(text: &str) -> Vec<Kind> {
    let tokens = tokenize(text);
    assert_eq!(tokens.error, None, "{text}");
    tokens.tokens.iter().map(|token| token.kind).collect()
}

fn error(text: &str) -> (usize, LexProblem) {
    let error = tokenize(text)
        .error
        .unwrap_or_else(|| panic!("no error in {text}"));
    (error.offset, error.problem)
}

#[test]
fn keywords_are_sorted_and_found_in_any_case() {
    assert!(KEYWORDS.windows(2).all(|pair| pair[0].0 < pair[1].0));
    for (text, kind) in KEYWORDS {
        assert_eq!(Kind::keyword(text.as_bytes()), Some(*kind));
        assert_eq!(Kind::keyword(text.to_uppercase().as_bytes()), Some(*kind));
    }
    assert_eq!(Kind::keyword(b"foo"), None);
    assert_eq!(Kind::keyword(b"a_very_long_identifier"), None);
}

#[test]
fn numbers() {
    let table: &[(&str, &[Kind])] = &[
        ("1", &[Kind::Integer]),
        ("-12", &[Kind::Integer]),
        ("1.", &[Kind::FloatLiteral]),
        ("-1.5e-3", &[Kind::FloatLiteral]),
        ("1e5", &[Kind::FloatLiteral]),
        ("1..2", &[Kind::Integer, Kind::Range, Kind::Integer]),
        ("1...2", &[Kind::FloatLiteral, Kind::Range, Kind::Integer]),
        ("0x", &[Kind::HexNumber]),
        ("0XaB", &[Kind::HexNumber]),
        ("1h30m", &[Kind::DurationLiteral]),
        ("-1Y2mo3w4d5h6m7s8ms9us10ns", &[Kind::DurationLiteral]),
        ("5µs", &[Kind::DurationLiteral]),
        ("P1Y2M3DT4H5M6S", &[Kind::DurationLiteral]),
        ("-P2W", &[Kind::DurationLiteral]),
        ("PT1M", &[Kind::DurationLiteral]),
        ("P0001-02-03T04:05:06", &[Kind::DurationLiteral]),
        ("P1Y2", &[Kind::Identifier]),
        ("a-1", &[Kind::Identifier, Kind::Integer]),
        ("a - 1", &[Kind::Identifier, Kind::Minus, Kind::Integer]),
        ("123e4567-e89b-12d3-a456-426614174000", &[Kind::UuidLiteral]),
        ("abcdef12-E89B-12d3-a456-426614174000", &[Kind::UuidLiteral]),
        ("1234567e-1234-12d3-a456-426614174000", &[Kind::UuidLiteral]),
        ("1234567e-8", &[Kind::FloatLiteral]),
        ("1234567E-12345", &[Kind::FloatLiteral]),
        ("1234567e-36-1", &[Kind::FloatLiteral, Kind::Integer]),
        ("1234567e-1234a", &[Kind::FloatLiteral, Kind::Identifier]),
        ("-nan NaN", &[Kind::NegativeNan, Kind::Nan]),
        ("-Infinity", &[Kind::NegativeInfinity]),
    ];
    for (text, expected) in table {
        let mut expected = expected.to_vec();
        expected.push(Kind::Eof);
        assert_eq!(kinds(text), expected, "{text}");
    }
}

#[test]
fn strings_names_and_comments() {
    assert_eq!(
        kinds("'it''s' $$it's$$"),
        [Kind::StringLiteral, Kind::DollarString, Kind::Eof]
    );
    assert_eq!(
        kinds(r#""" """" "a""b""#),
        [
            Kind::EmptyQuotedName,
            Kind::QuotedName,
            Kind::QuotedName,
            Kind::Eof
        ]
    );
    assert_eq!(
        kinds("a -- b\nc // d\re /* f \n */ g"),
        [
            Kind::Identifier,
            Kind::Identifier,
            Kind::Identifier,
            Kind::Identifier,
            Kind::Eof
        ]
    );
    assert_eq!(
        kinds("expr( expr ("),
        [Kind::ExprOpen, Kind::Identifier, Kind::LeftParen, Kind::Eof]
    );
}

#[test]
fn what_is_no_token() {
    assert_eq!(error("a ^"), (2, LexProblem::NoViableAlternative));
    assert_eq!(error("'abc"), (4, LexProblem::Mismatched("'''")));
    assert_eq!(error("a -name"), (5, LexProblem::Mismatched("set null")));
    assert_eq!(error("a -- b"), (6, LexProblem::Mismatched("set null")));
    assert_eq!(error("12345678-1 "), (10, LexProblem::Mismatched("set null")));
    assert_eq!(error("/* b"), (4, LexProblem::Mismatched("'*'")));
    assert_eq!(error("$a"), (1, LexProblem::Mismatched("'$'")));
    assert_eq!(error("!"), (1, LexProblem::Mismatched("'='")));
}
