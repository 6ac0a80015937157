//! Sizes of tables and partitions on disk. All tables share the SSTables of the tablets. The indexes of the SSTables show where the blocks
//! of a table begin.
//!
//! Sizes are exact to a block of 4 KiB. A block that two tables or partitions share counts for the one that begins it. Rows that are only
//! in memory and in the log are not counted.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_row::{TableId, key};
use helenus_tablet::{FileBlocks, PinnedTablet, Tablet, TokenRange};
use parking_lot::Mutex;

use super::Engine;
use crate::boxed;
use crate::failure::store_error;

/// Number of partitions remembered for each SSTable, the largest ones.
const LARGEST: usize = 32;

/// The size of a table on disk.
#[derive(Clone, Debug, Default)]
pub struct TableSize {
    pub bytes: u64,
    /// Number of SSTables that contain rows of the table.
    pub files: u64,
    /// Bytes of the table's largest partition.
    pub largest_partition: u64,
    /// Maximum number of bytes of the table in one SSTable.
    pub largest_file: u64,
}

/// The tables and largest partitions of an SSTable.
#[derive(Debug, Default)]
struct FileSummary {
    tables: BTreeMap<TableId, u64>,
    /// The largest partitions, by the prefix of their keys.
    partitions: Vec<(Bytes, u64)>,
}

/// Summaries of the SSTables. SSTables never change, so each is read only once.
#[derive(Debug, Default)]
pub(crate) struct FileSizes {
    known: Mutex<HashMap<(u32, u128), Arc<FileSummary>>>,
    /// Summaries of files that only snapshots contain.
    pinned: Mutex<HashMap<(u32, u128), Arc<FileSummary>>>,
}

impl FileSizes {
    /// Drops the summaries of files that only snapshots contain, because some of the files may have been deleted.
    pub fn forget_pinned(&self) {
        self.pinned.lock().clear();
    }
}

/// The size of a table in a snapshot.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PinnedSize {
    pub bytes: u64,
    /// Bytes in files that the tablets no longer contain.
    pub own_bytes: u64,
}

impl Engine {
    /// Returns the size of each table on the disk of this node, by the table's number. With a shared store, only tablets that this node
    /// owns are counted. The first call after a file was written reads the file's index.
    ///
    /// # Errors
    /// The store can't be read.
    #[boxed]
    pub async fn table_sizes(&self) -> Result<BTreeMap<TableId, TableSize>, CqlError> {
        let files = self.file_summaries().await?;
        Ok(sum(files.iter().map(Arc::as_ref)))
    }

    /// Returns the key prefixes and bytes of the largest partitions, the largest first. Only the largest partitions of each file are known,
    /// so a partition that is spread over many files may be larger than returned.
    ///
    /// # Errors
    /// The store can't be read.
    pub(crate) async fn largest_prefixes(&self, most: usize) -> Result<Vec<(Bytes, u64)>, CqlError> {
        let files = self.file_summaries().await?;
        let partitions = partitions_of(files.iter().map(Arc::as_ref));
        let mut largest: Vec<(Bytes, u64)> = partitions
            .into_iter()
            .map(|(prefix, bytes)| (prefix.clone(), bytes))
            .collect();
        largest.sort_by(|left, right| right.1.cmp(&left.1).then_with(|| left.0.cmp(&right.0)));
        largest.truncate(most);
        Ok(largest)
    }

    /// Returns each tablet of this node, with the bytes of the tables for which `is_counted` is true, and of all tables.
    ///
    /// # Errors
    /// The store can't be read.
    pub(super) async fn bytes_by_tablet(
        &self,
        is_counted: impl Fn(TableId) -> bool,
    ) -> Result<Vec<(Arc<Tablet>, u64, u64)>, CqlError> {
        self.file_summaries().await?;
        let known = self.file_sizes.known.lock();
        let tablets = self.context.store.tablets();
        let bytes_of = |tablet: &Arc<Tablet>| {
            let files = tablet.files();
            let summaries = files.iter().filter_map(|file| known.get(&file.id()));
            let tables = summaries.flat_map(|summary| &summary.tables);
            let (mut counted, mut all) = (0, 0);
            for (table, bytes) in tables {
                all += bytes;
                counted += if is_counted(*table) { *bytes } else { 0 };
            }
            (tablet.clone(), counted, all)
        };
        Ok(tablets.iter().map(bytes_of).collect())
    }

