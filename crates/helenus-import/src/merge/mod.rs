//! The k-way merge of a table's SSTables, of all sources.
//!
//! Each SSTable is in order of tokens, partition keys and clusterings. A heap holds the next item of each, so that equal rows of several
//! files come together and are merged by the rules of cells. The target merges again with what it has, so the merge here only saves work;
//! for counters alone it is needed, because their shards must be added once.
//!
//! Deletions are passed through: those of partitions before their rows, and those of ranges when they close. The cells that they cover
//! aren't sent, because the target drops a deletion once it covers nothing.

mod convert;
mod counter_rows;
mod head;
mod input;
mod statistics;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod merge_tests;
#[cfg(test)]
mod special_tests;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use helenus_row::key::KeyKind;
use helenus_row::transfer::{TransferBound, TransferItem};
use helenus_row::{Deletion, merge::merge};
use helenus_sstable::{Limits, RangeTombstoneMarker, Row, SsTable};

use self::convert::{Conversion, deletion_of};
use self::head::{Content, Head};
use self::input::Input;
pub use self::statistics::Statistics;
use crate::error::{ImportError, refused_row};
use crate::table::TableLayout;

/// Settings of a merge.
#[derive(Clone, Copy, Debug, Default)]
pub struct MergeOptions {
    /// Partitions of lower tokens are skipped. `None` for all.
    pub from_token: Option<i64>,
    /// The timestamp in µs of counters' totals. `None` for that of their newest version.
    pub counters_at_us: Option<i64>,
    /// Time in µs. Cells and deletions with lower timestamps are left out. `None` for all. Counters need all.
    pub since_us: Option<i64>,
    pub limits: Limits,
}

impl MergeOptions {
    /// Returns true if a cell or a deletion of this timestamp is taken.
    fn takes(&self, timestamp_us: i64) -> bool {
        self.since_us.is_none_or(|since_us| timestamp_us >= since_us)
    }
}

/// The merged partitions of a table, item by item.
pub struct Merge {
    layout: Arc<TableLayout>,
    options: MergeOptions,
    inputs: Vec<Input>,
    heap: BinaryHeap<Reverse<Head>>,
    /// Heads of the same position, which are merged.
    group: Vec<Head>,
    ready: VecDeque<TransferItem>,
    token: Option<i64>,
    partition_deletion: Option<Deletion>,
    /// Number of inputs with an open range, so that rows outside ranges need no look at all inputs.
    open_ranges: usize,
    last_range: Option<TransferItem>,
    statistics: Statistics,
}

impl Merge {
    /// Opens all SSTables at their first partition.
    ///
    /// # Errors
    /// If a Data.db can't be opened or decoded.
    pub fn open(
        layout: Arc<TableLayout>,
        sstables: &[SsTable],
        files: &[crate::source::SstableFile],
        options: MergeOptions,
    ) -> Result<Merge, ImportError> {
        let has_positions = sstables.len() > 1;
        let mut inputs = Vec::with_capacity(sstables.len());
        for (sstable, file) in sstables.iter().zip(files) {
            let name = file.path();
            inputs.push(Input::open(
                &layout,
                sstable,
                name,
                file.data_bytes,
                has_positions,
                &options,
            )?);
        }
        Merge::of_inputs(layout, inputs, options)
    }

    fn of_inputs(
        layout: Arc<TableLayout>,
        inputs: Vec<Input>,
        options: MergeOptions,
    ) -> Result<Merge, ImportError> {
        let mut merge = Merge {
            statistics: Statistics::new(layout.left_out.len()),
            layout,
            options,
            heap: BinaryHeap::with_capacity(inputs.len()),
            inputs,
            group: Vec::new(),
            ready: VecDeque::new(),
            token: None,
            partition_deletion: None,
            open_ranges: 0,
            last_range: None,
        };
        for index in 0..merge.inputs.len() {
            merge.advance(index)?;
        }
        Ok(merge)
    }

    /// Returns the token of the partition to which the last item belongs. `None` before the first item.
    pub fn token(&self) -> Option<i64> {
        self.token
    }

    /// Returns what has been merged so far.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Returns the bytes of all Data.db that have been read so far, as they lie on the disk.
    pub fn bytes_read(&self) -> u64 {
        self.inputs.iter().map(Input::bytes_read).sum()
    }

