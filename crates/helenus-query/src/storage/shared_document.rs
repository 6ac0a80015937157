//! JSON documents of the store that all nodes change by compare-and-set, and of which each node keeps a copy in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::{ArcSwap, Guard};
use helenus_cql::error::CqlError;
use helenus_tablet::{MetaExpect, Store, StoreError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::Mutex;

use crate::failure::store_error;

/// This node's copy of a document. A document that does not exist has the default value.
#[derive(Debug)]
pub(crate) struct SharedDocument<T> {
    name: &'static str,
    value: ArcSwap<T>,
    /// Version of the copy. 0 if there was no document.
    version: AtomicU64,
    /// Held while the copy is replaced.
    changing: Mutex<()>,
}

impl<T: Default + Serialize + DeserializeOwned> SharedDocument<T> {
    /// Returns the copy of a document that was not read yet.
    pub fn new(name: &'static str) -> SharedDocument<T> {
        SharedDocument {
            name,
            value: ArcSwap::default(),
            version: AtomicU64::new(0),
            changing: Mutex::default(),
        }
    }

    /// Returns the value of the copy.
    pub fn value(&self) -> Guard<Arc<T>> {
        self.value.load()
    }

    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Reads the document from the store.
    pub async fn load(&self, store: &Store) -> Result<(), CqlError> {
        let _changing = self.changing.lock().await;
        self.read(store).await
    }

    /// Reads the document from the store if it may have changed.
    pub async fn load_changed(&self, store: &Store) -> Result<(), CqlError> {
        let _changing = self.changing.lock().await;
        match store.meta_may_differ(self.name).await.map_err(store_error)? {
            true => self.read(store).await,
            false => Ok(()),
        }
    }

    /// Replaces the value by that of `next`, or leaves the value if `next` returns `None`. `next` is called again if another node changed
    /// the document concurrently. Returns the value after that.
    pub async fn change(&self, store: &Store, next: impl Fn(&T) -> Option<T>) -> Result<Arc<T>, CqlError> {
        let _changing = self.changing.lock().await;
        loop {
            let present = self.value.load_full();
            let Some(value) = next(&present) else {
                return Ok(present);
            };
            let bytes = serde_json::to_vec(&value).map_err(|error| CqlError::Server(error.to_string()))?;
            let expect = match self.version() {
                0 => MetaExpect::Absent,
                version => MetaExpect::Version(version),
            };
            match store.meta_put(self.name, &bytes, expect).await {
                Ok(version) => return Ok(self.install(value, version)),
                Err(StoreError::MetaConflict(_)) => self.read(store).await?,
                Err(error) => return Err(store_error(error)),
            }
        }
    }

    async fn read(&self, store: &Store) -> Result<(), CqlError> {
        let (value, version) = match store.meta_get(self.name).await.map_err(store_error)? {
            Some(document) => {
                let value = serde_json::from_slice(&document.content).map_err(|error| {
                    CqlError::Server(format!("the document {} is damaged: {error}", self.name))
                })?;
                (value, document.version)
            }
            None => (T::default(), 0),
        };
        self.install(value, version);
        Ok(())
    }

    fn install(&self, value: T, version: u64) -> Arc<T> {
        let value = Arc::new(value);
        self.value.store(value.clone());
        self.version.store(version, Ordering::Release);
        value
    }
}
