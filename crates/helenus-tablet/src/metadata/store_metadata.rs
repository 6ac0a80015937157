//! Opens and validates the inventory and the log's high-water mark, and creates them for stores of an older format.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::disk::checksummed_objects::{ManifestChecksums, seal_all};
use crate::error::StoreError;
use crate::log::replay::{ExpectedLog, Replayed};
use crate::log::{HighWaterMark, LogPosition};
use crate::metadata::folders::Folders;
use crate::metadata::format::Format;
use crate::metadata::inventory::{Inventory, InventoryRecord};

/// Inventory and high-water mark of a store that is being opened.
pub(crate) struct StoreMetadata {
    pub inventory: Arc<Inventory>,
    /// The log's high-water mark. `None` in a store of an older format.
    pub high_water_mark: Option<HighWaterMark>,
}

impl StoreMetadata {
    /// Reads the inventory and the high-water mark, and checks that all small documents exist. A store of an older format has neither; its
    /// documents are sealed instead.
    pub fn open(
        folders: &Folders,
        format: &Format,
        checksums: &ManifestChecksums,
        fsync: bool,
    ) -> Result<StoreMetadata, StoreError> {
        if !format.is_checked() {
            seal_all(&folders.root, fsync)?;
            return Ok(StoreMetadata {
                inventory: Arc::new(Inventory::new(folders, InventoryRecord::new(), fsync)),
                high_water_mark: None,
            });
        }
        checksums.require();
        let inventory = Inventory::load(folders, fsync)?;
        inventory.check_documents(folders)?;
        Ok(StoreMetadata {
            inventory: Arc::new(inventory),
            high_water_mark: Some(HighWaterMark::open(&folders.log())?),
        })
    }

    /// Returns the parts of the log that must exist.
    pub fn expected(&self) -> ExpectedLog {
        match &self.high_water_mark {
            Some(high_water_mark) => ExpectedLog {
                first: self.inventory.contents().log_first,
                reached: high_water_mark.reached(),
            },
            None => ExpectedLog::default(),
        }
    }

    /// Upgrades a store of an older format to the newest one, after its log has been replayed. Writes its first inventory and high-water
    /// mark.
    pub fn upgrade(
        folders: &Folders,
        format: &Format,
        replayed: &Replayed,
        flushed: BTreeMap<u32, u64>,
        fsync: bool,
    ) -> Result<StoreMetadata, StoreError> {
        let (segment, offset) = replayed.newest;
        let oldest = replayed.segments.first().map(|oldest| oldest.number);
        let mut contents = InventoryRecord::new();
        contents.log_first = oldest.unwrap_or(segment + 1);
        contents.flushed = flushed;
        contents.documents = folders.documents()?;
        let (inventory, high_water_mark) =
            folders.upgrade(format, contents, LogPosition { segment, offset }, fsync)?;
        Ok(StoreMetadata {
            inventory: Arc::new(inventory),
            high_water_mark: Some(high_water_mark),
        })
    }
}
