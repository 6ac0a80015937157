use super::*;

const TEXT: &str = "
# of the laptop
[default]
aws_access_key_id = AK1
aws_secret_access_key=s1
region = eu-central-1
s3 =
  endpoint_url = http://nested.example

[profile other]
aws_access_key_id = AK2
";

#[test]
fn only_the_profile_is_read() {
    let profile = Profile(section(TEXT, "default"));
    assert_eq!(profile.get("aws_access_key_id").as_deref(), Some("AK1"));
    assert_eq!(profile.get("aws_secret_access_key").as_deref(), Some("s1"));
    assert_eq!(profile.get("region").as_deref(), Some("eu-central-1"));
    assert_eq!(profile.get("endpoint_url"), None);
    let other = Profile(section(TEXT, "other"));
    assert_eq!(other.get("aws_access_key_id").as_deref(), Some("AK2"));
    assert!(other.credential().is_none(), "half a credential");
}

#[tokio::test]
async fn replaced_files_are_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("credentials");
    let write = |key: &str| {
        let text = format!("[default]\naws_access_key_id={key}\naws_secret_access_key=s\n");
        std::fs::write(&path, text).unwrap();
    };
    write("old");
    let source = CredentialFiles {
        name: "default".into(),
        config: None,
        credentials: Some(path.clone()),
    };
    let files = Files {
        read: Mutex::new(Read {
            changed: source.changed(),
            credential: Arc::new(source.read().credential().unwrap()),
        }),
        source,
    };
    assert_eq!(files.get_credential().await.unwrap().key_id, "old");
    write("new");
    let later = SystemTime::now() + std::time::Duration::from_secs(5);
    std::fs::File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_modified(later)
        .unwrap();
    assert_eq!(files.get_credential().await.unwrap().key_id, "new");
}
