//! What a store's folder says of itself beside its data: the inventory, and how far its log had come.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::disk::checksummed_objects::{Seals, seal_all};
use crate::error::StoreError;
use crate::log::replay::{Promised, Replayed};
use crate::log::{End, Reached};
use crate::metadata::folders::Folders;
use crate::metadata::format::Format;
use crate::metadata::inventory::{Contents, Inventory};

/// The books of a store that is being opened.
pub(crate) struct Books {
    pub inventory: Arc<Inventory>,
    /// A store of an older format has none yet.
    pub end: Option<End>,
}

impl Books {
    /// Reads the books, and refuses a store without one of its small documents. The documents of a store of an older format, which has no
    /// books, are sealed.
    pub fn open(folders: &Folders, format: &Format, seals: &Seals, fsync: bool) -> Result<Books, StoreError> {
        if !format.is_checked() {
            seal_all(&folders.root, fsync)?;
            return Ok(Books {
                inventory: Arc::new(Inventory::new(folders, Contents::new(), fsync)),
                end: None,
            });
        }
        seals.require();
        let inventory = Inventory::load(folders, fsync)?;
        inventory.check_documents(folders)?;
        Ok(Books {
            inventory: Arc::new(inventory),
            end: Some(End::open(&folders.log())?),
        })
    }

    /// What the log must hold.
    pub fn promised(&self) -> Promised {
        match &self.end {
            Some(end) => Promised {
                first: self.inventory.contents().log_first,
                reached: end.reached(),
            },
            None => Promised::default(),
        }
    }

    /// Writes the first books of a store of an older format, whose log has been read: from now on it is one of the newest.
    pub fn upgrade(
        folders: &Folders,
        format: &Format,
        replayed: &Replayed,
        flushed: BTreeMap<u32, u64>,
        fsync: bool,
    ) -> Result<Books, StoreError> {
        let (segment, offset) = replayed.newest;
        let oldest = replayed.segments.first().map(|oldest| oldest.number);
        let mut contents = Contents::new();
        contents.log_first = oldest.unwrap_or(segment + 1);
        contents.flushed = flushed;
        contents.documents = folders.documents()?;
        let (inventory, end) = folders.upgrade(format, contents, Reached { segment, offset }, fsync)?;
        Ok(Books {
            inventory: Arc::new(inventory),
            end: Some(end),
        })
    }
}
