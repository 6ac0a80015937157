use object_store::memory::InMemory;

use super::*;

const TABLE: &str = "tablets/0/compacted/01A.sst";
const MANIFEST: &str = "tablets/0/manifest/00000000000000000007.manifest";

async fn copier(folder: &tempfile::TempDir, content: &[u8]) -> Copier {
    let from: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    for path in [TABLE, MANIFEST] {
        from.put(&Path::from(path), content.to_vec().into())
            .await
            .unwrap();
    }
    let location = BackupLocation::create(folder.path().to_str().unwrap(), None).unwrap();
    Copier {
        from,
        known: HashMap::new(),
        there: location.files().await.unwrap(),
        location,
        background: tokio::runtime::Handle::current(),
    }
}

fn know(copier: &mut Copier, file: &BackupFile) {
    copier.known.insert(file.path.clone(), file.clone());
}

#[tokio::test]
async fn an_sstable_is_copied_once_and_again_if_it_was_cut() {
    let folder = tempfile::tempdir().unwrap();
    // Large enough to be uploaded in several parts.
    let content = vec![7; 20 << 20];
    let table = Path::from(TABLE);
    let copied = copier(&folder, &content).await.copy_table(&table).await.unwrap();
    assert!(!copied.is_reused);
    assert_eq!(
        (copied.file.bytes, &copied.file.sha256),
        (20 << 20, &sha256(&content))
    );
    let path = folder.path().join(TABLE);
    assert_eq!(std::fs::read(&path).unwrap(), content);
    // No document lists the file, as after an interrupted backup.
    let again = copier(&folder, &content).await.copy_table(&table).await.unwrap();
    assert!(again.is_reused);
    assert_eq!(again.file, copied.file);
    let mut knowing = copier(&folder, b"not read").await;
    know(&mut knowing, &copied.file);
    assert!(knowing.copy_table(&table).await.unwrap().is_reused);
    std::fs::write(&path, &content[1..]).unwrap();
    let mut knowing = copier(&folder, &content).await;
    know(&mut knowing, &copied.file);
    assert!(!knowing.copy_table(&table).await.unwrap().is_reused);
    assert_eq!(std::fs::read(&path).unwrap(), content);
}

#[tokio::test]
async fn another_manifest_of_the_same_number_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let manifest = Path::from(MANIFEST);
    let first = copier(&folder, b"then")
        .await
        .copy_document(&manifest)
        .await
        .unwrap();
    assert!(!first.is_reused);
    let mut same = copier(&folder, b"then").await;
    know(&mut same, &first.file);
    assert!(same.copy_document(&manifest).await.unwrap().is_reused);
    let mut other = copier(&folder, b"else").await;
    know(&mut other, &first.file);
    let refused = other.copy_document(&manifest).await.err().unwrap().to_string();
    assert!(refused.contains("restored from a copy"), "{refused}");
    // A manifest that no backup lists was left by an interrupted backup, and is overwritten.
    let copied = copier(&folder, b"else")
        .await
        .copy_document(&manifest)
        .await
        .unwrap();
    assert!(!copied.is_reused);
    assert_eq!(std::fs::read(folder.path().join(MANIFEST)).unwrap(), b"else");
}