    /// Returns the next item. `None` at the end.
    ///
    /// # Errors
    /// If a file can't be read or decoded, or rows can't be merged.
    pub fn next_item(&mut self) -> Result<Option<TransferItem>, ImportError> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Ok(Some(item));
            }
            if !self.take_group() {
                return Ok(None);
            }
            let group = std::mem::take(&mut self.group);
            self.merge_group(&group)?;
            for head in &group {
                self.advance(head.input)?;
            }
            self.group = group;
            self.group.clear();
        }
    }

    /// Takes the least heads that are equal. Returns false at the end.
    fn take_group(&mut self) -> bool {
        let Some(Reverse(first)) = self.heap.pop() else {
            return false;
        };
        self.group.push(first);
        while let (Some(Reverse(next)), Some(first)) = (self.heap.peek(), self.group.first())
            && next.is_same_place(first)
        {
            self.group.extend(self.heap.pop().map(|Reverse(head)| head));
        }
        true
    }

    fn advance(&mut self, index: usize) -> Result<(), ImportError> {
        let Some(input) = self.inputs.get_mut(index) else {
            return Ok(());
        };
        if let Some(head) = input.next_head(&self.layout, index)? {
            self.heap.push(Reverse(head));
        }
        Ok(())
    }

    fn merge_group(&mut self, group: &[Head]) -> Result<(), ImportError> {
        let Some(first) = group.first() else {
            return Ok(());
        };
        match &first.content {
            Content::Partition(_) => self.start_partition(first, group),
            Content::StaticRow(_) => {
                if let Some(row) = self.merge_rows(group, false)? {
                    self.ready.push_back(TransferItem::StaticRow(row));
                }
            }
            Content::Row(row) => {
                if let Some(packed) = self.merge_rows(group, true)? {
                    let clustering = row.clustering.iter().map_while(Clone::clone).collect();
                    self.statistics.rows += 1;
                    let row = packed;
                    self.ready.push_back(TransferItem::Row { clustering, row });
                }
            }
            Content::Marker(_) => {
                for head in group {
                    if let Content::Marker(marker) = &head.content {
                        self.marker(head.input, marker);
                    }
                }
            }
            Content::End => {
                for head in group {
                    self.close(head.input, TransferBound::default());
                }
            }
        }
        Ok(())
    }

    fn start_partition(&mut self, first: &Head, group: &[Head]) {
        let deletions = group.iter().map(|head| match &head.content {
            Content::Partition(deletion) => *deletion,
            _ => None,
        });
        let newest = deletions.fold(None, Deletion::max);
        self.partition_deletion = newest.filter(|deletion| self.options.takes(deletion.timestamp_us));
        self.token = Some(first.token);
        self.last_range = None;
        self.statistics.partitions += 1;
        self.ready.push_back(TransferItem::Partition(first.key.clone()));
        if let Some(deletion) = self.partition_deletion {
            self.statistics.tombstones += 1;
            self.ready.push_back(TransferItem::PartitionDeletion(deletion));
        }
    }

    /// Merges the versions of a row into a packed one. `None` if nothing of it is imported.
    fn merge_rows(&mut self, group: &[Head], has_ranges: bool) -> Result<Option<Bytes>, ImportError> {
        let covering = self.covering(has_ranges);
        if self.layout.is_counter {
            return self.merge_counters(group, covering);
        }
        let mut packed = Vec::with_capacity(group.len());
        for (row, input) in rows(group) {
            let Some(input) = self.inputs.get(input) else {
                continue;
            };
            let mut conversion = Conversion {
                targets: &input.targets,
                has_liveness: self.layout.has_liveness,
                covering,
                since_us: self.options.since_us,
                statistics: &mut self.statistics,
            };
            packed.extend(conversion.pack(row));
        }
        match packed.as_slice() {
            [] => Ok(None),
            [single] => Ok(Some(single.clone())),
            several => merge(KeyKind::Row, None, several).map(Some).map_err(|error| {
                let file = group.first().and_then(|head| self.inputs.get(head.input));
                refused_row(file.map_or("", |input| &input.file), &error)
            }),
        }
    }

    /// Returns the strongest deletion of the partition and, for rows, of the ranges that are open.
    fn covering(&self, has_ranges: bool) -> Option<Deletion> {
        if !has_ranges || self.open_ranges == 0 {
            return self.partition_deletion;
        }
        let open = self.inputs.iter().filter_map(|input| input.open.as_ref());
        open.fold(self.partition_deletion, |known, (_, deletion)| {
            Deletion::max(known, Some(*deletion))
        })
    }

    fn merge_counters(
        &mut self,
        group: &[Head],
        covering: Option<Deletion>,
    ) -> Result<Option<Bytes>, ImportError> {
        let versions = rows(group).filter_map(|(row, input)| Some((row, self.inputs.get(input)?)));
        counter_rows::merge(
            versions,
            covering,
            self.options.counters_at_us,
            &mut self.statistics,
        )
    }

    /// Closes the range that ends at the marker, and opens that which starts.
    fn marker(&mut self, index: usize, marker: &RangeTombstoneMarker) {
        let values: Vec<Bytes> = marker.prefix.iter().map_while(Clone::clone).collect();
        let kind = marker.kind;
        if kind.is_end() {
            self.close(
                index,
                TransferBound {
                    values: values.clone(),
                    is_inclusive: head::ends_inclusive(kind),
                },
            );
        }
        let start = marker.start.filter(|time| self.options.takes(time.timestamp_us));
        if let (Some(time), Some(input)) = (start, self.inputs.get_mut(index)) {
            let start = TransferBound {
                values,
                is_inclusive: head::starts_inclusive(kind),
            };
            let before = input.open.replace((start, deletion_of(time)));
            self.open_ranges += usize::from(before.is_none());
        }
    }

    /// Emits the open range of an input, if there is one. Equal ranges of several replicas are emitted once.
    fn close(&mut self, index: usize, end: TransferBound) {
        let Some((start, deletion)) = self.inputs.get_mut(index).and_then(|input| input.open.take()) else {
            return;
        };
        self.open_ranges -= 1;
        let range = TransferItem::RangeDeletion { start, end, deletion };
        if self.last_range.as_ref() == Some(&range) {
            return;
        }
        self.statistics.tombstones += 1;
        self.ready.push_back(range.clone());
        self.last_range = Some(range);
    }
}

/// Returns the rows of a group, with the indexes of their inputs.
fn rows(group: &[Head]) -> impl Iterator<Item = (&Row, usize)> {
    group.iter().filter_map(|head| match &head.content {
        Content::Row(row) | Content::StaticRow(row) => Some((row, head.input)),
        Content::Partition(_) | Content::Marker(_) | Content::End => None,
    })
}
