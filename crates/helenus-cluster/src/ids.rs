//! The identifiers of nodes, tablets and token ranges.

use std::fmt;

use rand::RngCore;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The id of a node. It survives restarts, and changes only if the operator makes it another node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HostId(pub Uuid);

impl fmt::Display for HostId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One membership of a node in the cluster, from joining until it leaves or is expelled. An incarnation is never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Incarnation(pub Uuid);

impl Incarnation {
    pub fn random(rng: &mut dyn RngCore) -> Self {
        let mut bytes = [0; 16];
        rng.fill_bytes(&mut bytes);
        Incarnation(uuid::Builder::from_random_bytes(bytes).into_uuid())
    }
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A node in one of its incarnations: the holder of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member {
    pub host_id: HostId,
    pub incarnation: Incarnation,
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (incarnation {})", self.host_id, self.incarnation)
    }
}

/// The number of a tablet. Numbers are never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TabletId(pub u32);

impl fmt::Display for TabletId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Number of the changes of a tablet's owner, from 1.
pub type Epoch = u64;

/// Number of the changes of a document, from 1.
pub type Version = u64;

/// A closed range of Murmur3 tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TokenRange {
    pub first: i64,
    pub last: i64,
}

impl TokenRange {
    pub const RING: TokenRange = TokenRange {
        first: i64::MIN,
        last: i64::MAX,
    };

    pub fn contains(&self, token: i64) -> bool {
        (self.first..=self.last).contains(&token)
    }

    /// Returns the number of tokens in the range.
    pub fn width(&self) -> u128 {
        (i128::from(self.last) - i128::from(self.first) + 1).max(0) as u128
    }

    /// Returns the range's share of the ring, from 0 to 1.
    pub fn share(&self) -> f64 {
        self.width() as f64 / TokenRange::RING.width() as f64
    }

    /// Splits the range before token `at`. `None` if a half would be empty.
    pub fn split_at(&self, at: i64) -> Option<[TokenRange; 2]> {
        let (first, last) = (self.first, self.last);
        (first < at && at <= last)
            .then(|| [TokenRange { first, last: at - 1 }, TokenRange { first: at, last }])
    }

    /// Returns the token before which a split leaves two equal halves. `None` if there is only one token.
    pub fn middle(&self) -> Option<i64> {
        let middle = i128::from(self.first) + (self.width() / 2) as i128;
        (self.first < self.last).then_some(middle as i64)
    }

    /// Splits the whole ring into `count` ranges of equal size.
    pub fn split_ring(count: u32) -> Vec<TokenRange> {
        let count = i128::from(count.max(1));
        let start = |index: i128| i128::from(i64::MIN) + (index << 64) / count;
        (0..count)
            .map(|index| TokenRange {
                first: start(index) as i64,
                last: (start(index + 1) - 1) as i64,
            })
            .collect()
    }
}

impl fmt::Display for TokenRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}, {}]", self.first, self.last)
    }
}

/// One of the node's stays in the cluster, by its number in this process. The lease of a later stay does not cover reads of an earlier one,
/// because other nodes may have owned the tablets in between.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeaseTerm(pub(crate) u64);