    /// Returns the size of each table in pinned tablets, by the table's number. Files that [`Engine::table_sizes`] last saw count as files
    /// of the present tablets.
    ///
    /// # Errors
    /// The store can't be read.
    pub(crate) async fn pinned_sizes(
        &self,
        pinned: &[PinnedTablet],
    ) -> Result<BTreeMap<TableId, PinnedSize>, CqlError> {
        let store = self
            .context
            .store
            .open_pinned(pinned)
            .await
            .map_err(store_error)?;
        let mut sizes = BTreeMap::<TableId, PinnedSize>::new();
        for tablet in store.tablets().iter() {
            for file in tablet.files() {
                let of_today = self.file_sizes.known.lock().get(&file.id()).cloned();
                let is_own = of_today.is_none();
                let known = of_today.or_else(|| self.file_sizes.pinned.lock().get(&file.id()).cloned());
                let summary = match known {
                    Some(known) => known,
                    None => {
                        let blocks = tablet.file_blocks(&file).await.map_err(store_error)?;
                        let summary = Arc::new(FileSummary::new(&blocks, tablet));
                        self.file_sizes.pinned.lock().insert(file.id(), summary.clone());
                        summary
                    }
                };
                for (table, bytes) in &summary.tables {
                    let size = sizes.entry(*table).or_default();
                    size.bytes += bytes;
                    size.own_bytes += if is_own { *bytes } else { 0 };
                }
            }
        }
        Ok(sizes)
    }

    /// Returns the summaries of all files, and creates those that are missing.
    async fn file_summaries(&self) -> Result<Vec<Arc<FileSummary>>, CqlError> {
        let mut known = HashMap::new();
        for tablet in self.context.store.tablets().iter() {
            for file in tablet.files() {
                let found = self.file_sizes.known.lock().get(&file.id()).cloned();
                let summary = match found {
                    Some(found) => found,
                    None => match tablet.file_blocks(&file).await {
                        Ok(blocks) => Arc::new(FileSummary::new(&blocks, tablet)),
                        // A compaction has replaced the file.
                        Err(_) if !tablet.files().iter().any(|now| now.id() == file.id()) => continue,
                        Err(error) => return Err(store_error(error)),
                    },
                };
                known.insert(file.id(), summary);
            }
        }
        let files = known.values().cloned().collect();
        // Summaries of deleted files are dropped.
        *self.file_sizes.known.lock() = known;
        Ok(files)
    }
}

/// Returns the bytes of each known partition.
fn partitions_of<'s>(files: impl Iterator<Item = &'s FileSummary>) -> HashMap<&'s Bytes, u64> {
    let mut partitions = HashMap::new();
    for (prefix, bytes) in files.flat_map(|file| &file.partitions) {
        *partitions.entry(prefix).or_default() += bytes;
    }
    partitions
}

fn sum<'s>(files: impl Iterator<Item = &'s FileSummary> + Clone) -> BTreeMap<TableId, TableSize> {
    let mut sizes = BTreeMap::<TableId, TableSize>::new();
    for file in files.clone() {
        for (table, bytes) in &file.tables {
            let size = sizes.entry(*table).or_default();
            size.bytes += bytes;
            size.files += 1;
            size.largest_file = size.largest_file.max(*bytes);
        }
    }
    for (prefix, bytes) in partitions_of(files) {
        if let Some(size) = table_of(prefix).and_then(|table| sizes.get_mut(&table)) {
            size.largest_partition = size.largest_partition.max(bytes);
        }
    }
    sizes
}

/// Returns the table whose number begins the key.
fn table_of(key: &[u8]) -> Option<TableId> {
    key.first_chunk()
        .map(|number| TableId(u32::from_be_bytes(*number)))
}

impl FileSummary {
    fn new(blocks: &FileBlocks, tablet: &Tablet) -> FileSummary {
        let tokens = tablet.token_range();
        let mut summary = FileSummary::default();
        let mut current: (&[u8], u64) = (&[], 0);
        for (key, bytes) in blocks.iter().filter(|(key, _)| is_within(tokens, key)) {
            if let Some(table) = table_of(key) {
                *summary.tables.entry(table).or_default() += bytes;
            }
            // A key of the file's index may end within the partition key.
            let prefix = key::partition_prefix_len(key).and_then(|len| key.get(..len));
            match prefix {
                Some(prefix) if prefix == current.0 => current.1 += bytes,
                prefix => {
                    summary.enter(current);
                    current = (prefix.unwrap_or_default(), bytes);
                }
            }
        }
        summary.enter(current);
        summary.partitions.shrink_to_fit();
        summary
    }

    /// Remembers a partition if it is one of the largest.
    fn enter(&mut self, (prefix, bytes): (&[u8], u64)) {
        if prefix.is_empty() {
            return;
        }
        if self.partitions.len() < LARGEST {
            return self.partitions.push((Bytes::copy_from_slice(prefix), bytes));
        }
        let smallest = self.partitions.iter_mut().min_by_key(|(_, bytes)| *bytes);
        if let Some(smallest) = smallest.filter(|(_, least)| *least < bytes) {
            *smallest = (Bytes::copy_from_slice(prefix), bytes);
        }
    }
}

/// Returns false for keys outside the tablet. A file may contain such keys because two tablets share it after a split.
fn is_within(tokens: TokenRange, key: &[u8]) -> bool {
    key::token_of(key).is_none_or(|token| tokens.contains(token))
}
