//! Merged rows as blobs, each for one execution of `INSERT … ROWS ?`.

use bytes::Bytes;
use helenus_row::transfer::{TransferItem, TransferWriter};

use crate::error::ImportError;
use crate::merge::{Merge, Statistics};

/// Bytes of a blob, unless one row is larger.
pub const BATCH_BYTES: usize = 256 << 10;

/// Maximum number of items of a blob. The statement takes 65,535, and a partition that goes on counts once more.
pub const ITEMS_MAX: u64 = 50_000;

/// A blob, and what it holds.
#[derive(Clone, Debug)]
pub struct Batch {
    pub blob: Bytes,
    /// Partitions of lower tokens are in this batch or in earlier ones. An import that goes on here sends nothing that is missing.
    pub resume_token: i64,
    /// Numbers of this batch alone.
    pub statistics: Statistics,
    /// Bytes of the table's files that were read so far, as they lie on the disk.
    pub bytes_read: u64,
}

/// The batches of a table. A long partition spans several.
pub struct Batches {
    merge: Merge,
    bytes: usize,
    /// The partition whose items come, and that the next batch begins with.
    partition: Option<Bytes>,
    /// True if the current blob has the partition.
    is_started: bool,
    reported: Statistics,
    is_over: bool,
}

impl Batches {
    /// Creates batches of about `bytes` bytes.
    pub fn new(merge: Merge, bytes: usize) -> Batches {
        Batches {
            reported: Statistics::default(),
            merge,
            bytes,
            partition: None,
            is_started: false,
            is_over: false,
        }
    }

    /// Returns all that was read so far, including items that had nothing to send.
    pub fn statistics(&self) -> &Statistics {
        self.merge.statistics()
    }

    /// Returns the bytes of the table's files that were read so far.
    pub fn bytes_read(&self) -> u64 {
        self.merge.bytes_read()
    }

    /// Returns the next batch. `None` at the end.
    ///
    /// # Errors
    /// As [`Merge::next_item`].
    pub fn next_batch(&mut self) -> Result<Option<Batch>, ImportError> {
        if self.is_over {
            return Ok(None);
        }
        let mut writer = TransferWriter::new();
        self.is_started = false;
        let mut items = 0;
        while writer.is_empty() || writer.len() < self.bytes && items < ITEMS_MAX {
            let Some(item) = self.merge.next_item()? else {
                self.is_over = true;
                break;
            };
            if let TransferItem::Partition(key) = item {
                self.partition = Some(key);
                self.is_started = false;
                continue;
            }
            if !self.is_started {
                // A partition of which nothing is imported isn't sent.
                writer.partition(self.partition.as_deref().unwrap_or_default());
                self.is_started = true;
                items += 1;
            }
            writer.push(&item);
            items += 1;
        }
        if writer.is_empty() {
            return Ok(None);
        }
        let statistics = self.merge.statistics().since(&self.reported);
        self.reported = self.merge.statistics().clone();
        Ok(Some(Batch {
            blob: writer.finish(),
            resume_token: self.merge.token().unwrap_or(i64::MIN),
            statistics,
            bytes_read: self.merge.bytes_read(),
        }))
    }
}
