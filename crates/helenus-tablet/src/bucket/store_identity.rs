//! The identity of a store in a bucket, and its recorded location, by which a copy of its objects is detected.
//!
//! The object `PLACE` holds the store's *identity*, a random id, and its location. The location is the bucket, the prefix, and the time at
//! which `FORMAT` was written. The object store sets this time by its own clock, so no copy has the same time. The endpoint is not
//! recorded, because one store can have several (a proxy, a name and its address).
//!
//! A copy holds the same `PLACE` at another location. No node opens the copy until `helenus adopt` has given it its own identity
//! ([`super::restore_copy`]). A store that is older than `PLACE` gets one when it is opened.

use chrono::{DateTime, Utc};
use object_store::path::Path;
use object_store::{Error, ObjectStoreExt, PutMode, PutOptions};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::boxed;
use crate::bucket::check::{explain, patiently};
use crate::bucket::connection::{Bucket, FORMAT_NAME};
use crate::error::StoreError;

const NAME: &str = "PLACE";
/// The newest format of `PLACE` that this code reads.
const FORMAT: u64 = 1;

/// Content of `PLACE`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoreIdentity {
    format: u64,
    pub identity: Uuid,
    #[serde(flatten)]
    location: StoreLocation,
}

/// Location of the objects of a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct StoreLocation {
    /// Name of the bucket. Empty if a folder holds the log, because nodes may mount the folder at different paths.
    bucket: String,
    prefix: String,
    /// Time at which the anchor object was written, by the object store's clock, in seconds since the Unix epoch.
    made_s: i64,
}

impl StoreLocation {
    /// Returns how this location differs from the recorded one. `None` if the objects lie where they were created.
    fn moved_from(&self, recorded: &StoreLocation, anchor: &str) -> Option<String> {
        if (&self.bucket, &self.prefix) != (&recorded.bucket, &recorded.prefix) {
            return Some(format!(
                "it belongs to bucket \"{}\", prefix \"{}\"",
                recorded.bucket, recorded.prefix
            ));
        }
        let time = |seconds| {
            let time = DateTime::<Utc>::from_timestamp(seconds, 0);
            time.map_or_else(|| "some other time".to_owned(), |time| time.to_rfc3339())
        };
        (self.made_s != recorded.made_s).then(|| {
            format!(
                "its object {anchor} was written at {}, that of the store at {}: it was copied there, or restored",
                time(self.made_s),
                time(recorded.made_s)
            )
        })
    }
}

/// The location of a store or of a log in an object store, and its anchor: the object that marks it as one.
pub(crate) struct BindTarget<'a> {
    pub bucket: &'a Bucket,
    /// The folder that contains `PLACE`.
    pub folder: Path,
    pub anchor: Path,
}

/// The recorded identity and the actual location of a store or log.
pub(crate) struct IdentityCheck {
    pub recorded: Option<StoreIdentity>,
    location: StoreLocation,
    /// Reason why the objects are a copy. `None` if they are the original.
    pub copied: Option<String>,
}

