//! The cluster's documents, kept beside the schema in the store.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::TryStreamExt;
use futures::future::try_join_all;
use helenus_cluster::{
    CLUSTER_DOCUMENT, Document, DocumentError, Documents, Expect, Listed, Version, is_heartbeat,
};
use helenus_query::engine::SHARED_DOCUMENTS;
use helenus_tablet::{MetaExpect, Store, StoreError};
use metrics::{Counter, counter};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use parking_lot::Mutex;
use tokio::sync::watch;

/// Folder of the documents in the store.
const FOLDER: &str = "meta";
/// Minimum time between two checks of the engine's documents. Nodes notify each other of changes, so that a check only finds changes whose
/// notification was lost.
const DOCUMENTS_INTERVAL: Duration = Duration::from_secs(2);

/// Documents of a store in a bucket.
pub struct StoreDocuments {
    store: Arc<Store>,
    requests: Requests,
    /// Stamps of the engine's documents by name, as last seen.
    others: watch::Sender<BTreeMap<String, String>>,
    /// Time of the last check of the engine's documents. `None` before the first.
    others_seen: Mutex<Option<Instant>>,
}

/// Counters of the requests to the store for the cluster's documents. They are counted because they cost money.
struct Requests {
    get: Counter,
    head: Counter,
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
            head: counter("head"),
            put: counter("put"),
            list: counter("list"),
            delete: counter("delete"),
        };
        StoreDocuments {
            store,
            requests,
            others: watch::Sender::default(),
            others_seen: Mutex::default(),
        }
    }

    /// Returns a channel that changes whenever an engine's document is seen to have changed. While it does not change, readers need not
    /// load the documents again.
    pub fn others(&self) -> watch::Receiver<BTreeMap<String, String>> {
        self.others.subscribe()
    }

    /// Returns the stamp of a document. `None` if there is no such document.
    async fn stamp(&self, name: &str) -> Result<Option<Listed>, DocumentError> {
        self.requests.head.increment(1);
        let objects = self.store.objects().map_err(failed)?;
        match objects.head(&Path::from(FOLDER).join(name)).await {
            Ok(object) => Ok(listed(object)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(unavailable(error)),
        }
    }

    /// Checks the engine's documents for changes, unless they were checked recently.
    async fn check_others(&self) -> Result<(), DocumentError> {
        let is_due = |seen: &Option<Instant>| seen.is_none_or(|seen| seen.elapsed() >= DOCUMENTS_INTERVAL);
        if !is_due(&self.others_seen.lock()) {
            return Ok(());
        }
        let found = try_join_all(SHARED_DOCUMENTS.map(|name| self.stamp(name))).await?;
        *self.others_seen.lock() = Some(Instant::now());
        self.others.send_if_modified(|known| {
            let mut is_new = false;
            for document in found.into_iter().flatten() {
                is_new |= known.get(&document.name) != Some(&document.stamp);
                known.insert(document.name, document.stamp);
            }
            is_new
        });
        Ok(())
    }
}

/// Returns the name and the stamp of an object. `None` if it has no name.
fn listed(object: ObjectMeta) -> Option<Listed> {
    let name = object.location.filename()?.to_owned();
    let stamp = match object.e_tag.or(object.version) {
        // Quotes are removed, because some stores quote an entity tag in one kind of response only.
        Some(stamp) => stamp.trim_matches('"').to_owned(),
        None => object.last_modified.to_rfc3339(),
    };
    Some(Listed { name, stamp })
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
        let found = match is_heartbeat(name) {
            true => self.store.lease_get(name).await,
            false => self.store.meta_get(name).await,
        };
        let found = found.map_err(failed)?;
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
        let put = match is_heartbeat(name) {
            true => self.store.lease_put(name, content, expect).await,
            false => self.store.meta_put(name, content, expect).await,
        };
        put.map_err(failed)
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
        *self.others_seen.lock() = Some(Instant::now());
        self.others.send_if_modified(|known| {
            let is_new = *known != others;
            *known = others;
            is_new
        });
        Ok(wanted)
    }

    async fn stamps(&self, names: &[String]) -> Result<Vec<Listed>, DocumentError> {
        let reads = try_join_all(names.iter().map(|name| self.stamp(name)));
        let (found, ()) = tokio::try_join!(reads, self.check_others())?;
        Ok(found.into_iter().flatten().collect())
    }

    async fn delete(&self, name: &str) -> Result<(), DocumentError> {
        self.requests.delete.increment(1);
        self.store.meta_delete(name).await.map_err(failed)
    }
}
