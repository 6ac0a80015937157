//! Which tables have ever had a partition header. Reads of the others skip the header's look-up.

use std::collections::BTreeSet;
use std::sync::Arc;

use arc_swap::ArcSwap;
use helenus_cql::error::CqlError;
use helenus_row::TableId;
use helenus_tablet::Store;
use tokio::sync::Mutex;

use super::super::engine::store_error;

/// Name of the document in the store.
const DOCUMENT: &str = "header-tables";

/// The set, kept as a small document beside the tablets. It only grows; a table's id is never used again.
#[derive(Debug, Default)]
pub struct HeaderTables {
    tables: ArcSwap<BTreeSet<u32>>,
    changing: Mutex<()>,
}

impl HeaderTables {
    /// Reads the set from the store.
    pub async fn load(&self, store: &Store) -> Result<(), CqlError> {
        let tables = match store.meta_get(DOCUMENT).await.map_err(store_error)? {
            Some(document) => serde_json::from_slice(&document.content)
                .map_err(|error| CqlError::Server(format!("the document {DOCUMENT} is damaged: {error}")))?,
            None => BTreeSet::new(),
        };
        self.tables.store(Arc::new(tables));
        Ok(())
    }

    /// True if a partition of the table may have a header.
    pub fn contains(&self, table: TableId) -> bool {
        self.tables.load().contains(&table.0)
    }

    /// Makes the table one of the set, durably, before its first header is written.
    pub async fn add(&self, store: &Store, table: TableId) -> Result<(), CqlError> {
        if self.contains(table) {
            return Ok(());
        }
        let _changing = self.changing.lock().await;
        let mut tables = BTreeSet::clone(&self.tables.load());
        if !tables.insert(table.0) {
            return Ok(());
        }
        let bytes = serde_json::to_vec(&tables).map_err(|error| CqlError::Server(error.to_string()))?;
        store
            .meta_put(DOCUMENT, &bytes, helenus_tablet::MetaExpect::Any)
            .await
            .map_err(store_error)?;
        self.tables.store(tables.into());
        Ok(())
    }
}
