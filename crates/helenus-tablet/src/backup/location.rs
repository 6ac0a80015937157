//! The location of backups: a folder or a bucket with the backups of one store.

use std::path::Path as FilePath;
use std::sync::Arc;

use futures::TryStreamExt;
use hashbrown::HashMap;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutPayload};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::document::{BackupDocument, FORMAT, check_format};
use super::encrypted::EncryptedObjects;
use super::key::BackupKey;
use crate::boxed;
use crate::bucket::availability::may_pass;
use crate::bucket::connection::{FORMAT_NAME, plain_client};
use crate::config::StoreUrl;
use crate::disk::checksummed_json::{self, ChecksummedDocument};
use crate::error::{StoreError, chain};
use crate::history;
use crate::metadata::folders::Folders;
use crate::store::unfinished_batches;

const MARKER: &str = "helenus-backup.json";
const DOCUMENTS: &str = "backups";
const ENDING: &str = ".json";
/// The folder of the files of tablets.
pub(super) const TABLETS: &str = "tablets";
/// Beginning of the names of probe objects, which only show that the location can be written.
const CHECK: &str = "helenus-backup.check";

/// Marker document that names the store whose backups are in a location.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Marker {
    format: u32,
    store_id: Uuid,
    /// Identifies the key of the location ([`BackupKey::check`]). `None` if the backups are not encrypted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key_check: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    checksum: Option<String>,
}

impl ChecksummedDocument for Marker {
    fn checksum(&mut self) -> &mut Option<String> {
        &mut self.checksum
    }
}

/// A location of backups.
#[derive(Clone, Debug)]
pub struct BackupLocation {
    url: StoreUrl,
    /// Documents and files in plain form, even if the location is encrypted.
    pub(super) objects: Arc<dyn ObjectStore>,
    /// The objects as stored, without decryption.
    pub(super) plain: Arc<dyn ObjectStore>,
    key: Option<BackupKey>,
}

/// The backups in a location.
#[derive(Debug, Default)]
pub struct Listed {
    /// Documents of the readable backups, from old to new.
    pub documents: Vec<BackupDocument>,
    /// Paths of unreadable documents, each with the reason.
    pub unreadable: Vec<(String, String)>,
}

impl BackupLocation {
    /// Returns the location of a URL for writing. A missing folder is created. With a key, all backups there are encrypted.
    ///
    /// # Errors
    /// The URL is invalid, or the folder can't be created.
    pub fn create(url: &str, key: Option<BackupKey>) -> Result<BackupLocation, StoreError> {
        let url = parse(url)?;
        if let StoreUrl::File(folder) = &url {
            std::fs::create_dir_all(folder)
                .map_err(|error| StoreError::io("cannot create", folder, &error))?;
        }
        BackupLocation::connect(url, key)
    }

    /// Returns the location of a URL for reading.
    ///
    /// # Errors
    /// The URL is invalid, or there is no such folder.
    pub fn open(url: &str, key: Option<BackupKey>) -> Result<BackupLocation, StoreError> {
        BackupLocation::connect(parse(url)?, key)
    }

    fn connect(url: StoreUrl, key: Option<BackupKey>) -> Result<BackupLocation, StoreError> {
        let plain = match &url {
            StoreUrl::File(folder) => files(folder)?,
            StoreUrl::Remote(url) => plain_client("the location of backups", url)?,
        };
        let objects: Arc<dyn ObjectStore> = match &key {
            Some(key) => Arc::new(EncryptedObjects::new(plain.clone(), key.clone())),
            None => plain.clone(),
        };
        Ok(BackupLocation {
            url,
            objects,
            plain,
            key,
        })
    }

    /// Returns the id of the store whose backups are in this location. `None` if the location is new.
    ///
    /// # Errors
    /// [`StoreError::InvalidConfig`] if the backups there are encrypted with another key, or not encrypted although a key is given. Other
    /// errors if the location can't be read, the marker is damaged, or a newer binary wrote it.
    #[boxed]
    pub async fn store_id(&self) -> Result<Option<Uuid>, StoreError> {
        let Some(bytes) = self.read_in(&self.plain, &Path::from(MARKER)).await? else {
            return Ok(None);
        };
        let marker = check_format(&bytes).and_then(|()| checksummed_json::decode::<Marker>(&bytes, true));
        match marker {
            Ok(marker) => {
                self.check_key(marker.key_check.as_deref())?;
                Ok(Some(marker.store_id))
            }
            Err(detail) => Err(StoreError::Corrupt {
                file: format!("{self}/{MARKER}"),
                detail,
            }),
        }
    }

    /// Checks that the given key is the one of the location.
    fn check_key(&self, check: Option<&str>) -> Result<(), StoreError> {
        let own = self.key.as_ref().map(BackupKey::check);
        let why = match (check, own.as_deref()) {
            (None, None) => return Ok(()),
            (Some(check), Some(own)) if check == own => return Ok(()),
            (Some(_), None) => "the backups there are encrypted: name the file with their key",
            (None, Some(_)) => "the backups there are not encrypted: leave the key out, or use another place",
            (Some(_), Some(_)) => "the backups there are encrypted with another key",
        };
        Err(StoreError::InvalidConfig(format!("{self}: {why}")))
    }

