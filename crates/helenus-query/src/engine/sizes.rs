//! What tables and partitions take on disk. All tables share the SSTables of the tablets; their indexes tell where the blocks of each begin.
//!
//! Sizes are exact to the block, which has 4 KiB: a block that two tables or partitions share belongs to the one that begins it. What lies in
//! memory and in the log alone is not counted.

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

/// Partitions that are remembered of an SSTable, the largest.
const LARGEST: usize = 32;

/// What a table takes on disk.
#[derive(Clone, Debug, Default)]
pub struct TableSize {
    pub bytes: u64,
    /// SSTables that have some of it.
    pub files: u64,
    /// The bytes of its largest partition.
    pub largest_partition: u64,
    /// The most bytes that one SSTable has of it.
    pub largest_file: u64,
}

/// What an SSTable holds.
#[derive(Debug, Default)]
struct FileSummary {
    tables: BTreeMap<TableId, u64>,
    /// By the prefix of their keys.
    partitions: Vec<(Bytes, u64)>,
}

/// The summaries of the SSTables, which do not change: each is read once.
#[derive(Debug, Default)]
pub(crate) struct FileSizes {
    known: Mutex<HashMap<(u32, u128), Arc<FileSummary>>>,
    /// Of files that only snapshots have.
    pinned: Mutex<HashMap<(u32, u128), Arc<FileSummary>>>,
}

impl FileSizes {
    /// Forgets the files that only snapshots have: some of them may have gone.
    pub fn forget_pinned(&self) {
        self.pinned.lock().clear();
    }
}

/// What a table takes in a snapshot.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PinnedSize {
    pub bytes: u64,
    /// In files that the tablets of today do not have.
    pub own_bytes: u64,
}

impl Engine {
    /// What each table takes on the disk of this node, or of a shared store in the tablets that this node owns, by the number of the table.
    /// The first call after a file was written reads its index.
    ///
    /// # Errors
    /// When the store can't be read.
    #[boxed]
    pub async fn table_sizes(&self) -> Result<BTreeMap<TableId, TableSize>, CqlError> {
        let files = self.file_summaries().await?;
        Ok(sum(files.iter().map(Arc::as_ref)))
    }

    /// Returns the prefixes of the keys of the partitions that take the most there, and their bytes, the largest first. Of each file the
    /// largest are known: one that is spread over many may be larger.
    ///
    /// # Errors
    /// When the store can't be read.
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

    /// For each tablet of this node, the bytes of tables that `is_counted` is true of, and of all.
    ///
    /// # Errors
    /// When the store can't be read.
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

    /// What each table takes in pinned tablets, by its number. The files of today are those that [`Engine::table_sizes`] has seen last.
    ///
    /// # Errors
    /// When the store can't be read.
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

    /// Returns the summaries of all files; those that are not known yet are made.
    async fn file_summaries(&self) -> Result<Vec<Arc<FileSummary>>, CqlError> {
        let mut known = HashMap::new();
        for tablet in self.context.store.tablets().iter() {
            for file in tablet.files() {
                let found = self.file_sizes.known.lock().get(&file.id()).cloned();
                let summary = match found {
                    Some(found) => found,
                    None => match tablet.file_blocks(&file).await {
                        Ok(blocks) => Arc::new(FileSummary::new(&blocks, tablet)),
                        // A compaction has replaced it.
                        Err(_) if !tablet.files().iter().any(|now| now.id() == file.id()) => continue,
                        Err(error) => return Err(store_error(error)),
                    },
                };
                known.insert(file.id(), summary);
            }
        }
        let files = known.values().cloned().collect();
        // Of files that are gone nothing is kept.
        *self.file_sizes.known.lock() = known;
        Ok(files)
    }
}

/// Returns the bytes of each partition that is known.
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

/// Returns the table that a key begins with.
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
            // A key of the index may end within the partition's.
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

    /// Remembers a partition, if it is one of the largest.
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

/// Returns false of what a tablet does not see of the files that it shares with another.
fn is_within(tokens: TokenRange, key: &[u8]) -> bool {
    key::token_of(key).is_none_or(|token| tokens.contains(token))
}
