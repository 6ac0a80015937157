//! The small documents of a store that is not open.

use std::collections::BTreeMap;

use futures::TryStreamExt;
use object_store::ObjectStore;
use object_store::path::Path;

use crate::boxed;
use crate::bucket::check::{explain, patiently};
use crate::bucket::connection::Bucket;
use crate::error::StoreError;
use crate::metadata::documents::{Meta, MetaDoc, MetaExpect, MetaVersion};

/// Reads and writes the documents of a store in a bucket.
pub struct StoreDocuments {
    pub(crate) bucket: Bucket,
    meta: Meta,
}

impl StoreDocuments {
    pub(crate) fn of(bucket: Bucket) -> StoreDocuments {
        StoreDocuments {
            meta: Meta::new(bucket.store.clone(), Path::default(), None),
            bucket,
        }
    }

    /// Returns the documents whose names begin with `prefix`. Each name maps to a stamp that changes with every write.
    #[boxed]
    pub async fn names(&self, prefix: &str) -> Result<BTreeMap<String, String>, StoreError> {
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

    #[boxed]
    pub async fn get(&self, name: &str) -> Result<Option<MetaDoc>, StoreError> {
        self.meta.get(name).await
    }

    #[boxed]
    pub async fn put(&self, name: &str, content: &[u8], version: MetaVersion) -> Result<(), StoreError> {
        let put = self.meta.put(name, content, MetaExpect::Version(version));
        put.await.map(|_| ())
    }

    #[boxed]
    pub async fn delete(&self, name: &str) -> Result<(), StoreError> {
        self.meta.delete(name).await
    }
}