    /// Claims the location for the backups of a store.
    ///
    /// # Errors
    /// The location has another store's backups, contains other data, or can't be read or written.
    pub(super) async fn claim(&self, store_id: Uuid) -> Result<(), StoreError> {
        match self.store_id().await? {
            Some(found) if found == store_id => return Ok(()),
            Some(found) => {
                return Err(StoreError::InvalidConfig(format!(
                    "{self} has the backups of store {found}, and this is store {store_id}: use another place"
                )));
            }
            None => {}
        }
        self.refuse_strange().await?;
        let marker = Marker {
            format: FORMAT,
            store_id,
            key_check: self.key.as_ref().map(BackupKey::check),
            checksum: None,
        };
        self.write_in(&self.plain, &Path::from(MARKER), checksummed_json::encode(marker))
            .await
    }

    /// Checks that backups of a store can be written here: writes a probe object, removes it, and claims a new location.
    ///
    /// # Errors
    /// [`StoreError::InvalidConfig`] if a later try can't succeed either. Other errors if the location does not answer.
    #[boxed]
    pub async fn check(&self, store_id: Uuid) -> Result<(), StoreError> {
        let path = Path::from(format!("{CHECK}-{}", Uuid::new_v4()));
        let probe = self.plain.put(&path, PutPayload::from_static(b"helenus")).await;
        let removed = match probe {
            Ok(_) => self.plain.delete(&path).await,
            Err(error) => Err(error),
        };
        if let Err(error) = removed {
            let failed = self.failed("cannot write to", &error);
            return match may_pass(&error) || matches!(failed, StoreError::DiskFull(_)) {
                true => Err(failed),
                false => Err(StoreError::InvalidConfig(failed.to_string())),
            };
        }
        self.claim(store_id).await
    }

    /// Refuses a location without a marker if its content could be confused with backups, such as a store.
    async fn refuse_strange(&self) -> Result<(), StoreError> {
        let found = self.objects.list_with_delimiter(None).await;
        let found = found.map_err(|error| self.failed("cannot list", &error))?;
        let objects = found.objects.iter().map(|object| &object.location);
        let mut all = found.common_prefixes.iter().chain(objects);
        let is_in_the_way = |path: &&Path| {
            [
                TABLETS,
                DOCUMENTS,
                FORMAT_NAME,
                unfinished_batches::FOLDER,
                history::FOLDER,
            ]
            .contains(&path.as_ref())
        };
        match all.find(is_in_the_way) {
            None => Ok(()),
            Some(strange) => Err(StoreError::InvalidConfig(format!(
                "{self} has {strange}, and no {MARKER}: backups go to a place of their own"
            ))),
        }
    }

    /// Reads the documents of all backups.
    ///
    /// # Errors
    /// See [`BackupLocation::store_id`].
    #[boxed]
    pub async fn list(&self) -> Result<Listed, StoreError> {
        self.store_id().await?;
        let folder = Path::from(DOCUMENTS);
        let found = self.objects.list_with_delimiter(Some(&folder)).await;
        let found = found.map_err(|error| self.failed("cannot list", &error))?;
        let mut listed = Listed::default();
        for object in found.objects {
            let path = object.location;
            let Some(name) = path.filename().and_then(|name| name.strip_suffix(ENDING)) else {
                continue;
            };
            match self.document(name).await {
                Ok(Some(document)) => listed.documents.push(document),
                Ok(None) => {}
                Err(StoreError::Corrupt { detail, .. }) => listed.unreadable.push((path.to_string(), detail)),
                // The document exists, but can't be decrypted.
                Err(error) if self.key.is_some() => {
                    listed.unreadable.push((path.to_string(), error.to_string()))
                }
                Err(error) => return Err(error),
            }
        }
        listed
            .documents
            .sort_by(|a, b| (a.content.taken_ms, &a.name).cmp(&(b.content.taken_ms, &b.name)));
        Ok(listed)
    }

    /// Returns the document of a backup. `None` if there is no such backup.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if the document is damaged, or if a newer binary wrote it. Other errors if it can't be read.
    async fn document(&self, name: &str) -> Result<Option<BackupDocument>, StoreError> {
        let path = document_path(name);
        let Some(bytes) = self.read(&path).await? else {
            return Ok(None);
        };
        let document = BackupDocument::decode(&bytes).and_then(|document| match document.name == name {
            true => Ok(document),
            false => Err(format!("it is the document of backup {}", document.name)),
        });
        document.map(Some).map_err(|detail| StoreError::Corrupt {
            file: path.to_string(),
            detail,
        })
    }

    /// Returns the backup of that name. `None` selects the newest one.
    ///
    /// # Errors
    /// There is no such backup, or its document can't be read.
    #[boxed]
    pub async fn find(&self, name: Option<&str>) -> Result<BackupDocument, StoreError> {
        let none =
            |what: String| StoreError::InvalidConfig(format!("{what} in {self}; see helenus backup list"));
        match name {
            Some(name) => {
                self.store_id().await?;
                let found = self.document(name).await?;
                found.ok_or_else(|| none(format!("there is no backup {name}")))
            }
            None => {
                let newest = self.list().await?.documents.pop();
                newest.ok_or_else(|| none("there is no backup that can be read".to_owned()))
            }
        }
    }

