//! The join of a merge with a target's rows. Memory holds one row of each side, and the places of cells that only the target has.

use std::sync::Arc;

use bytes::Bytes;
use helenus_row::transfer::{TransferBound, TransferItem};
use helenus_row::{ClusteringRange, Deletion, Row, murmur3_token};

use super::cells::{SourceCells, TargetCells};
use super::compare::{Outcome, compare_row};
use crate::error::{ImportError, refused_key, refused_row};
use crate::merge::Merge;
use crate::table::TableLayout;

/// Rows of one partition that wait for the deletions of ranges, which come after the rows.
const WAITING_MAX: usize = 100_000;

/// A row that the target returned.
#[derive(Clone, Debug)]
pub struct TargetRow {
    /// The partition key in the form of SSTables.
    pub key: Bytes,
    /// `None` if the partition has only a static row.
    pub clustering: Option<Vec<Bytes>>,
    pub statics: TargetCells,
    pub cells: TargetCells,
}

/// The rows of a target, in order of tokens, keys and clusterings.
pub trait TargetRows {
    type Error: From<ImportError>;

    /// Returns the next row. `None` at the end.
    ///
    /// # Errors
    /// If the target can't be read.
    fn next_row(&mut self) -> Result<Option<TargetRow>, Self::Error>;
}

/// A row that differs, or differed while it was read.
#[derive(Clone, Debug)]
pub struct Suspect {
    pub key: Bytes,
    /// `None` for the static row.
    pub clustering: Option<Vec<Bytes>>,
    /// The source's packed row. `None` if the source has only a deletion.
    source: Option<Bytes>,
    covering: Option<Deletion>,
}

impl Suspect {
    /// Compares the row with what the target has now.
    ///
    /// # Errors
    /// If the source's row is corrupt.
    pub fn compare(
        &self,
        layout: &TableLayout,
        target: Option<&TargetRow>,
        now_s: i64,
    ) -> Result<Outcome, ImportError> {
        let row = unpack(self.source.as_ref())?;
        let source = SourceCells::new(layout, row.as_ref(), self.covering);
        let nothing = TargetCells::default();
        let cells = match &self.clustering {
            None => Some(target.map_or(&nothing, |row| &row.statics)),
            Some(_) => target.map(|row| &row.cells),
        };
        Ok(compare_row(&source, cells, now_s))
    }
}

/// Numbers of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Rows of the source.
    pub rows: u64,
    /// Live cells of the source.
    pub cells: u64,
    /// Cells that are newer on the target.
    pub newer: u64,
    /// Rows of which the source has nothing.
    pub rows_only_in_target: u64,
    /// Cells that the source doesn't have, with those of such rows.
    pub cells_only_in_target: u64,
    /// Rows that were not compared with the deletions of ranges, because their partition has too many others.
    pub not_compared_with_ranges: u64,
}

/// A row with cells that only the target has. A deletion of a range may still cover them.
struct Waiting {
    suspect: Suspect,
    encoded: Bytes,
    oldest_extra_us: i64,
}

/// Both streams side by side.
pub struct Join<T> {
    merge: Merge,
    layout: Arc<TableLayout>,
    target: T,
    now_s: fn() -> i64,
    /// The next row of the target.
    head: Option<Head>,
    is_begun: bool,
    is_over: bool,
    partition: Option<Partition>,
    suspects: Vec<Suspect>,
    waiting: Vec<Waiting>,
    counts: Counts,
}

struct Head {
    token: i64,
    encoded: Bytes,
    row: TargetRow,
}

struct Partition {
    token: i64,
    key: Bytes,
    deletion: Option<Deletion>,
    static_row: Option<Bytes>,
    is_static_done: bool,
}

impl<T: TargetRows> Join<T> {
    /// Creates a join. `now_s` is the clock, in s since 1970.
    pub fn new(merge: Merge, layout: Arc<TableLayout>, target: T, now_s: fn() -> i64) -> Join<T> {
        Join {
            merge,
            layout,
            target,
            now_s,
            head: None,
            is_begun: false,
            is_over: false,
            partition: None,
            suspects: Vec::new(),
            waiting: Vec::new(),
            counts: Counts::default(),
        }
    }

    pub fn counts(&self) -> Counts {
        self.counts
    }

