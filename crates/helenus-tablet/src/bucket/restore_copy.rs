//! Turns the copy of a store in a bucket into a store of its own (`helenus adopt`).
//!
//! The caller changes the documents of the copy that name the nodes of the original, and then [`CopyRestore::finish`] writes the copy's
//! identity and location. An interrupted restore leaves a copy, which no node opens, and can be repeated.

use std::collections::BTreeMap;

use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectStore, PutMode};
use uuid::Uuid;

use crate::bucket::check::{explain, patiently};
use crate::bucket::connection::Bucket;
use crate::bucket::store_identity::BindTarget;
use crate::bucket::{check, format, log_store};
use crate::config::{StoreConfig, StoreUrl};
use crate::error::StoreError;
use crate::metadata::documents::{Meta, MetaDoc, MetaExpect, MetaVersion};

/// A copy that is about to be a store of its own; no tablet of it is open.
pub struct CopyRestore {
    bucket: Bucket,
    /// Where the log lies, if it lies apart, with the folder of this store in it.
    log: Option<(Bucket, Uuid)>,
    meta: Meta,
    identity: Uuid,
}

impl CopyRestore {
    /// Checks the store; writes only the test object of the bucket check.
    ///
    /// # Errors
    /// There is no store, or its log is not there or is still another store's.
    pub async fn begin(config: &StoreConfig) -> Result<CopyRestore, StoreError> {
        let StoreUrl::Remote(url) = &config.url else {
            return Err(StoreError::InvalidConfig(
                "the copy of a folder is a store of its own as soon as a node is started on it".into(),
            ));
        };
        let bucket = Bucket::connect(url)?;
        check::check(&bucket).await?;
        let Some(found) = format::load(&bucket).await? else {
            return Err(StoreError::InvalidConfig(format!(
                "store = \"{url}\": there is no store"
            )));
        };
        let log = match log_store::configured(&bucket, log_store::connect(&bucket, config)?, &found).await? {
            Some(log) => {
                log_store::refuse_in_use(&log, found.store_id).await?;
                Some((log, found.store_id))
            }
            None => None,
        };
        Ok(CopyRestore {
            meta: Meta::new(bucket.store.clone(), Path::default(), None),
            bucket,
            log,
            identity: Uuid::new_v4(),
        })
    }

    /// The new identity of the store.
    pub fn identity(&self) -> Uuid {
        self.identity
    }

    /// The names of the documents that begin with `prefix`, each with a stamp that changes with every write.
    pub async fn documents(&self, prefix: &str) -> Result<BTreeMap<String, String>, StoreError> {
        let folder = Path::from("meta");
        let list = self.bucket.store.list(Some(&folder)).try_collect::<Vec<_>>();
        let found = patiently(&self.bucket, list).await?;
        let found = found.map_err(|error| explain(&self.bucket, &error))?;
        let documents = found.into_iter().filter_map(|object| {
            let name = object.location.filename()?.to_owned();
            let stamp = object.e_tag.unwrap_or_else(|| object.last_modified.to_rfc3339());
            name.starts_with(prefix).then_some((name, stamp))
        });
        Ok(documents.collect())
    }

    pub async fn get(&self, name: &str) -> Result<Option<MetaDoc>, StoreError> {
        self.meta.get(name).await
    }

    pub async fn put(&self, name: &str, content: &[u8], version: MetaVersion) -> Result<(), StoreError> {
        let put = self.meta.put(name, content, MetaExpect::Version(version));
        put.await.map(|_| ())
    }

    pub async fn delete(&self, name: &str) -> Result<(), StoreError> {
        self.meta.delete(name).await
    }

    /// Binds the new identity to the place: from now on nodes open it.
    pub async fn finish(self) -> Result<(), StoreError> {
        if let Some((log, store_id)) = &self.log {
            let target = log_store::bind_target(log, *store_id);
            let found = target.find().await?;
            target.write(&found, self.identity, PutMode::Overwrite).await?;
        }
        let target = BindTarget::store(&self.bucket);
        let found = target.find().await?;
        target.write(&found, self.identity, PutMode::Overwrite).await?;
        Ok(())
    }
}
