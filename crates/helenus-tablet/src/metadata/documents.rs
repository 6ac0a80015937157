//! Small documents of the crates above (the schema, settings). Documents are durable, and are replaced as a whole by compare-and-set.
//!
//! A document lies at `meta/<name>`: eight bytes of magic, its version and length, a CRC-32C, then the content.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes};
use hashbrown::HashMap;
use object_store::path::Path;
use object_store::{
    Attribute, AttributeValue, GetOptions, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload,
    PutResult, UpdateVersion,
};
use parking_lot::Mutex;

use crate::boxed;
use crate::checksum::crc32c;
use crate::error::{StoreError, chain, has_no_space};
use crate::metadata::inventory::Inventory;

const MAGIC: [u8; 8] = *b"HLNSMET1";
const HEADER_LEN: usize = 24;
const DOCUMENT_LEN_MAX: usize = 256 << 20;
/// Metadata attribute with the id of the PUT that wrote an object.
const PUT_ID: Attribute = Attribute::Metadata(Cow::Borrowed("helenusputid"));
/// Maximum number of tries to write a document to a bucket, and the first pause between them. The pause grows with each failure.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(200);

/// Number of changes of a document, from 1.
pub type MetaVersion = u64;

/// Content of a document, with its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetaDoc {
    pub version: MetaVersion,
    pub content: Bytes,
}

/// The object version by which a bucket identifies a version of a document.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MetaStamp {
    pub e_tag: Option<String>,
    pub object_version: Option<String>,
}

/// The condition for replacing a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetaExpect {
    Any,
    Absent,
    Version(MetaVersion),
}

pub(crate) struct Meta {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    /// The inventory of a store in a folder. `None` for a store in a bucket. A folder is used by one process, so a lock suffices for
    /// compare-and-set.
    inventory: Option<Arc<Inventory>>,
    lock: tokio::sync::Mutex<()>,
    /// Versions of documents in a bucket that were last read or written here, by name. A change of such a version needs no read before it.
    known: Mutex<HashMap<String, (MetaVersion, UpdateVersion)>>,
}

struct CachedDocument {
    doc: MetaDoc,
    update: UpdateVersion,
}

/// Outcome of a conditional write.
enum Put {
    Done(UpdateVersion),
    /// The condition did not hold.
    Refused,
}

impl Put {
    fn of(result: PutResult) -> Put {
        Put::Done(UpdateVersion {
            e_tag: result.e_tag,
            version: result.version,
        })
    }
}

impl Meta {
    /// Returns the documents of a store. `inventory` is `None` for a store in a bucket.
    pub fn new(store: Arc<dyn ObjectStore>, prefix: Path, inventory: Option<Arc<Inventory>>) -> Self {
        Meta {
            store,
            prefix,
            inventory,
            lock: tokio::sync::Mutex::new(()),
            known: Mutex::default(),
        }
    }

    fn is_local(&self) -> bool {
        self.inventory.is_some()
    }

    fn path(&self, name: &str) -> Result<Path, StoreError> {
        let fine = !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'));
        if !fine || name.starts_with('.') || name.len() > 128 {
            return Err(StoreError::InvalidConfig(format!(
                "{name:?} is not a document's name"
            )));
        }
        Ok(self.prefix.clone().join("meta").join(name))
    }

    #[boxed]
    pub async fn get(&self, name: &str) -> Result<Option<MetaDoc>, StoreError> {
        let Some(found) = self.find(name).await? else {
            return Ok(None);
        };
        self.know(name, found.doc.version, found.update);
        Ok(Some(found.doc))
    }

    /// Returns false if the document is still the version that was last read or written here. True may also mean that this is unknown. The
    /// content is not read.
    #[boxed]
    pub async fn may_differ(&self, name: &str) -> Result<bool, StoreError> {
        let path = self.path(name)?;
        let known = self.known.lock().get(name).map(|(_, update)| update.clone());
        let Some(known) = known else { return Ok(true) };
        let options = GetOptions {
            head: true,
            ..GetOptions::default()
        };
        match self.store.get_opts(&path, options).await {
            Ok(found) => Ok(found.meta.e_tag != known.e_tag || found.meta.version != known.version),
            Err(object_store::Error::NotFound { .. }) => Ok(true),
            Err(error) => Err(failed(&error)),
        }
    }

