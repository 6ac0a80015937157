//! The reader of a blob.

use bytes::Bytes;

use super::{
    END, END_INCLUSIVE, PARTITION, PARTITION_DELETION, RANGE_DELETION, ROW, START_INCLUSIVE, STATIC_ROW,
    TransferBound, TransferItem, VALUES_MAX, VERSION,
};
use crate::error::RowError;
use crate::row::Deletion;
use crate::varint::Reader;

/// Reads the items of a blob. Their bytes share the blob's memory. Lengths are compared with the rest of the blob before anything is
/// allocated.
///
/// The reader does not look into packed rows, keys and values. A blob is whole only if the reader comes to its end without an error.
#[derive(Clone, Debug)]
pub struct TransferReader {
    blob: Bytes,
    /// Position of the next item.
    at: usize,
    items: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No partition has begun.
    Start,
    InPartition,
    /// The end was read, or an error was returned.
    Finished,
}

impl TransferReader {
    /// Begins to read a blob.
    ///
    /// # Errors
    /// [`RowError`] if the blob is empty or has another version.
    pub fn new(blob: Bytes) -> Result<TransferReader, RowError> {
        match blob.first() {
            None => Err(RowError::Truncated),
            Some(&VERSION) => Ok(TransferReader {
                blob,
                at: 1,
                items: 0,
                state: State::Start,
            }),
            Some(_) => Err(RowError::Corrupt("unknown version of rows in transfer")),
        }
    }

    /// Returns the next item, and `None` at the end of the blob and after an error.
    ///
    /// # Errors
    /// [`RowError`] if the blob is torn or holds bytes that no writer writes.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator of results would let callers drop errors"
    )]
    pub fn next(&mut self) -> Result<Option<TransferItem>, RowError> {
        if self.state == State::Finished {
            return Ok(None);
        }
        let item = self.read();
        match &item {
            Ok(Some(_)) => self.state = State::InPartition,
            Ok(None) | Err(_) => self.state = State::Finished,
        }
        item
    }

    fn read(&mut self) -> Result<Option<TransferItem>, RowError> {
        let mut fields = Fields {
            blob: &self.blob,
            reader: Reader::new(self.blob.get(self.at..).unwrap_or_default()),
        };
        let tag = fields.reader.byte()?;
        if self.state == State::Start && !matches!(tag, PARTITION | END) {
            return Err(RowError::Corrupt("row or deletion before the first partition"));
        }
        let item = match tag {
            END => {
                if fields.reader.unsigned()? != self.items {
                    return Err(RowError::Corrupt("another number of items than at the end"));
                }
                if !fields.reader.is_empty() {
                    return Err(RowError::Corrupt("bytes after the end of rows in transfer"));
                }
                return Ok(None);
            }
            PARTITION => TransferItem::Partition(fields.bytes()?),
            PARTITION_DELETION => TransferItem::PartitionDeletion(fields.deletion()?),
            RANGE_DELETION => fields.range_deletion()?,
            STATIC_ROW => TransferItem::StaticRow(fields.bytes()?),
            ROW => TransferItem::Row {
                clustering: fields.values()?,
                row: fields.bytes()?,
            },
            _ => return Err(RowError::Corrupt("unknown item in rows in transfer")),
        };
        self.at = self.blob.len() - fields.reader.rest().len();
        self.items += 1;
        Ok(Some(item))
    }
}

/// Reads the fields of an item.
struct Fields<'a> {
    blob: &'a Bytes,
    reader: Reader<'a>,
}

impl Fields<'_> {
    fn bytes(&mut self) -> Result<Bytes, RowError> {
        Ok(self.blob.slice_ref(self.reader.bytes()?))
    }

    fn values(&mut self) -> Result<Vec<Bytes>, RowError> {
        let count = self.reader.unsigned()?;
        // Each value has a length of at least one byte.
        if count > self.reader.rest().len() as u64 {
            return Err(RowError::Truncated);
        }
        if count > VALUES_MAX {
            return Err(RowError::Corrupt("more than 65535 clustering values"));
        }
        (0..count).map(|_| self.bytes()).collect()
    }

    fn range_deletion(&mut self) -> Result<TransferItem, RowError> {
        let flags = self.reader.byte()?;
        if flags & !(START_INCLUSIVE | END_INCLUSIVE) != 0 {
            return Err(RowError::Corrupt("unknown flags of a range deletion"));
        }
        Ok(TransferItem::RangeDeletion {
            start: TransferBound {
                values: self.values()?,
                is_inclusive: flags & START_INCLUSIVE != 0,
            },
            end: TransferBound {
                values: self.values()?,
                is_inclusive: flags & END_INCLUSIVE != 0,
            },
            deletion: self.deletion()?,
        })
    }

    fn deletion(&mut self) -> Result<Deletion, RowError> {
        Ok(Deletion {
            timestamp_us: self.reader.signed()?,
            local_deletion_s: self.reader.signed()?,
        })
    }
}
