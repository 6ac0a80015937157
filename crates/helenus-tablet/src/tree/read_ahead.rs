//! Reads many neighbouring blocks of an SSTable at once, for long scans. SlateDB reads blocks one by one, and allocates memory for each
//! row.
//!
//! A block is `LZ4(entry…, restart u16…, count of restarts u16), CRC-32 of that`. An entry is `shared, unshared, value length (varints),
//! unshared bytes of the key, value, sequence number u64, flags u8, [expiry i64], [creation i64]`. Integers are big-endian. `shared` is the
//! number of bytes that the key shares with the key before.
//!
//! A block that cannot be decoded is read by SlateDB. A file is read by SlateDB as a whole if one of its blocks is decoded differently
//! here.

use std::ops::Range;
use std::sync::Arc;

use bytes::Buf;
use crc_fast::CrcAlgorithm;
use object_store::{ObjectStore, ObjectStoreExt};
use slatedb::config::CompressionCodec;

use super::rows::{EntryKind, SortedBlock, SortedBlockBuilder};
use super::sstable::{OpenTable, Table};
use crate::metadata::slatedb_layout::table_path;

/// Maximum number of blocks that are read at once.
const BLOCKS_AHEAD: usize = 32;

/// Flags of an entry.
const TOMBSTONE: u8 = 1;
const HAS_EXPIRY: u8 = 1 << 1;
const HAS_CREATION: u8 = 1 << 2;
const MERGE_OPERAND: u8 = 1 << 3;
const FLAGS: u8 = TOMBSTONE | HAS_EXPIRY | HAS_CREATION | MERGE_OPERAND;

/// Returns the blocks from `blocks.start` on, up to [`BLOCKS_AHEAD`] of those in `blocks`. `None` if they must be read one by one.
pub(super) async fn read(
    store: &dyn ObjectStore,
    table: &Table,
    open: &OpenTable,
    blocks: Range<usize>,
) -> Option<Vec<Arc<SortedBlock>>> {
    // The last block is left out, because the index does not contain its end.
    let behind = blocks
        .end
        .min(blocks.start + BLOCKS_AHEAD)
        .min(open.index.len().checked_sub(1)?);
    let offsets: Vec<u64> = (blocks.start..=behind)
        .map(|block| open.index.get(block).map(|(offset, _)| offset))
        .collect::<Option<_>>()?;
    let (first, last) = (*offsets.first()?, *offsets.last()?);
    if first >= last {
        return None;
    }
    let path = table_path(&table.root, table.handle.id);
    let bytes = store.get_range(&path, first..last).await.ok()?;
    let codec = table.handle.info.compression_codec;
    offsets
        .windows(2)
        .map(|ends| {
            let [start, end] = ends else { return None };
            let place = |offset: &u64| usize::try_from(offset.checked_sub(first)?).ok();
            decode(bytes.get(place(start)?..place(end)?)?, codec).map(Arc::new)
        })
        .collect()
}

fn decode(block: &[u8], codec: Option<CompressionCodec>) -> Option<SortedBlock> {
    let (content, mut checksum) = block.split_at_checked(block.len().checked_sub(4)?)?;
    let computed = crc_fast::checksum(CrcAlgorithm::Crc32IsoHdlc, content);
    if u64::from(checksum.try_get_u32().ok()?) != computed {
        return None;
    }
    match codec {
        None => entries(content),
        Some(CompressionCodec::Lz4) => entries(&lz4_flex::block::decompress_size_prepended(content).ok()?),
        Some(_) => None,
    }
}

fn entries(content: &[u8]) -> Option<SortedBlock> {
    let (rest, mut count) = content.split_at_checked(content.len().checked_sub(2)?)?;
    let restarts = usize::from(count.try_get_u16().ok()?);
    let mut entries = rest.get(..rest.len().checked_sub(2 * restarts)?)?;
    let mut rows = SortedBlockBuilder::with_capacity(16 * restarts, 2 * entries.len());
    while !entries.is_empty() {
        let shared = varint(&mut entries)?;
        let unshared = varint(&mut entries)?;
        let value_len = varint(&mut entries)?;
        let suffix = entries.split_off(..unshared)?;
        let value = entries.split_off(..value_len)?;
        let seq = entries.try_get_u64().ok()?;
        let flags = entries.try_get_u8().ok()?;
        if flags & !FLAGS != 0 {
            return None;
        }
        for time in [HAS_EXPIRY, HAS_CREATION] {
            if flags & time != 0 {
                entries.try_get_i64().ok()?;
            }
        }
        let kind = match flags & (TOMBSTONE | MERGE_OPERAND) {
            0 => EntryKind::Whole,
            MERGE_OPERAND => EntryKind::Operand,
            _ => EntryKind::Deleted,
        };
        rows.push_shared(shared, suffix, value, seq, kind)?;
    }
    Some(rows.finish())
}

fn varint(bytes: &mut &[u8]) -> Option<usize> {
    let mut value = 0u32;
    for shift in (0..32).step_by(7) {
        let byte = bytes.try_get_u8().ok()?;
        value |= u32::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value as usize);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an entry of a short key and value.
    fn entry(shared: u8, suffix: &[u8], value: &[u8], seq: u64, flags: u8) -> Vec<u8> {
        let lens = [shared, suffix.len() as u8, value.len() as u8];
        let times =
            vec![0; 8 * usize::from(flags & HAS_EXPIRY != 0) + 8 * usize::from(flags & HAS_CREATION != 0)];
        [&lens[..], suffix, value, &seq.to_be_bytes(), &[flags], &times].concat()
    }

    fn block(entries: &[Vec<u8>]) -> Vec<u8> {
        // The block has one restart, at the beginning.
        let content = [entries.concat(), vec![0, 0, 0, 1]].concat();
        let mut block = lz4_flex::block::compress_prepend_size(&content);
        let checksum = crc_fast::checksum(CrcAlgorithm::Crc32IsoHdlc, &block) as u32;
        block.extend_from_slice(&checksum.to_be_bytes());
        block
    }

    #[test]
    fn keys_are_put_together_and_kinds_told() {
        let entries = [
            entry(0, b"apple", b"1", 9, 0),
            entry(5, b"s", b"2", 8, MERGE_OPERAND | HAS_CREATION),
            entry(2, b"ricot", b"", 7, TOMBSTONE | HAS_EXPIRY | HAS_CREATION),
        ];
        let rows = decode(&block(&entries), Some(CompressionCodec::Lz4)).unwrap();
        let found: Vec<_> = (0..rows.len())
            .map(|at| (rows.key(at), rows.value(at), rows.seq(at), rows.kind(at)))
            .collect();
        let value = bytes::Bytes::from_static;
        assert_eq!(
            found,
            [
                (&b"apple"[..], value(b"1"), 9, EntryKind::Whole),
                (&b"apples"[..], value(b"2"), 8, EntryKind::Operand),
                (&b"apricot"[..], value(b""), 7, EntryKind::Deleted),
            ]
        );
    }

    #[test]
    fn what_cannot_be_decoded_is_left_to_others() {
        let lz4 = Some(CompressionCodec::Lz4);
        let whole = block(&[entry(0, b"apple", b"1", 9, 0)]);
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            assert!(decode(&damaged, lz4).is_none(), "{at}");
            assert!(decode(&whole[..at], lz4).is_none(), "{at}");
        }
        assert!(decode(&block(&[entry(1, b"apple", b"1", 9, 0)]), lz4).is_none());
        assert!(decode(&block(&[entry(0, b"apple", b"1", 9, 1 << 6)]), lz4).is_none());
    }
}
