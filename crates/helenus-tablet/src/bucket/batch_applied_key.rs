//! The key that records that a tablet has applied its part of a cross-tablet batch. It has an empty value, lies beside the rows, and is
//! removed after the batch's object has been deleted.

use bytes::Bytes;
use uuid::Uuid;

/// Table ids do not get there, so no read of rows comes across a mark.
const PREFIX: [u8; 10] = *b"\xFF\xFF\xFF\xFFbatch\0";

/// The key of a batch's mark.
pub(crate) fn applied_key(batch: Uuid) -> Bytes {
    [PREFIX.as_slice(), batch.as_bytes()].concat().into()
}

pub(crate) fn is_applied_key(key: &[u8]) -> bool {
    key.starts_with(&PREFIX)
}

/// The batch of a mark.
pub(crate) fn batch_id_of(key: &[u8]) -> Option<Uuid> {
    Uuid::from_slice(key.strip_prefix(&PREFIX)?).ok()
}

/// Where marks lie.
pub(crate) fn range() -> std::ops::Range<Bytes> {
    let mut end = PREFIX.to_vec();
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    Bytes::from_static(&PREFIX)..end.into()
}
