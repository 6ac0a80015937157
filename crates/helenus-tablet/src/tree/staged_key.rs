//! Keys of staged changes. Their leading bytes lie in the nodes of the tree that sorts them, so that most comparisons do not touch the key
//! itself, which the processor's cache may not hold.

use std::borrow::Borrow;
use std::cmp::Ordering;

use bytes::Bytes;

use super::rows::leading_bytes;

/// The key of a staged change.
#[derive(Debug, Clone)]
pub(crate) struct StagedKey {
    leading: u128,
    bytes: Bytes,
}

/// A key that is looked up among staged keys.
pub(super) struct SoughtKey<'k> {
    leading: u128,
    bytes: &'k [u8],
}

/// A key with its leading bytes at hand. Keys have the order of their bytes.
pub(super) trait LeadingKey {
    fn leading(&self) -> u128;
    fn bytes(&self) -> &[u8];
}

impl StagedKey {
    pub fn new(bytes: Bytes) -> StagedKey {
        StagedKey {
            leading: leading_bytes(&bytes),
            bytes,
        }
    }

    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }
}

impl SoughtKey<'_> {
    pub fn new(bytes: &[u8]) -> SoughtKey<'_> {
        SoughtKey {
            leading: leading_bytes(bytes),
            bytes,
        }
    }
}

impl LeadingKey for StagedKey {
    fn leading(&self) -> u128 {
        self.leading
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl LeadingKey for SoughtKey<'_> {
    fn leading(&self) -> u128 {
        self.leading
    }

    fn bytes(&self) -> &[u8] {
        self.bytes
    }
}

impl Ord for StagedKey {
    fn cmp(&self, other: &StagedKey) -> Ordering {
        let by_leading = self.leading.cmp(&other.leading);
        by_leading.then_with(|| self.bytes.cmp(&other.bytes))
    }
}

impl PartialOrd for StagedKey {
    fn partial_cmp(&self, other: &StagedKey) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for StagedKey {
    fn eq(&self, other: &StagedKey) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for StagedKey {}

impl<'k> Borrow<dyn LeadingKey + 'k> for StagedKey {
    fn borrow(&self) -> &(dyn LeadingKey + 'k) {
        self
    }
}

impl Ord for dyn LeadingKey + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_leading = self.leading().cmp(&other.leading());
        by_leading.then_with(|| self.bytes().cmp(other.bytes()))
    }
}

impl PartialOrd for dyn LeadingKey + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for dyn LeadingKey + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for dyn LeadingKey + '_ {}
