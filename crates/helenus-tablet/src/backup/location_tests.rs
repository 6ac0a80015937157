use super::*;

fn place(folder: &FilePath) -> BackupLocation {
    BackupLocation::create(folder.to_str().unwrap()).unwrap()
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
        refused.contains(&own.to_string()) && refused.contains("take another place"),
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
    assert!(BackupLocation::open(folder.path().join("none").to_str().unwrap()).is_err());
    let url = StoreUrl::File(folder.path().to_owned());
    refuse_unless_empty(&url).await.unwrap_err();
    refuse_unless_empty(&StoreUrl::File(folder.path().join("none")))
        .await
        .unwrap();
}
