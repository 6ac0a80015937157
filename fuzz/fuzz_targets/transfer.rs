//! Fuzzes the reading of rows in transfer, with their packed rows.
#![no_main]

use bytes::Bytes;
use helenus_row::Row;
use helenus_row::transfer::{TransferItem, TransferReader, TransferWriter};
use libfuzzer_sys::fuzz_target;

fn read(blob: Bytes) -> Option<Vec<TransferItem>> {
    let mut reader = TransferReader::new(blob).ok()?;
    let mut items = Vec::new();
    while let Some(item) = reader.next().ok()? {
        items.push(item);
    }
    Some(items)
}

fuzz_target!(|input: &[u8]| {
    let Some(items) = read(Bytes::copy_from_slice(input)) else { return };
    let mut writer = TransferWriter::new();
    for item in &items {
        writer.push(item);
        if let TransferItem::StaticRow(row) | TransferItem::Row { row, .. } = item {
            drop(Row::decode(row));
        }
    }
    assert_eq!(read(writer.finish()), Some(items));
});
