//! Small partitions kept whole in the row cache, under their prefix: the entries of an index for one value or of a posting list, which are read as
//! a range.
//! A write into the partition removes it from the cache.

use bytes::Bytes;

use super::row_cache_handle::RowCacheHandle;
use crate::data_model::DataModel;

/// Forgets the partition that a written key lies in. One that is known to be large stays known as such, unless it may have become smaller.
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

/// The rows of a partition, in one piece.
#[derive(Clone, Debug)]
pub struct KeptRows(pub(crate) Bytes);

impl KeptRows {
    /// Returns the bytes of which [`KeptRows::iter`] gives parts.
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

    /// Returns the same, as bytes that share the piece.
    pub(crate) fn shared(&self) -> impl Iterator<Item = (Bytes, Bytes)> {
        self.iter()
            .map(|(key, row)| (self.0.slice_ref(key), self.0.slice_ref(row)))
    }
}
