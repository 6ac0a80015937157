//! Inventory of the files that a store's folder must contain. With the inventory, files that were deleted by mistake or replaced by an
//! older copy are detected when the store is opened.
//!
//! `INVENTORY` lists the log segments and small documents, and the last record in each tablet's SSTables when the log was last trimmed. A
//! file that does not exist is never listed: a file is added after it was created and removed before it is deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::disk::checksummed_json;
use crate::disk::checksummed_json::ChecksummedDocument;
use crate::disk::durable_file::missing;
use crate::disk::durable_file::write_atomically;
use crate::error::StoreError;
use crate::metadata::folders::Folders;

/// Content of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InventoryRecord {
    /// The oldest segment of the log that is needed. Earlier ones were retired.
    pub log_first: u64,
    /// The log sequence number up to which each tablet's SSTables have all of its records.
    pub flushed: BTreeMap<u32, u64>,
    /// Names of the small documents.
    pub documents: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    checksum: Option<String>,
}

impl ChecksummedDocument for InventoryRecord {
    fn checksum(&mut self) -> &mut Option<String> {
        &mut self.checksum
    }
}

impl InventoryRecord {
    /// Returns the inventory of a new store.
    pub fn new() -> Self {
        InventoryRecord {
            log_first: 1,
            flushed: BTreeMap::new(),
            documents: BTreeSet::new(),
            checksum: None,
        }
    }
}

/// The inventory of an open store.
#[derive(Debug)]
pub(crate) struct Inventory {
    path: PathBuf,
    fsync: bool,
    contents: Mutex<InventoryRecord>,
}

impl Inventory {
    /// Returns an inventory that is not written yet.
    pub fn new(folders: &Folders, contents: InventoryRecord, fsync: bool) -> Self {
        Inventory {
            path: folders.inventory(),
            fsync,
            contents: Mutex::new(contents),
        }
    }

    /// Writes the first inventory of a store.
    pub fn create(folders: &Folders, contents: InventoryRecord, fsync: bool) -> Result<Self, StoreError> {
        let inventory = Inventory::new(folders, contents, fsync);
        inventory.write(&inventory.contents())?;
        Ok(inventory)
    }

    fn write(&self, contents: &InventoryRecord) -> Result<(), StoreError> {
        write_atomically(
            &self.path,
            &checksummed_json::encode(contents.clone()),
            self.fsync,
        )
    }

    /// Reads the inventory, which must exist.
    pub fn load(folders: &Folders, fsync: bool) -> Result<Self, StoreError> {
        let path = folders.inventory();
        let corrupt = |detail: String| StoreError::Corrupt {
            file: path.display().to_string(),
            detail,
        };
        let bytes = std::fs::read(&path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => corrupt("the file is missing".into()),
            _ => StoreError::io("cannot read", &path, &error),
        })?;
        let contents = checksummed_json::decode(&bytes, true).map_err(corrupt)?;
        Ok(Inventory::new(folders, contents, fsync))
    }

    pub fn contents(&self) -> InventoryRecord {
        self.contents.lock().clone()
    }

    /// Changes the inventory durably. Blocks briefly.
    pub fn change(&self, change: impl FnOnce(&mut InventoryRecord)) -> Result<(), StoreError> {
        let mut contents = self.contents.lock();
        let mut changed = contents.clone();
        change(&mut changed);
        if changed != *contents {
            self.write(&changed)?;
            *contents = changed;
        }
        Ok(())
    }

    /// Checks that all small documents exist.
    pub fn check_documents(&self, folders: &Folders) -> Result<(), StoreError> {
        for name in &self.contents.lock().documents {
            let path = folders.document(name);
            if !path.exists() {
                return Err(missing(&path.display().to_string()));
            }
        }
        Ok(())
    }

    /// Checks that a tablet's newest manifest is not older than one that existed before.
    pub fn check_flushed(&self, folders: &Folders, tablet: u32, flushed: u64) -> Result<(), StoreError> {
        let before = self.contents.lock().flushed.get(&tablet).copied();
        if before.is_none_or(|before| flushed >= before) {
            return Ok(());
        }
        Err(StoreError::Corrupt {
            file: folders.manifests(tablet).display().to_string(),
            detail: format!(
                "the newest manifest is missing: the tablet has its records up to {flushed} in SSTables, and had those up to {}",
                before.unwrap_or_default()
            ),
        })
    }
}

#[cfg(test)]
#[path = "inventory_tests.rs"]
mod tests;
