//! Small partitions that are kept whole in the row cache, under their prefix. Examples are the entries of an index for one value, or of a
//! posting list, which are read as a range.
//!
//! A write into the partition removes it from the cache.

use bytes::Bytes;

use super::row_cache_handle::RowCacheHandle;
use crate::data_model::DataModel;

/// Removes the cached partition of a written key. The marker of a partition that is known to be large stays, unless the write may have made
/// the partition smaller.
pub(crate) fn forget(model: &dyn DataModel, cache: &RowCacheHandle, key: &[u8], operand: &Bytes) {
    if model.kept_partition(key).is_none() {
        return;
    }
    let prefix_len = model.partition_prefix_len(key, true);
    if let Some(prefix) = prefix_len.and_then(|len| key.get(..len)) {
        match model.may_be_alive(key, operand) {
            true => cache.forget(prefix),
            false => cache.remove(cache.hash(prefix), prefix),
        }
    }
}

/// The rows of a partition in one buffer.
#[derive(Clone, Debug)]
pub struct KeptRows(pub(crate) Bytes);

impl KeptRows {
    /// Returns the whole buffer, which contains the slices of [`KeptRows::iter`].
    pub fn bytes(&self) -> &Bytes {
        &self.0
    }

    /// Returns the keys and packed rows, ascending by key.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut rest = self.0.as_ref();
        let mut part = move || {
            let (len, bytes) = rest.split_first_chunk::<4>()?;
            let len = u32::from_be_bytes(*len) as usize;
            let (part, after) = bytes.split_at_checked(len)?;
            rest = after;
            Some(part)
        };
        std::iter::from_fn(move || Some((part()?, part()?)))
    }

    /// Returns the keys and packed rows as shared slices of the buffer.
    pub(crate) fn shared(&self) -> impl Iterator<Item = (Bytes, Bytes)> {
        self.iter()
            .map(|(key, row)| (self.0.slice_ref(key), self.0.slice_ref(row)))
    }
}
