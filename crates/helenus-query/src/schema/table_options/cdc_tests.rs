use std::collections::BTreeMap;

use super::*;
use crate::schema::TableOptions;

fn map<const N: usize>(entries: [(&str, &str); N]) -> BTreeMap<String, String> {
    entries
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
}

#[test]
fn map_sets_each_part() {
    let declared = map([
        ("enabled", "true"),
        ("preimage", "full"),
        ("postimage", "True"),
        ("delta", "keys"),
        ("ttl", "60"),
    ]);
    let expected = CdcOptions {
        enabled: true,
        preimage: Preimage::Full,
        postimage: true,
        delta: Delta::Keys,
        ttl_s: 60,
        since_us: 0,
    };
    assert_eq!(parse(&declared).expect("valid"), expected);
    assert_eq!(
        expected.literal(),
        "{'delta': 'keys', 'enabled': 'true', 'postimage': 'true', 'preimage': 'full', 'ttl': '60'}"
    );
}

#[test]
fn invalid_parts_are_refused() {
    let cases = [
        (
            map([("enabled", "maybe")]),
            "Invalid value for CDC option \"enabled\": maybe",
        ),
        (
            map([("preimage", "half")]),
            "Invalid value for CDC option \"preimage\": half",
        ),
        (
            map([("delta", "true")]),
            "Invalid value for CDC option \"delta\": true",
        ),
        (map([("ttl", "-1")]), "Invalid CDC option: ttl must be >= 0"),
        (map([("ttl", "99999999999")]), "Invalid CDC option: ttl too large"),
        (map([("color", "blue")]), "Invalid CDC option: color"),
    ];
    for (declared, expected) in cases {
        assert_eq!(parse(&declared).expect_err(expected).to_string(), expected);
    }
}

#[test]
fn defaults_are_shown_as_boolean() {
    let on = parse(&map([("enabled", "true")])).expect("valid");
    assert_eq!(on.literal(), "true");
    assert_eq!(CdcOptions::default().literal(), "false");
}

#[test]
fn stored_boolean_captures_nothing() {
    let read = |text: &str| -> CdcOptions {
        let options: TableOptions = serde_json::from_str(text).expect("a stored form");
        options.cdc
    };
    assert_eq!(read(r#"{"cdc":true}"#), CdcOptions::default());
    let on = CdcOptions {
        enabled: true,
        preimage: Preimage::Changed,
        since_us: 7,
        ..CdcOptions::default()
    };
    let stored = TableOptions {
        cdc: on.clone(),
        ..TableOptions::default()
    };
    assert_eq!(read(&serde_json::to_string(&stored).expect("JSON")), on);
}
