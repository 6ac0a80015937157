use super::*;
use crate::folder::{LocalFolder, MemoryFolder};

fn names(set: &BTreeSet<String>) -> Vec<&str> {
    set.iter().map(String::as_str).collect()
}

#[test]
fn components_are_grouped_and_missing_ones_named() {
    let mut folder = MemoryFolder::default();
    for name in [
        "nb-1-big-Data.db",
        "nb-1-big-Statistics.db",
        "nb-1-big-Index.db",
        "nb-2-big-Data.db",
        "da-3fzj_0s2f_5g8hc2a9kwfrq3mntx-bti-Statistics.db",
        "mb-1-big-Data.db",
        "mb-1-big-Index.db",
        "nb_txn_compaction_0b5d.log",
        "manifest.json",
    ] {
        folder.insert(name, vec![0_u8; 3]);
    }
    folder.insert("nb-1-big-TOC.txt", "Data.db\nStatistics.db\nTOC.txt\nIndex.db\n");
    folder.insert(
        "nb-2-big-TOC.txt",
        "Data.db\r\nCompressionInfo.db\r\nStatistics.db\r\n",
    );
    let listing = list(&folder).unwrap();
    let [complete, cut, trie] = listing.sstables.as_slice() else {
        panic!("{listing:?}")
    };
    assert!(complete.check_complete().is_ok());
    assert_eq!(complete.data_bytes, 3);
    assert_eq!(names(&cut.missing), ["CompressionInfo.db", "Statistics.db"]);
    let text = cut.check_complete().unwrap_err().to_string();
    assert!(text.contains("CompressionInfo.db, Statistics.db"), "{text}");
    assert_eq!(names(&trie.missing), ["Data.db"]);
    assert_eq!(listing.refused.len(), 1);
    assert_eq!(listing.transaction_logs, ["nb_txn_compaction_0b5d.log"]);
}

#[test]
fn local_folder_is_listed_without_its_folders() {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("snapshots")).unwrap();
    std::fs::write(place.path().join("nb-7-big-Data.db"), b"abc").unwrap();
    let listing = list(&LocalFolder::new(place.path())).unwrap();
    assert_eq!(listing.sstables.len(), 1);
    let missing = list(&LocalFolder::new(place.path().join("none"))).unwrap_err();
    assert_eq!(missing.kind, ErrorKind::Missing);
}
