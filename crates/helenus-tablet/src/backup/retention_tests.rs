use std::collections::BTreeMap;

use uuid::Uuid;

use super::*;
use crate::backup::document::{BackupContent, BackupFile};

const HOUR_MS: i64 = 3_600_000;

fn backup(hour: i64, files: &[&str]) -> BackupDocument {
    let content = BackupContent {
        version: String::new(),
        taken_ms: hour * HOUR_MS,
        clock_us: 0,
        settings: BTreeMap::new(),
        header_tables: Vec::new(),
        schema: serde_json::Value::Null,
        history: None,
    };
    let file = |path: &&str| BackupFile {
        path: format!("tablets/0/compacted/{path}.sst"),
        bytes: 1,
        sha256: String::new(),
    };
    let files = files.iter().map(file).collect();
    BackupDocument::new(&hour.to_string(), Uuid::nil(), content, &[], files)
}

fn gone(keep: Keep, hours: &[i64], now: i64) -> usize {
    let documents: Vec<_> = hours.iter().map(|hour| backup(*hour, &[])).collect();
    keep.divide(&documents, now * HOUR_MS).0.len()
}

#[test]
fn the_newest_stay_and_the_last_one_always() {
    let count = |count| Keep {
        count: Some(count),
        age: None,
    };
    assert_eq!(gone(count(2), &[1, 2, 3, 4], 4), 2);
    assert_eq!(gone(count(9), &[1, 2, 3, 4], 4), 0);
    assert_eq!(gone(count(0), &[1, 2, 3, 4], 4), 3);
    assert_eq!(gone(count(0), &[], 4), 0);
    let age = |hours: u64| Keep {
        count: None,
        age: Some(Duration::from_secs(3600 * hours)),
    };
    assert_eq!(gone(age(2), &[1, 2, 3, 4], 4), 1, "one of exactly that age stays");
    assert_eq!(gone(age(2), &[1, 2], 9), 1);
    let both = Keep {
        count: Some(2),
        age: Some(Duration::from_secs(3600)),
    };
    assert_eq!(gone(both, &[1, 2, 3, 4], 4), 2);
    assert_eq!(gone(both, &[1, 2, 3, 4], 5), 3);
}

#[tokio::test]
async fn files_go_with_the_last_backup_that_needs_them() {
    let folder = tempfile::tempdir().unwrap();
    let location = BackupLocation::create(folder.path().to_str().unwrap(), None).unwrap();
    for name in ["a", "b", "c", "left"] {
        let path = Path::from(format!("tablets/0/compacted/{name}.sst"));
        location.write(&path, b"x".to_vec()).await.unwrap();
    }
    for document in [backup(1, &["a", "b"]), backup(2, &["b"]), backup(3, &["b", "c"])] {
        location.put(&document).await.unwrap();
    }
    let names = |files: hashbrown::HashMap<String, u64>| {
        let mut names: Vec<String> = files.into_keys().collect();
        names.sort();
        names
    };
    let untouched = retain(&location, Keep::default(), 4 * HOUR_MS).await.unwrap();
    assert_eq!(untouched, Removed::default());
    let keep = Keep {
        count: Some(2),
        age: None,
    };
    let removed = retain(&location, keep, 4 * HOUR_MS).await.unwrap();
    assert_eq!(
        (removed.backups, removed.files, removed.bytes),
        (vec!["1".to_owned()], 2, 2)
    );
    assert_eq!(
        names(location.files().await.unwrap()),
        ["tablets/0/compacted/b.sst", "tablets/0/compacted/c.sst"]
    );
    // An unreadable document may need any file, so nothing may be removed.
    location
        .write(&Path::from("backups/4.json"), b"{".to_vec())
        .await
        .unwrap();
    let keep = Keep {
        count: Some(1),
        age: None,
    };
    retain(&location, keep, 4 * HOUR_MS).await.unwrap_err();
    assert_eq!(location.list().await.unwrap().documents.len(), 2);
    assert_eq!(location.files().await.unwrap().len(), 2);
}
