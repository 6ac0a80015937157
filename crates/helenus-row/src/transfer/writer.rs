//! The writer of a blob.

use bytes::Bytes;

use super::{
    END, END_INCLUSIVE, PARTITION, PARTITION_DELETION, RANGE_DELETION, ROW, START_INCLUSIVE, STATIC_ROW,
    TransferBound, TransferItem, VERSION,
};
use crate::row::Deletion;
use crate::varint::{put_bytes, put_signed, put_unsigned};

/// Writes items into a blob. The writer does not check their order; the reader does.
#[derive(Debug)]
pub struct TransferWriter {
    out: Vec<u8>,
    items: u64,
}

impl Default for TransferWriter {
    fn default() -> TransferWriter {
        TransferWriter::new()
    }
}

impl TransferWriter {
    pub fn new() -> TransferWriter {
        TransferWriter {
            out: vec![VERSION],
            items: 0,
        }
    }

    /// Appends an item.
    pub fn push(&mut self, item: &TransferItem) {
        match item {
            TransferItem::Partition(key) => self.partition(key),
            TransferItem::PartitionDeletion(deletion) => self.partition_deletion(*deletion),
            TransferItem::RangeDeletion { start, end, deletion } => {
                self.range_deletion(start, end, *deletion);
            }
            TransferItem::StaticRow(row) => self.static_row(row),
            TransferItem::Row { clustering, row } => self.row(clustering, row),
        }
    }

    /// Begins a partition.
    pub fn partition(&mut self, key: &[u8]) {
        self.begin(PARTITION);
        put_bytes(&mut self.out, key);
    }

    /// Appends the deletion of the whole partition.
    pub fn partition_deletion(&mut self, deletion: Deletion) {
        self.begin(PARTITION_DELETION);
        put_deletion(&mut self.out, deletion);
    }

    /// Appends the deletion of a range of clusterings.
    pub fn range_deletion(&mut self, start: &TransferBound, end: &TransferBound, deletion: Deletion) {
        self.begin(RANGE_DELETION);
        let flag = |bound: &TransferBound, flag| if bound.is_inclusive { flag } else { 0 };
        self.out
            .push(flag(start, START_INCLUSIVE) | flag(end, END_INCLUSIVE));
        put_values(&mut self.out, &start.values);
        put_values(&mut self.out, &end.values);
        put_deletion(&mut self.out, deletion);
    }

    /// Appends a packed static row.
    pub fn static_row(&mut self, row: &[u8]) {
        self.begin(STATIC_ROW);
        put_bytes(&mut self.out, row);
    }

    /// Appends a packed row.
    pub fn row<V: AsRef<[u8]>>(&mut self, clustering: &[V], row: &[u8]) {
        self.begin(ROW);
        put_values(&mut self.out, clustering);
        put_bytes(&mut self.out, row);
    }

    /// Returns the size of the blob so far, in bytes.
    pub fn len(&self) -> usize {
        self.out.len()
    }

    /// Returns true if no item was appended.
    pub fn is_empty(&self) -> bool {
        self.items == 0
    }

    /// Returns the blob. It ends with the number of items, so that a blob that was cut is never read as a shorter one.
    pub fn finish(mut self) -> Bytes {
        self.out.push(END);
        put_unsigned(&mut self.out, self.items);
        self.out.into()
    }

    fn begin(&mut self, tag: u8) {
        self.items += 1;
        self.out.push(tag);
    }
}

fn put_values<V: AsRef<[u8]>>(out: &mut Vec<u8>, values: &[V]) {
    put_unsigned(out, values.len() as u64);
    values.iter().for_each(|value| put_bytes(out, value.as_ref()));
}

fn put_deletion(out: &mut Vec<u8>, deletion: Deletion) {
    put_signed(out, deletion.timestamp_us);
    put_signed(out, deletion.local_deletion_s);
}
