use super::*;

fn sample() -> InventoryRecord {
    InventoryRecord {
        log_first: 3,
        flushed: BTreeMap::from([(1, 70), (2, 0)]),
        documents: BTreeSet::from(["schema".to_owned()]),
        checksum: None,
    }
}

#[test]
fn inventory_bytes() {
    let bytes = checksummed_json::encode(sample());
    assert_eq!(
        String::from_utf8(bytes.clone()).unwrap(),
        r#"{
  "log_first": 3,
  "flushed": {
    "1": 70,
    "2": 0
  },
  "documents": [
    "schema"
  ],
  "checksum": "730589aa"
}
"#
    );
    assert_eq!(checksummed_json::decode(&bytes, true), Ok(sample()));
}

#[test]
fn any_flipped_bit_that_changes_something_is_noticed() {
    let bytes = checksummed_json::encode(sample());
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            if let Ok(read) = checksummed_json::decode::<InventoryRecord>(&damaged, true) {
                assert_eq!(read, sample(), "byte {at}, bit {bit}");
            }
        }
    }
}

#[test]
fn what_was_there_must_be_there() {
    let folder = tempfile::tempdir().unwrap();
    let folders = Folders {
        root: folder.path().into(),
    };
    let inventory = Inventory::new(&folders, InventoryRecord::new(), false);
    inventory.change(|contents| *contents = sample()).unwrap();
    let read = Inventory::load(&folders, false).unwrap();
    assert_eq!(read.contents(), sample());
    let text = read.check_documents(&folders).unwrap_err().to_string();
    assert!(text.contains("meta/schema"), "{text}");
    assert!(read.check_flushed(&folders, 1, 70).is_ok());
    let text = read.check_flushed(&folders, 1, 69).unwrap_err().to_string();
    assert!(text.contains("tablets/1/manifest"), "{text}");
    std::fs::remove_file(folders.inventory()).unwrap();
    let text = Inventory::load(&folders, false).unwrap_err().to_string();
    assert!(text.contains("INVENTORY: the file is missing"), "{text}");
}