    /// Writes the document of a backup. The backup exists from then on.
    pub(super) async fn put(&self, document: &BackupDocument) -> Result<(), StoreError> {
        self.write(&document_path(&document.name), document.encode())
            .await
    }

    pub(super) async fn delete_document(&self, name: &str) -> Result<(), StoreError> {
        self.delete(&document_path(name)).await
    }

    /// Returns the bytes of all files of tablets, unfinished batches and logs, by path.
    pub(super) async fn files(&self) -> Result<HashMap<String, u64>, StoreError> {
        let mut files = HashMap::new();
        for folder in [TABLETS, unfinished_batches::FOLDER, history::FOLDER] {
            let listed = self.objects.list(Some(&Path::from(folder)));
            let listed = listed.map_ok(|object| (object.location.to_string(), object.size));
            let listed: HashMap<String, u64> = listed
                .try_collect()
                .await
                .map_err(|error| self.failed("cannot list", &error))?;
            files.extend(listed);
        }
        Ok(files)
    }

    /// Returns the content of a small object. `None` if the object does not exist.
    pub(super) async fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
        self.read_in(&self.objects, path).await
    }

    pub(super) async fn read_in(
        &self,
        objects: &Arc<dyn ObjectStore>,
        path: &Path,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let found = match objects.get(path).await {
            Err(Error::NotFound { .. }) => return Ok(None),
            found => found,
        };
        let failed = |error| self.failed(&format!("cannot read {path}"), &error);
        let bytes = found.map_err(failed)?.bytes().await.map_err(failed)?;
        Ok(Some(bytes.into()))
    }

    pub(super) async fn write(&self, path: &Path, content: Vec<u8>) -> Result<(), StoreError> {
        self.write_in(&self.objects, path, content).await
    }

    pub(super) async fn write_in(
        &self,
        objects: &Arc<dyn ObjectStore>,
        path: &Path,
        content: Vec<u8>,
    ) -> Result<(), StoreError> {
        let put = objects.put(path, content.into()).await;
        put.map(|_| ())
            .map_err(|error| self.failed(&format!("cannot write {path}"), &error))
    }

    /// Deletes an object. A missing object is no error.
    pub(super) async fn delete(&self, path: &Path) -> Result<(), StoreError> {
        match self.objects.delete(path).await {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.failed(&format!("cannot delete {path}"), &error)),
        }
    }

    pub(super) fn failed(&self, what: &str, error: &Error) -> StoreError {
        StoreError::Unavailable(format!("{self}: {what}: {}", chain(error)))
    }

    /// Removes temporary files of a process that was killed while it wrote.
    pub(super) fn remove_unfinished(&self) {
        if let StoreUrl::File(root) = &self.url {
            Folders { root: root.clone() }.remove_unfinished();
        }
    }
}

impl std::fmt::Display for BackupLocation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.url.fmt(f)
    }
}

fn parse(url: &str) -> Result<StoreUrl, StoreError> {
    StoreUrl::parse(url)
        .map_err(|error| StoreError::InvalidConfig(format!("the location of backups: {error}")))
}

fn files(folder: &FilePath) -> Result<Arc<dyn ObjectStore>, StoreError> {
    if !folder.is_dir() {
        return Err(StoreError::InvalidConfig(format!(
            "there is no folder {}",
            folder.display()
        )));
    }
    let files = LocalFileSystem::new_with_prefix(folder)
        .map_err(|error| StoreError::Unavailable(format!("{}: {}", folder.display(), chain(&error))))?;
    Ok(Arc::new(files.with_fsync(true)))
}

fn document_path(name: &str) -> Path {
    Path::from(DOCUMENTS).join(format!("{name}{ENDING}"))
}

/// Refuses a place that is not empty, because a restored store would be mixed up with its content.
///
/// # Errors
/// The place is not empty, or can't be read.
#[boxed]
pub async fn refuse_unless_empty(url: &StoreUrl) -> Result<(), StoreError> {
    let refused = |what: &str| {
        Err(StoreError::InvalidConfig(format!(
            "{url} {what}: a restore makes a new store, and takes an empty place; without --to it goes into a running node"
        )))
    };
    match url {
        StoreUrl::File(folder) => match std::fs::read_dir(folder) {
            Ok(mut entries) => match entries.next() {
                Some(_) => refused("is not empty"),
                None => Ok(()),
            },
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(StoreError::io("cannot read", folder, &error)),
        },
        StoreUrl::Remote(bucket) => {
            let objects = plain_client("store", bucket)?;
            let found = objects.list_with_delimiter(None).await;
            let found =
                found.map_err(|error| StoreError::Unavailable(format!("{url}: {}", chain(&error))))?;
            match found.objects.is_empty() && found.common_prefixes.is_empty() {
                true => Ok(()),
                false => refused("is not empty"),
            }
        }
    }
}

#[cfg(test)]
#[path = "location_tests.rs"]
mod tests;
