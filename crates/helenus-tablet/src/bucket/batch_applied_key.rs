//! The key that records that a tablet has applied its part of a cross-tablet batch. It has an empty value, lies beside the rows, and is
//! removed after the batch's object has been deleted.

use bytes::Bytes;
use uuid::Uuid;

/// Beyond all table ids, so that no read of rows meets such a key.
const PREFIX: [u8; 10] = *b"\xFF\xFF\xFF\xFFbatch\0";

/// The key for a batch.
pub(crate) fn applied_key(batch: Uuid) -> Bytes {
    [PREFIX.as_slice(), batch.as_bytes()].concat().into()
}

pub(crate) fn is_applied_key(key: &[u8]) -> bool {
    key.starts_with(&PREFIX)
}

/// The batch of such a key.
pub(crate) fn batch_id_of(key: &[u8]) -> Option<Uuid> {
    Uuid::from_slice(key.strip_prefix(&PREFIX)?).ok()
}

/// The range of these keys.
pub(crate) fn range() -> std::ops::Range<Bytes> {
    let mut end = PREFIX.to_vec();
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    Bytes::from_static(&PREFIX)..end.into()
}