    /// Remembers a version, unless a later one is known.
    fn know(&self, name: &str, version: MetaVersion, update: UpdateVersion) {
        if self.is_local() || update.e_tag.is_none() && update.version.is_none() {
            return;
        }
        let mut known = self.known.lock();
        if known.get(name).is_none_or(|(newest, _)| *newest < version) {
            known.insert(name.to_owned(), (version, update));
        }
    }

    /// Returns the stamp by which the bucket identifies that version. `None` if that version is not the last one read or written here.
    pub fn stamp(&self, name: &str, version: MetaVersion) -> Option<MetaStamp> {
        let (_, update) = self.known(name, MetaExpect::Version(version))?;
        Some(MetaStamp {
            e_tag: update.e_tag,
            object_version: update.version,
        })
    }

    /// Remembers a version that another process has read or written, so that a change of it needs no read before it.
    pub fn note_version(&self, name: &str, version: MetaVersion, stamp: MetaStamp) {
        let update = UpdateVersion {
            e_tag: stamp.e_tag,
            version: stamp.object_version,
        };
        self.know(name, version, update);
    }

    /// Returns the object version of the expected version. `None` if it is unknown, or if no certain version is expected.
    fn known(&self, name: &str, expect: MetaExpect) -> Option<(MetaVersion, UpdateVersion)> {
        let known = self.known.lock();
        let found = known.get(name)?;
        (expect == MetaExpect::Version(found.0)).then(|| found.clone())
    }

    async fn find(&self, name: &str) -> Result<Option<CachedDocument>, StoreError> {
        let path = self.path(name)?;
        let result = match self.store.get(&path).await {
            Ok(result) => result,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(failed(&error)),
        };
        let update = UpdateVersion {
            e_tag: result.meta.e_tag.clone(),
            version: result.meta.version.clone(),
        };
        let bytes = result.bytes().await.map_err(|error| failed(&error))?;
        let doc = decode(&bytes).ok_or_else(|| StoreError::Corrupt {
            file: path.to_string(),
            detail: "the document does not match its checksum".into(),
        })?;
        Ok(Some(CachedDocument { doc, update }))
    }

    #[boxed]
    pub async fn put(
        &self,
        name: &str,
        content: &[u8],
        expect: MetaExpect,
    ) -> Result<MetaVersion, StoreError> {
        if content.len() > DOCUMENT_LEN_MAX {
            return Err(StoreError::TooLarge {
                size: content.len(),
                limit: DOCUMENT_LEN_MAX,
            });
        }
        let path = self.path(name)?;
        // Only a folder needs the lock, because a bucket offers compare-and-set itself.
        let _guard = match self.is_local() {
            true => Some(self.lock.lock().await),
            false => None,
        };
        loop {
            let found = match self.known(name, expect) {
                Some(known) => Some(known),
                None => self
                    .find(name)
                    .await?
                    .map(|found| (found.doc.version, found.update)),
            };
            let current = found.as_ref().map_or(0, |(version, _)| *version);
            let conflict = || StoreError::MetaConflict(name.to_string());
            match expect {
                MetaExpect::Any => {}
                MetaExpect::Absent if current == 0 => {}
                MetaExpect::Version(version) if current == version => {}
                _ => return Err(conflict()),
            }
            let mode = match found {
                _ if self.is_local() => PutMode::Overwrite,
                None => PutMode::Create,
                Some((_, update)) => PutMode::Update(update),
            };
            let version = current + 1;
            match self.put_if(&path, encode(version, content), mode).await {
                Ok(Put::Done(update)) => {
                    self.enter(name);
                    self.know(name, version, update);
                    return Ok(version);
                }
                // Another process wrote the document first. The write is retried, because any version may be replaced.
                Ok(Put::Refused) if expect == MetaExpect::Any => continue,
                Ok(Put::Refused) => {
                    self.known.lock().remove(name);
                    return Err(conflict());
                }
                Err(error) => return Err(failed(&error)),
            }
        }
    }