    pub fn merge(&self) -> &Merge {
        &self.merge
    }

    /// Goes one item further. Returns the rows that differ, and `None` at the end.
    ///
    /// # Errors
    /// If either side can't be read.
    pub fn step(&mut self) -> Result<Option<Vec<Suspect>>, T::Error> {
        if self.is_over {
            return Ok(None);
        }
        if !self.is_begun {
            self.is_begun = true;
            self.advance()?;
        }
        match self.merge.next_item()? {
            None => {
                self.end_partition()?;
                while self.head.is_some() {
                    self.pass_target_only()?;
                }
                self.is_over = true;
            }
            Some(item) => self.take(item)?,
        }
        Ok(Some(std::mem::take(&mut self.suspects)))
    }

    fn take(&mut self, item: TransferItem) -> Result<(), T::Error> {
        match item {
            TransferItem::Partition(key) => {
                self.end_partition()?;
                let token = murmur3_token(&key);
                while self
                    .head
                    .as_ref()
                    .is_some_and(|head| (head.token, &head.row.key) < (token, &key))
                {
                    self.pass_target_only()?;
                }
                self.partition = Some(Partition {
                    token,
                    key,
                    deletion: None,
                    static_row: None,
                    is_static_done: false,
                });
            }
            TransferItem::PartitionDeletion(deletion) => {
                if let Some(partition) = &mut self.partition {
                    partition.deletion = Some(deletion);
                }
            }
            TransferItem::StaticRow(row) => {
                if let Some(partition) = &mut self.partition {
                    partition.static_row = Some(row);
                }
            }
            // CQL returns only the static row of such a table.
            TransferItem::Row { .. } | TransferItem::RangeDeletion { .. } if self.layout.has_hidden_rows => {}
            TransferItem::Row { clustering, row } => self.row(clustering, row)?,
            TransferItem::RangeDeletion { start, end, deletion } => self.range(&start, &end, deletion)?,
        }
        Ok(())
    }

    fn row(&mut self, clustering: Vec<Bytes>, row: Bytes) -> Result<(), T::Error> {
        self.compare_static()?;
        let encoded = self.encode(&clustering)?;
        while self
            .head_in_partition()
            .is_some_and(|head| head.encoded < encoded)
        {
            self.pass_target_only()?;
        }
        let is_same = |head: &Head| head.row.clustering.is_some() && head.encoded == encoded;
        let found = match self.head_in_partition().is_some_and(is_same) {
            true => {
                let head = self.head.take();
                self.advance()?;
                head.map(|head| head.row)
            }
            false => None,
        };
        self.counts.rows += 1;
        self.compare(Some(clustering), encoded, Some(row), found.as_ref())?;
        Ok(())
    }

    /// Compares the static row once, with the statics of the target's first row.
    fn compare_static(&mut self) -> Result<(), T::Error> {
        let Some(partition) = &mut self.partition else {
            return Ok(());
        };
        if std::mem::replace(&mut partition.is_static_done, true) {
            return Ok(());
        }
        let row = partition.static_row.take();
        let is_in_partition = self.head_in_partition().is_some();
        let head = self.head.take();
        let found = head.as_ref().map(|head| &head.row).filter(|_| is_in_partition);
        let has_only_statics = found.is_some_and(|row| row.clustering.is_none());
        if row.is_some() || found.is_some_and(|row| !row.statics.cells.is_empty()) {
            self.compare(None, Bytes::new(), row, found)?;
        }
        match has_only_statics {
            true => self.advance()?,
            false => self.head = head,
        }
        Ok(())
    }

    fn compare(
        &mut self,
        clustering: Option<Vec<Bytes>>,
        encoded: Bytes,
        source: Option<Bytes>,
        target: Option<&TargetRow>,
    ) -> Result<(), ImportError> {
        let Some(partition) = &self.partition else {
            return Ok(());
        };
        let suspect = Suspect {
            key: partition.key.clone(),
            clustering,
            source,
            covering: partition.deletion,
        };
        let outcome = suspect.compare(&self.layout, target, (self.now_s)())?;
        self.counts.cells += outcome.cells;
        self.counts.newer += outcome.newer;
        self.counts.cells_only_in_target += outcome.only_in_target;
        if !outcome.differences.is_empty() {
            self.suspects.push(suspect);
            return Ok(());
        }
        // Ranges never cover static rows.
        let Some(oldest_extra_us) = outcome.oldest_extra_us.filter(|_| suspect.clustering.is_some()) else {
            return Ok(());
        };
        if self.waiting.len() >= WAITING_MAX {
            self.counts.not_compared_with_ranges += 1;
            return Ok(());
        }
        self.waiting.push(Waiting {
            suspect,
            encoded,
            oldest_extra_us,
        });
        Ok(())
    }

