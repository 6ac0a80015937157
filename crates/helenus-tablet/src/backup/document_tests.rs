use serde_json::json;

use super::*;

fn document() -> BackupDocument {
    let content = BackupContent {
        version: "0.1.0".to_owned(),
        taken_ms: 1_795_826_546_000,
        clock_us: 1_795_826_546_000_123,
        settings: BTreeMap::from([("tablet_count".to_owned(), "2".to_owned())]),
        header_tables: vec![3],
        // Encoding must preserve both the order of fields and the digits of numbers.
        schema: serde_json::from_str(r#"{"z":1,"a":{"chance":0.10}}"#).unwrap(),
        history: None,
    };
    let tablet = PinnedTablet {
        id: 0,
        tokens: TokenRange {
            first: i64::MIN,
            last: i64::MAX,
        },
        manifest: 7,
        checkpoint: Uuid::from_u128(5),
    };
    let file = |path: &str| BackupFile {
        path: path.to_owned(),
        bytes: 9,
        sha256: "15e2".to_owned(),
    };
    let files = vec![file("tablets/0/b"), file("tablets/0/a"), file("tablets/0/b")];
    BackupDocument::new("monday", Uuid::nil(), content, &[tablet], files)
}

#[test]
fn a_document_is_read_as_it_was_written_and_has_each_file_once() {
    let written = document();
    let bytes = written.encode();
    let read = BackupDocument::decode(&bytes).unwrap();
    assert_eq!(read, written);
    let paths: Vec<&str> = read.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["tablets/0/a", "tablets/0/b"]);
    assert_eq!(read.bytes(), 18);
    let fields: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(
        fields["tablets"],
        json!([{
            "id": 0,
            "tokens": {"first": i64::MIN, "last": i64::MAX},
            "manifest": 7,
            "checkpoint": "00000000-0000-0000-0000-000000000005",
        }])
    );
    assert_eq!(
        fields["taken_ms"],
        json!(1_795_826_546_000_i64),
        "the content is not apart"
    );
}

#[test]
fn a_changed_document_is_refused() {
    let text = String::from_utf8(document().encode()).unwrap();
    let changed = text.replacen("\"manifest\": 7", "\"manifest\": 8", 1);
    assert_ne!(changed, text);
    let refused = BackupDocument::decode(changed.as_bytes()).unwrap_err();
    assert!(refused.contains("does not match its checksum"), "{refused}");
    let newer = text.replacen("\"format\": 1", "\"format\": 2", 1);
    let refused = BackupDocument::decode(newer.as_bytes()).unwrap_err();
    assert!(refused.contains("use a newer helenus"), "{refused}");
}

#[test]
fn names_are_times_or_plain_words() {
    assert_eq!(backup_name(1_795_826_546_000), "20261128T004226Z");
    for good in ["20261128T004226Z", "monday", "a.b-c_d"] {
        check_backup_name(good).unwrap();
    }
    for bad in ["", ".hidden", "a/b", "..", "a b", &"x".repeat(129)] {
        check_backup_name(bad).unwrap_err();
    }
}
