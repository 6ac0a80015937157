use std::fs;
use std::path::Path;

use helenus_sstable::test_writer::TestTable;
use helenus_sstable::{Event, Folder, LocalFolder, MemoryFolder, Partition, Version};
use tempfile::TempDir;

use super::*;

/// Ids as time UUIDs; the second is the later one.
const OLD: &str = "5a1c395000014110aa00000000000001";
const OLD_V1: &str = "5a1c39500001111eaa00000000000001";
const NEW_V1: &str = "6b1c39500001111eaa00000000000001";

/// Returns the files of an SSTable with one empty partition.
pub(super) fn sstable_files() -> MemoryFolder {
    let events = [
        Event::Partition(Partition {
            key: "k".into(),
            deletion: None,
        }),
        Event::PartitionEnd,
    ];
    TestTable::new(Version::Nb).folder(&events)
}

fn put_sstable(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    let files = sstable_files();
    for name in files.names().unwrap() {
        fs::write(folder.join(&name), files.get(&name).unwrap()).unwrap();
    }
}

fn put_schema(folder: &Path, table: &str) {
    fs::create_dir_all(folder).unwrap();
    let text = format!("CREATE TABLE IF NOT EXISTS {table} (k text, c int, v int, PRIMARY KEY (k, c));");
    fs::write(folder.join("schema.cql"), text).unwrap();
}

fn find(folders: &[&Path], snapshot: Option<&str>) -> Result<Sources, String> {
    let folders = folders
        .iter()
        .map(|path| Arc::new(LocalFolder::new(*path)) as Arc<dyn SourceFolder>);
    let options = SourceOptions {
        folders: folders.collect(),
        files: snapshot.map_or(FilesOf::Live, |tag| FilesOf::Snapshot(tag.to_owned())),
    };
    Sources::find(&options).map_err(|error| error.to_string())
}

fn counts(sources: &Sources) -> Vec<(String, usize)> {
    let tables = sources.tables.iter();
    tables
        .map(|(name, files)| (name.to_string(), files.sstables.len()))
        .collect()
}

fn two_nodes() -> (TempDir, TempDir) {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for node in [&one, &two] {
        let table = node.path().join(format!("shop/users-{NEW_V1}"));
        put_sstable(&table);
        put_sstable(&table.join("snapshots/monday"));
        put_schema(&table.join("snapshots/monday"), "shop.users");
        put_sstable(&table.join("backups"));
    }
    (one, two)
}

#[test]
fn data_folders_of_several_nodes_come_together() {
    let (one, two) = two_nodes();
    let only = one.path().join(format!("shop/orders-{NEW_V1}"));
    put_sstable(&only);
    let sources = find(&[one.path(), two.path()], None).unwrap();
    assert_eq!(
        counts(&sources),
        [("shop.orders".to_owned(), 1), ("shop.users".to_owned(), 2)]
    );
    assert!(sources.schemas.is_empty());
    let opened = sources.tables[&TableName::new("shop", "users")]
        .open(None)
        .unwrap();
    assert_eq!((opened.sstables.len(), opened.older), (2, 0));
}

#[test]
fn snapshot_has_files_and_one_schema() {
    let (one, two) = two_nodes();
    put_sstable(&one.path().join(format!("shop/orders-{NEW_V1}")));
    let sources = find(&[one.path(), two.path()], Some("monday")).unwrap();
    assert_eq!(counts(&sources), [("shop.users".to_owned(), 2)]);
    assert_eq!(sources.schemas.len(), 1, "equal files count once");
    let missing = find(&[one.path()], Some("tuesday")).unwrap_err();
    assert!(
        missing.contains("none of 2 tables has the snapshot 'tuesday'"),
        "{missing}"
    );
}

#[test]
fn folder_of_a_keyspace_is_a_source() {
    let (one, _two) = two_nodes();
    let sources = find(&[&one.path().join("shop")], None).unwrap();
    assert_eq!(counts(&sources), [("shop.users".to_owned(), 1)]);
}