impl<'a> BindTarget<'a> {
    /// Returns the location of the store in a bucket.
    pub fn store(bucket: &'a Bucket) -> BindTarget<'a> {
        BindTarget {
            bucket,
            folder: Path::default(),
            anchor: Path::from(FORMAT_NAME),
        }
    }

    fn path(&self) -> Path {
        self.folder.clone().join(NAME)
    }

    /// Returns the identity recorded here. If there is none, `proposed` is recorded and returned.
    ///
    /// # Errors
    /// The recorded identity belongs to another location.
    #[boxed]
    pub async fn identity(&self, proposed: Uuid) -> Result<Uuid, StoreError> {
        let mut found = self.find().await?;
        if found.recorded.is_none() {
            if self.write(&found, proposed, PutMode::Create).await? {
                return Ok(proposed);
            }
            // Another node recorded its identity first.
            found = self.find().await?;
        }
        match (found.recorded, found.copied) {
            (Some(recorded), None) => Ok(recorded.identity),
            (Some(recorded), Some(why)) => Err(self.refuse(&recorded, &why)),
            (None, _) => Err(StoreError::Corrupt {
                file: format!("{}/{}", self.bucket.url, self.path()),
                detail: "it existed, and is missing now".into(),
            }),
        }
    }

    /// Returns the identity recorded here. Writes nothing.
    ///
    /// # Errors
    /// There is no recorded identity, or it belongs to another location.
    #[boxed]
    pub async fn recorded(&self) -> Result<Uuid, StoreError> {
        let found = self.find().await?;
        match (found.recorded, found.copied) {
            (Some(recorded), None) => Ok(recorded.identity),
            (Some(recorded), Some(why)) => Err(self.refuse(&recorded, &why)),
            (None, _) => Err(StoreError::Corrupt {
                file: format!("{}/{}", self.bucket.url, self.path()),
                detail: "it is missing; a node that is not read-only creates it when it opens the store"
                    .into(),
            }),
        }
    }

    /// Returns the identity recorded here, and records the new time of the anchor. For a process that has rewritten the anchor.
    ///
    /// # Errors
    /// There is no recorded identity, or it belongs to another bucket or prefix.
    #[boxed]
    pub async fn rebind(&self) -> Result<Uuid, StoreError> {
        let found = self.find().await?;
        let is_here = |recorded: &StoreIdentity| {
            let (here, there) = (&found.location, &recorded.location);
            (&here.bucket, &here.prefix) == (&there.bucket, &there.prefix)
        };
        match &found.recorded {
            Some(recorded) if is_here(recorded) => {
                self.write(&found, recorded.identity, PutMode::Overwrite).await?;
                Ok(recorded.identity)
            }
            _ => self.recorded().await,
        }
    }

    #[boxed]
    pub async fn find(&self) -> Result<IdentityCheck, StoreError> {
        let bucket = self.bucket;
        let (anchor, path) = (&self.anchor, &self.path());
        let read = async {
            let recorded = match bucket.store.get(path).await {
                Ok(found) => Some(found.bytes().await?),
                Err(Error::NotFound { .. }) => None,
                Err(error) => return Err(error),
            };
            Ok((recorded, bucket.store.head(anchor).await?))
        };
        let found = patiently(bucket, read).await?;
        let (recorded, anchor) = found.map_err(|error| explain(bucket, &error))?;
        let recorded = recorded.map(|bytes| self.decode(&bytes)).transpose()?;
        let (name, prefix) = location_of(bucket);
        let location = StoreLocation {
            bucket: name,
            prefix,
            made_s: anchor.last_modified.timestamp(),
        };
        let copied = recorded
            .as_ref()
            .and_then(|recorded| location.moved_from(&recorded.location, self.anchor.as_ref()));
        Ok(IdentityCheck {
            recorded,
            location,
            copied,
        })
    }

    /// Records an identity with the actual location. Returns false if another process has recorded one first.
    pub async fn write(
        &self,
        found: &IdentityCheck,
        identity: Uuid,
        mode: PutMode,
    ) -> Result<bool, StoreError> {
        let recorded = StoreIdentity {
            format: FORMAT,
            identity,
            location: found.location.clone(),
        };
        let mut bytes = serde_json::to_vec_pretty(&recorded).unwrap_or_default();
        bytes.push(b'\n');
        let options = PutOptions {
            mode,
            ..PutOptions::default()
        };
        let path = self.path();
        let put = self.bucket.store.put_opts(&path, bytes.into(), options);
        match patiently(self.bucket, put).await? {
            Ok(_) => Ok(true),
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => Ok(false),
            Err(error) => Err(explain(self.bucket, &error)),
        }
    }

    fn decode(&self, bytes: &[u8]) -> Result<StoreIdentity, StoreError> {
        let recorded: StoreIdentity = serde_json::from_slice(bytes).map_err(|error| StoreError::Corrupt {
            file: format!("{}/{}", self.bucket.url, self.path()),
            detail: error.to_string(),
        })?;
        match recorded.format > FORMAT {
            true => Err(StoreError::NewerFormat {
                found: recorded.format,
                supported: FORMAT,
            }),
            false => Ok(recorded),
        }
    }

    fn refuse(&self, recorded: &StoreIdentity, why: &str) -> StoreError {
        let Bucket { url, setting, .. } = self.bucket;
        StoreError::InvalidConfig(format!(
            "{setting} = \"{url}\": this is a copy of store {}: {why}. A copy cannot be opened as the original. To make it a store of its own, while no node runs on it:  helenus adopt --store {}",
            recorded.identity,
            match *setting {
                "store" => url.as_str(),
                _ => "URL --log-store URL",
            }
        ))
    }
}

/// Returns the bucket's name and the prefix in it. Different spellings of a URL give the same result.
fn location_of(bucket: &Bucket) -> (String, String) {
    let url = &bucket.url;
    if url.scheme() == "file" {
        return Default::default();
    }
    // The bucket of abfss://container@account.dfs… is the container.
    let name = match url.username() {
        "" => url.host_str().unwrap_or_default(),
        container => container,
    };
    let parts: Vec<&str> = url.path().split('/').filter(|part| !part.is_empty()).collect();
    let prefix = Path::from_url_path(parts.join("/")).unwrap_or_default();
    (name.to_owned(), prefix.to_string())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn location(text: &str) -> (String, String) {
        let url = url::Url::parse(text).unwrap();
        let store = Arc::new(object_store::memory::InMemory::new());
        location_of(&Bucket {
            url,
            setting: "store",
            urgent: store.clone(),
            store,
            requests: Arc::default(),
            checksums: Arc::default(),
        })
    }

    #[test]
    fn a_place_is_one_however_its_url_is_spelled() {
        let same = ["s3://b/a/c", "s3://b/a/c/", "s3a://b/a/c", "s3://b//a/c"];
        for url in same {
            assert_eq!(location(url), ("b".to_owned(), "a/c".to_owned()), "{url}");
        }
        assert_eq!(location("gs://b"), ("b".to_owned(), String::new()));
        assert_eq!(
            location("abfss://box@account.dfs.core.windows.net/p"),
            ("box".to_owned(), "p".to_owned())
        );
    }

    #[test]
    fn a_copy_lies_elsewhere_or_is_younger() {
        let location = |bucket: &str, made_s| StoreLocation {
            bucket: bucket.into(),
            prefix: "p".into(),
            made_s,
        };
        let store = location("b", 1_000_000_000);
        assert_eq!(store.moved_from(&store, "FORMAT"), None);
        let elsewhere = location("copy", 1_000_000_000)
            .moved_from(&store, "FORMAT")
            .unwrap();
        assert!(elsewhere.contains("bucket \"b\", prefix \"p\""), "{elsewhere}");
        let restored = location("b", 1_000_000_060).moved_from(&store, "FORMAT").unwrap();
        assert!(
            restored.contains("2001-09-09T01:47:40") && restored.contains("2001-09-09T01:46:40"),
            "{restored}"
        );
    }
}
