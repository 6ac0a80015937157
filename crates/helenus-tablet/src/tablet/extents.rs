//! Where the bytes of a tablet's SSTables are: the blocks of each, by the key at which they begin. Read from the tables' indexes alone.

use std::sync::Arc;

use super::Tablet;
use crate::error::{StoreError, from_slatedb};
use crate::tree::sstable::{OpenTable, Table};

/// An SSTable of a tablet.
pub struct TableFile {
    table: Table,
    tablet: u32,
}

impl TableFile {
    /// Returns the same as long as the file is there, and no other file's. A clone shares the file of another tablet, and is counted apart.
    pub fn id(&self) -> (u32, u128) {
        (self.tablet, self.table.handle.id.value().0)
    }

    /// Returns the bytes of the file, blocks, filter and index.
    pub fn bytes(&self) -> u64 {
        self.table.handle.estimate_size()
    }

    /// Returns the first key, and the last if it is known.
    pub fn keys(&self) -> (&[u8], Option<&[u8]>) {
        (&self.table.first, self.table.last.as_deref())
    }
}

/// The blocks of an SSTable.
pub struct FileBlocks {
    open: Arc<OpenTable>,
    /// Where the last block ends.
    end: u64,
}

impl FileBlocks {
    /// For each block, a key that is at most its first and above those of the blocks before, and its bytes on disk.
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
    /// The file can't be read, or was deleted by a compaction since.
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
