//! Folders and files of a bucket in memory.

use std::io;

use bytes::Bytes;
use helenus_import::source::SourceFolder;
use helenus_sstable::Folder;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStoreExt, PutPayload};

use super::*;

/// Returns the folder of a bucket with these objects.
fn bucket(objects: &[(&str, Bytes)]) -> BucketFolder {
    let runtime = runtime().unwrap();
    let store = Arc::new(InMemory::new());
    for (path, content) in objects {
        let path = Path::from(*path);
        let put = store.put(&path, PutPayload::from_bytes(content.clone()));
        runtime.block_on(put).unwrap();
    }
    let url = Url::parse("s3://bucket/prefix/").unwrap();
    folder_of(store, &url, &runtime, &Interrupt::default())
}

fn pattern(len: usize) -> Bytes {
    (0..len).map(|position| (position * 31 / 7) as u8).collect()
}

#[test]
fn folders_are_listed_by_name() {
    let folder = bucket(&[
        ("schema.cql", Bytes::from_static(b"text")),
        ("ks/t-1/nb-1-big-Data.db", Bytes::from_static(b"1")),
        ("ks/t-1/.index/nb-1-big-Data.db", Bytes::from_static(b"12")),
    ]);
    assert_eq!(folder.names().unwrap(), ["schema.cql"]);
    assert_eq!(folder.folders().unwrap(), ["ks"]);
    let table = folder.folder("ks").folder("t-1");
    assert_eq!(table.names().unwrap(), ["nb-1-big-Data.db"]);
    assert_eq!(table.folders().unwrap(), [".index"]);
    assert_eq!(table.path_names(), ["bucket", "prefix", "ks", "t-1"]);
    assert_eq!(table.display_name("x"), "s3://bucket/prefix/ks/t-1/x");
    assert_eq!(table.folder(".index").open("nb-1-big-Data.db").unwrap().size(), 2);
    let absent = table.open("nb-2-big-Data.db").err().unwrap();
    assert_eq!(absent.kind(), io::ErrorKind::NotFound);
    assert!(folder.folder("nowhere").names().unwrap().is_empty());
}

#[test]
fn files_are_read_forward_and_by_jumps() {
    let content = pattern(3 << 20);
    let folder = bucket(&[("file", content.clone())]);
    let mut file = folder.open("file").unwrap();
    assert_eq!(file.size(), content.len() as u64);
    file.read_ahead();
    let mut position = 0;
    for len in [1, 100_000, 200_000, 700_000, 1_000_000, 1_000_000]
        .into_iter()
        .cycle()
    {
        let len = len.min(content.len() - position);
        if len == 0 {
            break;
        }
        let mut buffer = vec![0; len];
        file.read_exact_at(position as u64, &mut buffer).unwrap();
        assert_eq!(buffer, content[position..position + len]);
        position += len;
    }
    for offset in [2_900_000, 5, 1_000_000] {
        let mut buffer = [0; 1000];
        file.read_exact_at(offset as u64, &mut buffer).unwrap();
        assert_eq!(buffer, content[offset..offset + 1000]);
    }
    let beyond = file.read_exact_at(content.len() as u64 - 1, &mut [0; 2]);
    assert_eq!(beyond.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
}

#[test]
fn empty_file_has_no_bytes() {
    let folder = bucket(&[("file", Bytes::new())]);
    let mut file = folder.open("file").unwrap();
    file.read_ahead();
    file.read_exact_at(0, &mut []).unwrap();
    let beyond = file.read_exact_at(0, &mut [0]).unwrap_err();
    assert_eq!(beyond.kind(), io::ErrorKind::UnexpectedEof);
}
