//! Storages of Medusa with full and differential backups of two nodes.

use std::fs;
use std::path::{Path, PathBuf};

use helenus_sstable::{Folder, LocalFolder};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::source::source_tests::sstable_files;
use crate::source::{FilesOf, SourceOptions, Sources};
use crate::table_name::TableName;

const ID: &str = "6b1c39500001111eaa00000000000001";
const SCHEMA: &str = "CREATE TABLE shop.users (k text, c int, v int, PRIMARY KEY (k, c)); CREATE TABLE system_auth.roles (role text PRIMARY KEY);";

/// A storage in a folder, whose manifests have the prefix `live`.
struct Storage(TempDir);

impl Storage {
    fn new() -> Storage {
        let storage = Storage(tempfile::tempdir().unwrap());
        storage.write("index/backup_index/full/manifest_one.json", b"[]");
        storage
    }

    fn path(&self, below: &str) -> PathBuf {
        self.0.path().join("live").join(below)
    }

    fn write(&self, below: &str, content: &[u8]) {
        let path = self.path(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Writes an SSTable. Returns its objects in a manifest.
    fn sstable(&self, folder: &str, generation: u64) -> Vec<Value> {
        let files = sstable_files();
        let names = files.names().unwrap().into_iter();
        names
            .map(|name| {
                let content = files.get(&name).unwrap();
                let path = format!("{folder}/{}", name.replace("-1-", &format!("-{generation}-")));
                self.write(&path, content);
                json!({"path": format!("live/{path}"), "MD5": "x", "size": content.len()})
            })
            .collect()
    }

    /// Writes the metadata of a node's backup.
    fn backup(&self, node: &str, name: &str, sections: &[(&str, Vec<Value>)]) {
        let sections = sections.iter().map(|(table, objects)| {
            let (keyspace, table) = table.split_once('/').unwrap();
            json!({"keyspace": keyspace, "columnfamily": table, "objects": objects})
        });
        let manifest = Value::from_iter(sections).to_string();
        self.write(&format!("{node}/{name}/meta/schema.cql"), SCHEMA.as_bytes());
        self.write(
            &format!("{node}/{name}/meta/tokenmap.json"),
            br#"{"one.dc": {"tokens": [1]}, "two.dc": {"tokens": [2]}}"#,
        );
        self.write(&format!("{node}/{name}/meta/manifest.json"), manifest.as_bytes());
    }

    fn find(&self, backup: &str) -> Result<Sources, String> {
        find(&[&self.path("")], backup)
    }
}

fn find(folders: &[&Path], backup: &str) -> Result<Sources, String> {
    let folders = folders
        .iter()
        .map(|path| Arc::new(LocalFolder::new(*path)) as Arc<dyn SourceFolder>);
    let options = SourceOptions {
        folders: folders.collect(),
        files: FilesOf::MedusaBackup(backup.to_owned()),
    };
    Sources::find(&options).map_err(|error| error.to_string())
}

/// Returns a storage with a full backup and two differential ones, of which the second has one file more.
fn storage() -> Storage {
    let storage = Storage::new();
    let users = format!("shop/users-{ID}");
    for node in ["one.dc", "two.dc"] {
        let mut objects = storage.sstable(&format!("{node}/full/data/{users}"), 1);
        objects.extend(storage.sstable(&format!("{node}/full/data/{users}/.by_name"), 1));
        let roles = format!("system_auth/roles-{ID}");
        let of_system = storage.sstable(&format!("{node}/full/data/{roles}"), 1);
        storage.backup(node, "full", &[(&users, objects), (&roles, of_system)]);
        let mut objects = storage.sstable(&format!("{node}/data/{users}"), 1);
        storage.backup(node, "monday", &[(&users, objects.clone())]);
        objects.extend(storage.sstable(&format!("{node}/data/{users}"), 2));
        storage.backup(node, "tuesday", &[(&users, objects)]);
    }
    storage
}

fn count(sources: &Sources) -> usize {
    assert_eq!(sources.tables.len(), 1);
    assert_eq!(sources.schemas.len(), 1);
    let files = &sources.tables[&TableName::new("shop", "users")];
    assert_eq!(files.id.unwrap().simple().to_string(), ID);
    files.open(None).unwrap().sstables.len()
}

#[test]
fn all_nodes_of_a_backup_come_together() {
    let storage = storage();
    let full = storage.find("full").unwrap();
    assert_eq!(count(&full), 2);
    let left_out: Vec<(LeftOutReason, u64)> =
        full.left_out.iter().map(|of| (of.reason, of.sstables)).collect();
    assert_eq!(
        left_out,
        [(LeftOutReason::SystemKeyspace, 2), (LeftOutReason::Index, 2)]
    );
    assert_eq!(
        count(&storage.find("monday").unwrap()),
        2,
        "not the newer file in the same folder"
    );
    assert_eq!(count(&storage.find("tuesday").unwrap()), 4);
}

#[test]
fn folder_of_a_node_is_a_source() {
    let storage = storage();
    let (one, two) = (storage.path("one.dc"), storage.path("two.dc"));
    assert_eq!(count(&find(&[&one], "tuesday").unwrap()), 2);
    assert_eq!(count(&find(&[&one, &two], "full").unwrap()), 2);
}

#[test]
fn missing_and_cut_files_are_named() {
    let storage = storage();
    let path = storage.path(&format!("two.dc/data/shop/users-{ID}/nb-1-big-Data.db"));
    let content = fs::read(&path).unwrap();
    fs::write(&path, &content[1..]).unwrap();
    let cut = storage.find("monday").unwrap_err();
    let expected = format!("{}: the file has {} bytes", path.display(), content.len() - 1);
    assert!(
        cut.contains(&expected) && cut.contains("two.dc/monday/meta/manifest.json"),
        "{cut}"
    );
    fs::remove_file(&path).unwrap();
    let missing = storage.find("tuesday").unwrap_err();
    assert!(
        missing.contains(&format!("{}: the file is missing", path.display())),
        "{missing}"
    );
    assert_eq!(count(&storage.find("full").unwrap()), 2);
}

#[test]
fn rewritten_statistics_may_have_another_size() {
    let storage = storage();
    let manifest = storage.path("one.dc/monday/meta/manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    let mut sections: Value = serde_json::from_str(&text).unwrap();
    for object in sections[0]["objects"].as_array_mut().unwrap() {
        if object["path"].as_str().unwrap().ends_with("-Statistics.db") {
            object["size"] = json!(5);
        }
    }
    fs::write(&manifest, sections.to_string()).unwrap();
    assert_eq!(count(&storage.find("monday").unwrap()), 2);
}

#[test]
fn incomplete_backups_are_refused() {
    let storage = storage();
    let unknown = storage.find("friday").unwrap_err();
    assert!(
        unknown.contains("the backups are full, monday, tuesday"),
        "{unknown}"
    );
    fs::remove_dir_all(storage.path("two.dc/monday")).unwrap();
    let lacking = storage.find("monday").unwrap_err();
    assert!(lacking.contains("lacks the nodes two.dc"), "{lacking}");
    fs::remove_file(storage.path("two.dc/full/meta/manifest.json")).unwrap();
    let begun = storage.find("full").unwrap_err();
    assert!(begun.contains("backup 'full' of two.dc has not ended"), "{begun}");
    let elsewhere = find(&[storage.0.path()], "full").unwrap_err();
    assert!(elsewhere.contains("no backups of Medusa are here"), "{elsewhere}");
}

#[test]
fn encrypted_backups_are_refused() {
    let storage = Storage::new();
    let object = json!({"path": "live/one.dc/data/ks/t-1/a", "MD5": "x", "size": 1, "source_size": 1, "source_MD5": "y"});
    storage.backup("one.dc", "b", &[("ks/t", vec![object])]);
    storage.backup("two.dc", "b", &[]);
    let refused = storage.find("b").unwrap_err();
    assert!(
        refused.contains("key_secret_base64") && refused.contains("medusa download"),
        "{refused}"
    );
}