    /// Compares what only the target has with the deletion of a range.
    fn range(
        &mut self,
        start: &TransferBound,
        end: &TransferBound,
        deletion: Deletion,
    ) -> Result<(), T::Error> {
        self.compare_static()?;
        let range = self.clustering_range(start, end)?;
        let is_before_end = |encoded: &Bytes| range.end.as_ref().is_none_or(|end| encoded < end);
        while self
            .head_in_partition()
            .is_some_and(|head| is_before_end(&head.encoded))
        {
            self.pass_target_only()?;
        }
        let is_covered = |waiting: &Waiting| {
            waiting.encoded >= range.start
                && is_before_end(&waiting.encoded)
                && deletion.deletes(waiting.oldest_extra_us)
        };
        for covered in self.waiting.extract_if(.., |waiting| is_covered(waiting)) {
            let mut suspect = covered.suspect;
            suspect.covering = Deletion::max(suspect.covering, Some(deletion));
            self.suspects.push(suspect);
        }
        Ok(())
    }

    fn end_partition(&mut self) -> Result<(), T::Error> {
        self.compare_static()?;
        while self.head_in_partition().is_some() {
            self.pass_target_only()?;
        }
        self.partition = None;
        self.waiting.clear();
        Ok(())
    }

    /// Counts the target's next row, which the source doesn't have, and compares it with the deletion of its partition.
    fn pass_target_only(&mut self) -> Result<(), T::Error> {
        let is_known = self.head_in_partition().is_some();
        let Some(head) = self.head.take() else {
            return Ok(());
        };
        self.advance()?;
        self.counts.rows_only_in_target += 1;
        match is_known {
            true => self.compare(head.row.clustering.clone(), head.encoded, None, Some(&head.row))?,
            false => self.counts.cells_only_in_target += head.row.cells.cells.len() as u64,
        }
        Ok(())
    }

    /// Returns the target's next row, if it is in the current partition.
    fn head_in_partition(&self) -> Option<&Head> {
        let (head, partition) = (self.head.as_ref()?, self.partition.as_ref()?);
        (head.token == partition.token && head.row.key == partition.key).then_some(head)
    }

    fn advance(&mut self) -> Result<(), T::Error> {
        self.head = match self.target.next_row()? {
            None => None,
            Some(row) => Some(Head {
                token: murmur3_token(&row.key),
                encoded: self.encode(row.clustering.as_deref().unwrap_or_default())?,
                row,
            }),
        };
        Ok(())
    }

    fn encode(&self, clustering: &[Bytes]) -> Result<Bytes, ImportError> {
        let encoded = self.layout.keys.encode_clustering(clustering);
        let encoded = encoded
            .map_err(|error| refused_key(&self.layout.name.to_string(), "a clustering value", &error))?;
        Ok(encoded.bytes)
    }

    fn clustering_range(
        &self,
        start: &TransferBound,
        end: &TransferBound,
    ) -> Result<ClusteringRange, ImportError> {
        let bound = |bound: &TransferBound| (!bound.values.is_empty()).then_some(bound.is_inclusive);
        let (start_at, end_at) = (
            bound(start).map(|is_inclusive| (&*start.values, is_inclusive)),
            bound(end).map(|is_inclusive| (&*end.values, is_inclusive)),
        );
        let range = self.layout.keys.slice(start_at, end_at);
        range.map_err(|error| refused_key(&self.layout.name.to_string(), "the bound of a range", &error))
    }
}

fn unpack(packed: Option<&Bytes>) -> Result<Option<Row>, ImportError> {
    let row = packed.map(Row::decode).transpose();
    row.map_err(|error| refused_row("the merged files", &error))
}
