//! The tables that have ever had a partition header. Reads of other tables skip the lookup of the header.

use std::collections::BTreeSet;

use arc_swap::ArcSwap;
use helenus_cql::error::CqlError;
use helenus_row::TableId;
use helenus_tablet::Store;

use super::shared_document::SharedDocument;

/// Name of the document in the store.
pub(crate) const DOCUMENT: &str = "header-tables";

/// The set of tables, stored as a small document beside the tablets. It only grows, because a table's id is never used again.
#[derive(Debug)]
pub struct HeaderTables {
    tables: SharedDocument<BTreeSet<u32>>,
    /// The tables that every node has in its set, so that headers may be written.
    pub(super) agreed: ArcSwap<BTreeSet<u32>>,
}

impl Default for HeaderTables {
    fn default() -> HeaderTables {
        HeaderTables {
            tables: SharedDocument::new(DOCUMENT),
            agreed: ArcSwap::default(),
        }
    }
}

impl HeaderTables {
    /// Reads the set from the store.
    pub async fn load(&self, store: &Store) -> Result<(), CqlError> {
        self.tables.load(store).await
    }

    /// Reads the set from the store if it may have changed.
    pub async fn load_changed(&self, store: &Store) -> Result<(), CqlError> {
        self.tables.load_changed(store).await
    }

    /// Returns the numbers of all tables whose partitions may have a header.
    pub fn all(&self) -> Vec<u32> {
        self.tables.value().iter().copied().collect()
    }

    /// Returns the version of the loaded document.
    pub fn version(&self) -> u64 {
        self.tables.version()
    }

    /// Returns true if a partition of the table may have a header.
    pub fn contains(&self, table: TableId) -> bool {
        self.tables.value().contains(&table.0)
    }

    pub(super) async fn write(&self, store: &Store, table: TableId) -> Result<(), CqlError> {
        let with_table = |tables: &BTreeSet<u32>| {
            let mut tables = tables.clone();
            tables.insert(table.0).then_some(tables)
        };
        self.tables.change(store, with_table).await?;
        Ok(())
    }
}
