use super::*;
use object_store::memory::InMemory;

fn both() -> Vec<(Meta, tempfile::TempDir)> {
    let folder = tempfile::tempdir().unwrap();
    let local: Arc<dyn ObjectStore> =
        Arc::new(object_store::local::LocalFileSystem::new_with_prefix(folder.path()).unwrap());
    let folders = crate::metadata::folders::Folders {
        root: folder.path().into(),
    };
    let inventory = Inventory::new(
        &folders,
        crate::metadata::inventory::InventoryRecord::new(),
        false,
    );
    let inventory = Arc::new(inventory);
    vec![
        (Meta::new(local, Path::default(), Some(inventory)), folder),
        (
            Meta::new(Arc::new(InMemory::new()), Path::from("prefix"), None),
            tempfile::tempdir().unwrap(),
        ),
    ]
}

#[tokio::test]
async fn documents_change_by_compare_and_set() {
    for (meta, _folder) in both() {
        assert_eq!(meta.get("schema").await.unwrap(), None);
        assert_eq!(meta.put("schema", b"one", MetaExpect::Absent).await.unwrap(), 1);
        let conflict = meta.put("schema", b"two", MetaExpect::Absent).await;
        assert!(matches!(conflict, Err(StoreError::MetaConflict(_))));
        assert_eq!(
            meta.put("schema", b"two", MetaExpect::Version(1)).await.unwrap(),
            2
        );
        let conflict = meta.put("schema", b"three", MetaExpect::Version(1)).await;
        assert!(matches!(conflict, Err(StoreError::MetaConflict(_))));
        assert_eq!(meta.put("schema", b"", MetaExpect::Any).await.unwrap(), 3);
        let doc = meta.get("schema").await.unwrap().unwrap();
        assert_eq!((doc.version, doc.content.as_ref()), (3, b"".as_slice()));
        assert_eq!(meta.list().await.unwrap(), vec!["schema"]);
        meta.delete("schema").await.unwrap();
        assert_eq!(meta.get("schema").await.unwrap(), None);
    }
}

#[tokio::test]
async fn announced_version_is_changed_without_a_read() {
    let bucket: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let meta = || Meta::new(bucket.clone(), Path::default(), None);
    let (writer, hearer, stranger) = (meta(), meta(), meta());
    for (version, content) in [(1, b"one"), (2, b"two")] {
        let written = writer.put("cluster", content, MetaExpect::Any).await.unwrap();
        assert_eq!(written, version);
    }
    assert_eq!(writer.stamp("cluster", 1), None, "it is another one by now");
    assert_eq!(stranger.stamp("cluster", 2), None);
    hearer.note_version("cluster", 2, writer.stamp("cluster", 2).unwrap());
    assert_eq!(hearer.stamp("cluster", 2), writer.stamp("cluster", 2));
    assert_eq!(
        hearer
            .put("cluster", b"three", MetaExpect::Version(2))
            .await
            .unwrap(),
        3
    );
    // A remembered version that was replaced meanwhile leads to a conflict, not to a lost update.
    let late = writer.put("cluster", b"late", MetaExpect::Version(2)).await;
    assert!(matches!(late, Err(StoreError::MetaConflict(_))));
    assert_eq!(writer.get("cluster").await.unwrap().unwrap().version, 3);
}

#[tokio::test]
async fn bad_names_are_refused() {
    for (meta, _folder) in both() {
        for name in ["", "a/b", "..", ".x", "ü"] {
            assert!(
                matches!(meta.get(name).await, Err(StoreError::InvalidConfig(_))),
                "{name}"
            );
        }
    }
}

#[test]
fn document_bytes() {
    let bytes = encode(2, b"hi");
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let sum = (crc32c(b"hi") ^ crc32c(&2u64.to_le_bytes())).to_le_bytes();
    let sum: String = sum.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(
        hex,
        format!("484c4e534d455431{}{}{sum}6869", "0200000000000000", "02000000")
    );
}

#[test]
fn damaged_documents_are_not_served() {
    let bytes = encode(2, b"content");
    assert!(decode(&Bytes::from(bytes.clone())).is_some());
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        assert!(decode(&Bytes::from(damaged)).is_none(), "byte {at}");
        assert!(
            decode(&Bytes::copy_from_slice(&bytes[..at])).is_none(),
            "cut at {at}"
        );
    }
}

#[tokio::test]
async fn stale_view_of_changed_document_is_not_accepted() {
    let store: Arc<dyn ObjectStore> = Arc::new(object_store::memory::InMemory::new());
    let [one, other] = [(); 2].map(|()| Meta::new(store.clone(), Path::default(), None));
    assert_eq!(one.put("d", b"1", MetaExpect::Absent).await.unwrap(), 1);
    assert_eq!(one.put("d", b"2", MetaExpect::Version(1)).await.unwrap(), 2);
    assert_eq!(other.put("d", b"3", MetaExpect::Version(2)).await.unwrap(), 3);
    for _ in 0..2 {
        let late = one.put("d", b"late", MetaExpect::Version(2)).await;
        assert!(matches!(late, Err(StoreError::MetaConflict(_))));
    }
    assert_eq!(one.get("d").await.unwrap().unwrap().content.as_ref(), b"3");
    assert_eq!(one.put("d", b"4", MetaExpect::Version(3)).await.unwrap(), 4);
    assert_eq!(other.get("d").await.unwrap().unwrap().content.as_ref(), b"4");
}
