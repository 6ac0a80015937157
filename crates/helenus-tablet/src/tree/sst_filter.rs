//! Bloom filters of SSTables, read from their files, because SlateDB does not expose the filters that it reads itself.
//!
//! The block is `LZ4(count u16, { name length u16, name, data length u64, data }…), CRC-32 of that`, all big-endian. A block that cannot be
//! decoded counts as no filter: the table may then contain any key.

use std::sync::Arc;

use bytes::{Buf, Bytes};
use crc_fast::CrcAlgorithm;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use slatedb::config::CompressionCodec;
use slatedb::manifest::SsTableHandle;
use slatedb::{Filter, FilterPolicy};

use crate::metadata::slatedb_layout::table_path;

/// Reads the filter that `policy` made for an SSTable of the database at `root`. `None` if there is no such filter, or if it cannot be
/// read.
pub(crate) async fn read(
    store: &dyn ObjectStore,
    root: &Path,
    table: &SsTableHandle,
    policy: &dyn FilterPolicy,
) -> Option<Arc<dyn Filter>> {
    let info = &table.info;
    if info.filter_len == 0 {
        return None;
    }
    let path = table_path(root, table.id);
    let range = info.filter_offset..info.filter_offset.checked_add(info.filter_len)?;
    let block = store.get_range(&path, range).await.ok()?;
    decode(block, info.compression_codec, policy)
}

fn decode(
    block: Bytes,
    codec: Option<CompressionCodec>,
    policy: &dyn FilterPolicy,
) -> Option<Arc<dyn Filter>> {
    let content_len = block.len().checked_sub(4)?;
    let (content, mut checksum) = block.split_at_checked(content_len)?;
    let computed = crc_fast::checksum(CrcAlgorithm::Crc32IsoHdlc, content);
    if u64::from(checksum.try_get_u32().ok()?) != computed {
        return None;
    }
    match codec {
        None => find(content, policy),
        Some(CompressionCodec::Lz4) => {
            find(&lz4_flex::block::decompress_size_prepended(content).ok()?, policy)
        }
        Some(_) => None,
    }
}

/// Returns the policy's filter from those of a block.
fn find(mut filters: &[u8], policy: &dyn FilterPolicy) -> Option<Arc<dyn Filter>> {
    for _ in 0..filters.try_get_u16().ok()? {
        let name_len = usize::from(filters.try_get_u16().ok()?);
        let name = filters.split_off(..name_len)?;
        let data_len = usize::try_from(filters.try_get_u64().ok()?).ok()?;
        let data = filters.split_off(..data_len)?;
        // The policy reads two bytes without a check of the length.
        if name == policy.name().as_bytes() && data.len() >= 2 {
            return Some(policy.decode(data));
        }
    }
    None
}