    /// Adds the document to the inventory, which then requires it to exist.
    fn enter(&self, name: &str) {
        let Some(inventory) = &self.inventory else { return };
        let entered = inventory.change(|contents| {
            contents.documents.insert(name.to_owned());
        });
        // A failure is not returned, because the document is written. The next change of the document tries again.
        if let Err(error) = entered {
            tracing::warn!(document = name, %error, "a document could not be entered into the inventory");
        }
    }

    /// Writes an object on a condition. In a bucket, a try that seemed to fail may have taken effect. An id in the object's metadata shows
    /// that.
    async fn put_if(&self, path: &Path, bytes: Vec<u8>, mode: PutMode) -> object_store::Result<Put> {
        let id = uuid::Uuid::new_v4().to_string();
        let mut options = PutOptions {
            mode,
            ..PutOptions::default()
        };
        if !self.is_local() {
            let id = AttributeValue::from(id.clone());
            options.attributes.insert(PUT_ID, id);
        }
        let payload = PutPayload::from(bytes);
        let mut attempt = 1;
        loop {
            let put = self.store.put_opts(path, payload.clone(), options.clone());
            match put.await {
                Ok(result) => return Ok(Put::of(result)),
                Err(object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. }) => {
                    return self.is_put(path, &id).await;
                }
                Err(error @ object_store::Error::Generic { .. })
                    if !self.is_local() && attempt < ATTEMPTS =>
                {
                    tracing::debug!(object = %path, %error, "a document could not be written; trying again");
                    tokio::time::sleep(PAUSE * attempt).await;
                    attempt += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Checks whether the existing object was written by the PUT with that id.
    async fn is_put(&self, path: &Path, id: &str) -> object_store::Result<Put> {
        if self.is_local() {
            return Ok(Put::Refused);
        }
        let options = GetOptions {
            head: true,
            ..GetOptions::default()
        };
        match self.store.get_opts(path, options).await {
            Ok(found) => {
                let put = found.attributes.get(&PUT_ID);
                Ok(match put.is_some_and(|found| found.as_ref() == id) {
                    true => Put::Done(UpdateVersion {
                        e_tag: found.meta.e_tag,
                        version: found.meta.version,
                    }),
                    false => Put::Refused,
                })
            }
            Err(object_store::Error::NotFound { .. }) => Ok(Put::Refused),
            Err(error) => Err(error),
        }
    }

    #[boxed]
    pub async fn list(&self) -> Result<Vec<String>, StoreError> {
        let folder = self.prefix.clone().join("meta");
        let found = self
            .store
            .list_with_delimiter(Some(&folder))
            .await
            .map_err(|error| failed(&error))?;
        Ok(found
            .objects
            .iter()
            .filter_map(|object| object.location.filename().map(str::to_string))
            .collect())
    }

    #[boxed]
    pub async fn delete(&self, name: &str) -> Result<(), StoreError> {
        let path = self.path(name)?;
        let _guard = self.lock.lock().await;
        self.known.lock().remove(name);
        if let Some(inventory) = &self.inventory {
            inventory.change(|contents| {
                contents.documents.remove(name);
            })?;
        }
        match self.store.delete(&path).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(failed(&error)),
        }
    }
}

fn failed(error: &object_store::Error) -> StoreError {
    let text = chain(error);
    if has_no_space(error) {
        StoreError::DiskFull(text)
    } else {
        StoreError::Unavailable(text)
    }
}

fn encode(version: MetaVersion, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_LEN + content.len());
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&version.to_le_bytes());
    bytes.extend_from_slice(&(content.len() as u32).to_le_bytes());
    let sum = sum(version, content);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes.extend_from_slice(content);
    bytes
}

fn sum(version: MetaVersion, content: &[u8]) -> u32 {
    crc32c(content) ^ crc32c(&version.to_le_bytes())
}

fn decode(bytes: &Bytes) -> Option<MetaDoc> {
    let mut rest = bytes.strip_prefix(&MAGIC)?;
    if rest.len() < HEADER_LEN - MAGIC.len() {
        return None;
    }
    let version = rest.get_u64_le();
    let len = rest.get_u32_le() as usize;
    let expected = rest.get_u32_le();
    (rest.len() == len && sum(version, rest) == expected).then(|| MetaDoc {
        version,
        content: bytes.slice_ref(rest),
    })
}

#[cfg(test)]
#[path = "documents_tests.rs"]
mod tests;
