//! The tables that have ever had a partition header. Reads of other tables skip the lookup of the header.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use helenus_cql::error::CqlError;
use helenus_row::TableId;
use helenus_tablet::{MetaExpect, Store, StoreError};
use tokio::sync::Mutex;

use crate::failure::store_error;

/// Name of the document in the store.
pub(crate) const DOCUMENT: &str = "header-tables";

/// The set of tables, stored as a small document beside the tablets. It only grows, because a table's id is never used again.
#[derive(Debug, Default)]
pub struct HeaderTables {
    tables: ArcSwap<BTreeSet<u32>>,
    /// The tables that every node has in its set, so that headers may be written.
    pub(super) agreed: ArcSwap<BTreeSet<u32>>,
    version: AtomicU64,
    changing: Mutex<()>,
}

impl HeaderTables {
    /// Reads the set from the store.
    pub async fn load(&self, store: &Store) -> Result<(), CqlError> {
        let _changing = self.changing.lock().await;
        self.read(store).await
    }

    /// Reads the set from the store if it may have changed.
    pub async fn load_changed(&self, store: &Store) -> Result<(), CqlError> {
        let _changing = self.changing.lock().await;
        match store.meta_may_differ(DOCUMENT).await.map_err(store_error)? {
            true => self.read(store).await,
            false => Ok(()),
        }
    }

    async fn read(&self, store: &Store) -> Result<(), CqlError> {
        let (tables, version) = match store.meta_get(DOCUMENT).await.map_err(store_error)? {
            Some(document) => {
                let tables: BTreeSet<u32> = serde_json::from_slice(&document.content).map_err(|error| {
                    CqlError::Server(format!("the document {DOCUMENT} is damaged: {error}"))
                })?;
                (tables, document.version)
            }
            None => (BTreeSet::new(), 0),
        };
        self.tables.store(Arc::new(tables));
        self.version.store(version, Ordering::Release);
        Ok(())
    }

    /// Returns the numbers of all tables whose partitions may have a header.
    pub fn all(&self) -> Vec<u32> {
        self.tables.load().iter().copied().collect()
    }

    /// Returns the version of the loaded document.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Returns true if a partition of the table may have a header.
    pub fn contains(&self, table: TableId) -> bool {
        self.tables.load().contains(&table.0)
    }

    pub(super) async fn write(&self, store: &Store, table: TableId) -> Result<(), CqlError> {
        let _changing = self.changing.lock().await;
        loop {
            let mut tables = BTreeSet::clone(&self.tables.load());
            if !tables.insert(table.0) {
                return Ok(());
            }
            let bytes = serde_json::to_vec(&tables).map_err(|error| CqlError::Server(error.to_string()))?;
            let expect = match self.version() {
                0 => MetaExpect::Absent,
                version => MetaExpect::Version(version),
            };
            match store.meta_put(DOCUMENT, &bytes, expect).await {
                Ok(version) => {
                    self.tables.store(tables.into());
                    self.version.store(version, Ordering::Release);
                    return Ok(());
                }
                // Another node added a table concurrently.
                Err(StoreError::MetaConflict(_)) => self.read(store).await?,
                Err(error) => return Err(store_error(error)),
            }
        }
    }
}