#[test]
fn copies_have_the_name_of_their_schema() {
    let root = tempfile::tempdir().unwrap();
    let copy = root.path().join("copy");
    put_sstable(&copy);
    let unknown = find(&[&copy], None).unwrap_err();
    assert!(unknown.contains("schema.cql"), "{unknown}");
    put_schema(&copy, "ks.\"T\"");
    assert_eq!(
        counts(&find(&[&copy], None).unwrap()),
        [("ks.\"T\"".to_owned(), 1)]
    );
    // One level down, by their own schema or by that above them.
    let all = tempfile::tempdir().unwrap();
    put_sstable(&all.path().join("a"));
    put_schema(&all.path().join("a"), "ks.one");
    put_sstable(&all.path().join("two"));
    fs::write(
        all.path().join("schema.cql"),
        "CREATE TABLE ks.two (k int PRIMARY KEY); CREATE TABLE ks.three (k int PRIMARY KEY);",
    )
    .unwrap();
    put_sstable(&all.path().join("ks.four"));
    let names: Vec<String> = counts(&find(&[all.path()], None).unwrap())
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names, ["ks.four", "ks.one", "ks.two"]);
}

#[test]
fn system_keyspaces_and_indexes_are_left_out() {
    let (one, _two) = two_nodes();
    put_sstable(&one.path().join(format!("system_schema/tables-{NEW_V1}")));
    put_sstable(&one.path().join(format!("shop/users-{NEW_V1}/.by_name")));
    let mut sources = find(&[one.path()], None).unwrap();
    sources.leave_out_view(&TableName::new("shop", "users"));
    let found: Vec<(LeftOutReason, &str, u64)> = sources
        .left_out
        .iter()
        .map(|of| (of.reason, of.what.as_str(), of.sstables))
        .collect();
    assert_eq!(
        found,
        [
            (LeftOutReason::SystemKeyspace, "system_schema", 1),
            (LeftOutReason::Index, "by_name of shop.users", 1),
            (LeftOutReason::View, "shop.users", 1),
        ]
    );
    assert!(sources.tables.is_empty());
}

#[test]
fn newest_generation_is_read() {
    let node = tempfile::tempdir().unwrap();
    put_sstable(&node.path().join(format!("ks/t-{OLD_V1}")));
    put_sstable(&node.path().join(format!("ks/t-{NEW_V1}")));
    let sources = find(&[node.path()], None).unwrap();
    let files = &sources.tables[&TableName::new("ks", "t")];
    assert_eq!(files.id.unwrap().simple().to_string(), NEW_V1);
    assert_eq!(files.sstables.len(), 1);
    assert_eq!(sources.left_out[0].reason, LeftOutReason::OlderGeneration);
    // Ids that aren't times don't say which is the newest.
    put_sstable(&node.path().join(format!("ks/t-{OLD}")));
    let unclear = find(&[node.path()], None).unwrap_err();
    assert!(
        unclear.contains("several generations") && unclear.contains(OLD),
        "{unclear}"
    );
}

#[test]
fn incomplete_and_unfinished_files_are_refused() {
    let (one, _two) = two_nodes();
    let table = one.path().join(format!("shop/users-{NEW_V1}"));
    fs::write(table.join("nb-7-big-Data.db.tmp"), "").unwrap();
    assert_eq!(counts(&find(&[one.path()], None).unwrap()).len(), 1);
    fs::write(table.join("nb_txn_compaction_1.log"), "").unwrap();
    let unfinished = find(&[one.path()], None).unwrap_err();
    assert!(unfinished.contains("nb_txn_compaction_1.log"), "{unfinished}");
    fs::remove_file(table.join("nb_txn_compaction_1.log")).unwrap();
    fs::remove_file(table.join("nb-1-big-Statistics.db")).unwrap();
    let incomplete = find(&[one.path()], None).unwrap_err();
    assert!(
        incomplete.contains("nb-1-big") && incomplete.contains("Statistics.db"),
        "{incomplete}"
    );
}

#[test]
fn folders_without_tables_are_refused() {
    let empty = tempfile::tempdir().unwrap();
    fs::create_dir(empty.path().join("commitlog")).unwrap();
    assert!(
        find(&[empty.path()], None)
            .unwrap_err()
            .contains("no tables are here")
    );
    assert!(
        find(&[Path::new("/nowhere/at/all")], None)
            .unwrap_err()
            .contains("/nowhere/at/all")
    );
}
