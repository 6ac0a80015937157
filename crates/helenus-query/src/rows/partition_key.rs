//! Keys of partitions.

use bytes::Bytes;
use helenus_row::murmur3_token;

/// A partition's serialized key and its token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionKey {
    pub token: i64,
    pub bytes: Bytes,
}

impl PartitionKey {
    /// Returns a partition key with its computed token.
    pub fn new(bytes: Bytes) -> PartitionKey {
        PartitionKey {
            token: murmur3_token(&bytes),
            bytes,
        }
    }
}
