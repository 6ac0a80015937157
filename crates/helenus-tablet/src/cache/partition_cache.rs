//! Small partitions kept whole in the row cache, under their prefix: the entries of an index for one value or of a posting list, which are read as
//! a range.
//! A write into the partition removes it from the cache.

use bytes::{Buf, Bytes};

use super::row_cache_handle::RowCacheHandle;
use crate::data_model::DataModel;

/// Forgets the partition that a written key lies in.
pub(crate) fn forget(model: &dyn DataModel, cache: &RowCacheHandle, key: &[u8]) {
    if model.kept_partition(key).is_some()
        && let Some(prefix) = model
            .partition_prefix_len(key, true)
            .and_then(|len| key.get(..len))
    {
        cache.forget(prefix);
    }
}

/// The keys and rows that lie in one piece.
pub(crate) fn unpack(mut packed: Bytes) -> impl Iterator<Item = (Bytes, Bytes)> {
    let mut part = move || {
        let len = packed.try_get_u32().ok()?;
        Some(packed.split_to((len as usize).min(packed.len())))
    };
    std::iter::from_fn(move || Some((part()?, part()?)))
}
