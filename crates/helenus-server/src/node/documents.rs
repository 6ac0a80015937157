//! The cluster's documents, kept beside the schema in the store.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use futures::TryStreamExt;
use helenus_cluster::{CLUSTER_DOCUMENT, Document, DocumentError, Documents, Expect, Listed, Version};
use helenus_tablet::{MetaExpect, Store, StoreError};
use metrics::{Counter, counter};
use object_store::ObjectStore;
use object_store::path::Path;
use tokio::sync::watch;

/// Where the store keeps its documents.
const FOLDER: &str = "meta";

/// Documents of a store in a bucket.
pub struct StoreDocuments {
    store: Arc<Store>,
    requests: Requests,
    /// The other documents by name, with what tells their versions, as the last listing showed them.
    others: watch::Sender<BTreeMap<String, String>>,
}

/// What is asked of the store for the cluster's sake: it costs money.
struct Requests {
    get: Counter,
    put: Counter,
    list: Counter,
    delete: Counter,
}

impl StoreDocuments {
    pub fn new(store: Arc<Store>) -> StoreDocuments {
        let counter =
            |kind: &'static str| counter!("helenus_cluster_document_requests_total", "kind" => kind);
        let requests = Requests {
            get: counter("get"),
            put: counter("put"),
            list: counter("list"),
            delete: counter("delete"),
        };
        StoreDocuments {
            store,
            requests,
            others: watch::Sender::default(),
        }
    }

    /// Changes whenever a listing shows that other documents than the cluster's have: readers need not reload the documents for that.
    pub fn others(&self) -> watch::Receiver<BTreeMap<String, String>> {
        self.others.subscribe()
    }
}

fn unavailable(error: impl std::fmt::Display) -> DocumentError {
    DocumentError::Unavailable(error.to_string())
}

fn failed(error: StoreError) -> DocumentError {
    match error {
        StoreError::MetaConflict(_) => DocumentError::Conflict,
        other => unavailable(other),
    }
}

#[async_trait]
impl Documents for StoreDocuments {
    async fn get(&self, name: &str) -> Result<Option<Document>, DocumentError> {
        self.requests.get.increment(1);
        let found = self.store.meta_get(name).await.map_err(failed)?;
        Ok(found.map(|document| Document {
            version: document.version,
            content: document.content.to_vec(),
        }))
    }

    async fn put(&self, name: &str, content: &[u8], expect: Expect) -> Result<Version, DocumentError> {
        self.requests.put.increment(1);
        let expect = match expect {
            Expect::Absent => MetaExpect::Absent,
            Expect::Version(version) => MetaExpect::Version(version),
        };
        self.store.meta_put(name, content, expect).await.map_err(failed)
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Listed>, DocumentError> {
        self.requests.list.increment(1);
        let objects = self.store.objects().map_err(failed)?;
        let folder = Path::from(FOLDER);
        let found: Vec<_> = objects
            .list(Some(&folder))
            .try_collect()
            .await
            .map_err(unavailable)?;
        let listed = |object: object_store::ObjectMeta| {
            let name = object.location.filename()?.to_owned();
            let stamp = match object.e_tag.or(object.version) {
                Some(stamp) => stamp,
                None => object.last_modified.to_rfc3339(),
            };
            Some(Listed { name, stamp })
        };
        let (wanted, others): (Vec<_>, Vec<_>) = found
            .into_iter()
            .filter_map(listed)
            .partition(|listed| listed.name.starts_with(prefix));
        let is_others = |listed: &Listed| !listed.name.starts_with(CLUSTER_DOCUMENT);
        let others: BTreeMap<_, _> = others
            .into_iter()
            .filter(is_others)
            .map(|listed| (listed.name, listed.stamp))
            .collect();
        self.others.send_if_modified(|known| {
            let is_new = *known != others;
            *known = others;
            is_new
        });
        Ok(wanted)
    }

    async fn delete(&self, name: &str) -> Result<(), DocumentError> {
        self.requests.delete.increment(1);
        self.store.meta_delete(name).await.map_err(failed)
    }
}
