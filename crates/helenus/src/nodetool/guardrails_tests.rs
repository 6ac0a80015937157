use super::{Category, Entry, entries, expanded, unknown};

fn settings() -> Vec<(String, String)> {
    let settings = [
        ("tables_warn_threshold", "-1"),
        ("tables_fail_threshold", "5"),
        ("collection_size_warn_threshold", "null"),
        ("collection_size_fail_threshold", "1MiB"),
        ("group_by_enabled", "true"),
        ("zero_ttl_on_twcs_warned", "false"),
        ("table_properties_warned", "[]"),
    ];
    settings
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec()
}

fn entry(name: &str) -> Entry {
    let mut entries = entries(&settings()).into_iter();
    entries.find(|entry| entry.name == name).expect("a guardrail")
}

fn set(name: &str, words: &[&str]) -> Result<Vec<(String, String)>, String> {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    entry(name).settings(&words).map_err(|error| error.to_string())
}

fn setting(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

#[test]
fn thresholds_are_pairs_between_flags_and_values() {
    let shown: Vec<(String, String)> = entries(&settings())
        .into_iter()
        .map(|entry| (entry.name.clone(), entry.value()))
        .collect();
    assert_eq!(
        shown,
        [
            setting("group_by_enabled", "true"),
            setting("zero_ttl_on_twcs_warned", "false"),
            setting("collection_size_threshold", "[1MiB, null]"),
            setting("tables_threshold", "[5, -1]"),
            setting("table_properties_warned", "[]"),
        ]
    );
}

#[test]
fn expanded_thresholds_have_their_own_names() {
    let names: Vec<String> = expanded(&settings())
        .into_iter()
        .filter(|entry| entry.category == Category::Thresholds)
        .map(|entry| entry.name)
        .collect();
    assert_eq!(
        names,
        [
            "collection_size_fail_threshold",
            "collection_size_warn_threshold",
            "tables_fail_threshold",
            "tables_warn_threshold",
        ]
    );
}

#[test]
fn words_become_settings() {
    assert_eq!(
        set("tables_threshold", &["10", "-1"]),
        Ok(vec![
            setting("tables_fail_threshold", "10"),
            setting("tables_warn_threshold", "-1"),
        ])
    );
    assert_eq!(
        set("group_by_enabled", &["false"]),
        Ok(vec![setting("group_by_enabled", "false")])
    );
    for words in [&["comment", "cdc"][..], &["comment,cdc"]] {
        let expected = vec![setting("table_properties_warned", "comment,cdc")];
        assert_eq!(set("table_properties_warned", words), Ok(expected));
    }
    for none in ["null", "[]"] {
        let expected = vec![setting("table_properties_warned", "")];
        assert_eq!(set("table_properties_warned", &[none]), Ok(expected));
    }
}

#[test]
fn wrong_words_are_refused_in_cassandras() {
    assert_eq!(
        set("tables_threshold", &["10"]),
        Err("tables_threshold is expecting 2 argument values. Getting 1 instead.".to_owned())
    );
    let refused = set("group_by_enabled", &["maybe"]).expect_err("no boolean");
    assert!(
        refused.ends_with("Use 'true' or 'false' values for booleans"),
        "{refused}"
    );
    assert_eq!(unknown("nonsense").to_string(), "Guardrail nonsense not found.");
    let why = unknown("intersect_filtering_query_enabled").to_string();
    assert!(why.contains("one owner"), "{why}");
}
