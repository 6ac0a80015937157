//! The distribution of bytes in a tablet's SSTables: the blocks of each, by the key at which they begin. Only the tables' indexes are read.

use std::sync::Arc;

use super::Tablet;
use crate::error::{StoreError, from_slatedb};
use crate::tree::sstable::{OpenTable, Table};

/// An SSTable of a tablet.
pub struct TableFile {
    table: Arc<Table>,
    tablet: u32,
}

impl TableFile {
    /// Returns an id that is stable as long as the file exists and that no other file has. A clone shares files with another tablet, under
    /// ids of its own.
    pub fn id(&self) -> (u32, u128) {
        (self.tablet, self.table.handle.id.value().0)
    }

    /// Returns the bytes of the file: blocks, filter and index.
    pub fn bytes(&self) -> u64 {
        self.table.handle.estimate_size()
    }

    /// Returns the first key, and the last. The last is `None` if it is not known.
    pub fn keys(&self) -> (&[u8], Option<&[u8]>) {
        (&self.table.first, self.table.last.as_deref())
    }
}

/// The blocks of an SSTable.
pub struct FileBlocks {
    open: Arc<OpenTable>,
    /// Offset at which the last block ends.
    end: u64,
}

impl FileBlocks {
    /// Returns a key and the bytes on disk of each block. The key is at most the block's first, and above all keys of the blocks before it.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], u64)> {
        let index = &self.open.index;
        (0..index.len()).filter_map(move |block| {
            let (offset, key) = index.get(block)?;
            let end = index.get(block + 1).map_or(self.end, |(next, _)| next);
            Some((key, end.saturating_sub(offset)))
        })
    }
}

impl Tablet {
    /// Returns the SSTables of the newest manifest.
    pub fn files(&self) -> Vec<TableFile> {
        let Some(manifest) = self.db.manifest() else {
            return Vec::new();
        };
        let files = self.tables.files(&manifest);
        let tables = files.level0.into_iter().chain(files.runs.into_iter().flatten());
        tables
            .map(|table| TableFile {
                table,
                tablet: self.id,
            })
            .collect()
    }

    /// Returns the blocks of one of [`Tablet::files`].
    ///
    /// # Errors
    /// The file cannot be read, or a compaction has deleted it.
    pub async fn file_blocks(&self, file: &TableFile) -> Result<FileBlocks, StoreError> {
        let opened = self.tables.table(&file.table).await;
        let open = opened.map_err(|error| from_slatedb(&error))?;
        let info = &file.table.handle.info;
        let parts = [
            (info.filter_offset, info.filter_len),
            (info.stats_offset, info.stats_len),
            (info.index_offset, info.index_len),
        ];
        let ends = parts
            .iter()
            .filter(|(_, len)| *len > 0)
            .map(|(offset, _)| *offset);
        Ok(FileBlocks {
            open,
            end: ends.min().unwrap_or_default(),
        })
    }
}
