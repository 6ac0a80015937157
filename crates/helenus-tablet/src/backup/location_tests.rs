use super::*;

fn place(folder: &FilePath) -> BackupLocation {
    BackupLocation::create(folder.to_str().unwrap(), None).unwrap()
}

#[tokio::test]
async fn a_place_has_the_backups_of_one_store() {
    let folder = tempfile::tempdir().unwrap();
    let location = place(&folder.path().join("new"));
    assert_eq!(location.store_id().await.unwrap(), None);
    let (own, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
    location.claim(own).await.unwrap();
    location.claim(own).await.unwrap();
    assert_eq!(location.store_id().await.unwrap(), Some(own));
    let refused = location.claim(other).await.unwrap_err().to_string();
    assert!(
        refused.contains(&own.to_string()) && refused.contains("use another place"),
        "{refused}"
    );
}

#[tokio::test]
async fn a_store_is_no_place_for_backups() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("FORMAT"), "{}").unwrap();
    let refused = place(folder.path())
        .claim(Uuid::nil())
        .await
        .unwrap_err()
        .to_string();
    assert!(refused.contains("has FORMAT"), "{refused}");
    assert!(BackupLocation::open(folder.path().join("none").to_str().unwrap(), None).is_err());
    let url = StoreUrl::File(folder.path().to_owned());
    refuse_unless_empty(&url).await.unwrap_err();
    refuse_unless_empty(&StoreUrl::File(folder.path().join("none")))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_place_with_a_key_hides_what_lies_there_and_takes_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let url = folder.path().to_str().unwrap();
    let key = |digit: &str| BackupKey::parse(&digit.repeat(64));
    let own = BackupLocation::create(url, key("1")).unwrap();
    own.claim(Uuid::nil()).await.unwrap();
    // Large enough for several parts.
    let (path, content) = (Path::from("tablets/0/compacted/1.sst"), vec![7; 20 << 20]);
    let mut upload = own.objects.put_multipart(&path).await.unwrap();
    for part in content.chunks(8 << 20) {
        upload.put_part(part.to_vec().into()).await.unwrap();
    }
    upload.complete().await.unwrap();
    let stored = std::fs::read(folder.path().join(path.as_ref())).unwrap();
    assert!(stored.len() > content.len() && !stored.windows(64).any(|part| part == &content[..64]));
    assert_eq!(own.read(&path).await.unwrap().unwrap(), content);
    assert_eq!(own.files().await.unwrap()[path.as_ref()], content.len() as u64);
    let range = (9 << 20) + 5..(9 << 20) + 9;
    assert_eq!(own.objects.get_range(&path, range).await.unwrap(), vec![7; 4]);
    for other in [None, key("2")] {
        let refused = BackupLocation::open(url, other)
            .unwrap()
            .list()
            .await
            .unwrap_err();
        assert!(refused.to_string().contains("are encrypted"), "{refused}");
    }
    own.list().await.unwrap();
}
