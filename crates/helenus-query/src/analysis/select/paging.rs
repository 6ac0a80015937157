//! The paging state: the position at which a page ended. It is opaque to clients. It has a version and a checksum, so that other bytes are
//! refused. A forged state can have the right checksum, so a state is checked against the table before it is used.
//!
//! `version 1 | flags 1 | table u32 | remaining u32 | remaining in partition u32 | key length u32 | key | entry | clustering | crc 4`
//! (big-endian). Without the flag `HAS_CLUSTERING` the partition is finished. The entry is present with the flag `HAS_ENTRY`:
//! `index u32 | value length u32 | value`.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use helenus_cql::error::CqlError;
use helenus_row::key::split_partition_key;
use helenus_row::murmur3_token;
use uuid::Uuid;

use crate::schema::Table;

const VERSION: u8 = 2;
const HAS_CLUSTERING: u8 = 1;
const HAS_ENTRY: u8 = 2;
const HEAD_LEN: usize = 18;
const CHECK_LEN: usize = 4;
const ENTRY_HEAD_LEN: usize = 8;

/// The index entry by which a row was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryPosition {
    /// The index, as the [`mark`] of its hidden table.
    pub index: u32,
    /// The partition key of the entries of the value.
    pub value: Bytes,
}

/// The last returned row, and the rest of the limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PagingState {
    /// The table, as its [`mark`].
    pub table: u32,
    /// Serialized partition key.
    pub partition_key: Bytes,
    /// Encoded clustering of the last row. `None` if the partition is finished.
    pub clustering: Option<Bytes>,
    /// The index entry of the last row. `None` if rows come in the order of their table.
    pub entry: Option<EntryPosition>,
    /// Rows (or groups) that LIMIT still allows.
    pub remaining: u32,
    /// Rows (or groups) that PER PARTITION LIMIT still allows in this partition.
    pub remaining_in_partition: u32,
}

/// Returns Cassandra's error for an invalid paging state.
pub(crate) fn invalid() -> CqlError {
    CqlError::Protocol("Invalid value for the paging state".to_owned())
}

/// Refuses an invalid paging state in a request for a statement that does not use it.
pub(crate) fn check_paging_state(state: &Bytes) -> Result<(), CqlError> {
    PagingState::decode(state).map(drop)
}

/// Returns a 32-bit mark of a table's id, which distinguishes the table from others.
pub(crate) fn mark(id: Uuid) -> u32 {
    let (most, least) = id.as_u64_pair();
    let folded = most ^ least;
    (folded ^ (folded >> 32)) as u32
}

fn check(bytes: &[u8]) -> [u8; CHECK_LEN] {
    let hash = murmur3_token(bytes) as u64;
    ((hash ^ (hash >> 32)) as u32).to_be_bytes()
}

/// Splits the entry from the bytes that follow the key.
fn split_entry<'a>(whole: &Bytes, rest: &'a [u8]) -> Option<(Option<EntryPosition>, &'a [u8])> {
    let (mut head, rest) = rest.split_at_checked(ENTRY_HEAD_LEN)?;
    let (index, value_len) = (head.get_u32(), head.get_u32() as usize);
    let (value, rest) = rest.split_at_checked(value_len)?;
    let value = whole.slice_ref(value);
    Some((Some(EntryPosition { index, value }), rest))
}

impl PagingState {
    pub fn encode(&self) -> Bytes {
        let clustering = self.clustering.as_deref().unwrap_or_default();
        let mut out =
            BytesMut::with_capacity(HEAD_LEN + self.partition_key.len() + clustering.len() + CHECK_LEN);
        out.put_u8(VERSION);
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        out.put_u8(flag(self.clustering.is_some(), HAS_CLUSTERING) | flag(self.entry.is_some(), HAS_ENTRY));
        out.put_u32(self.table);
        out.put_u32(self.remaining);
        out.put_u32(self.remaining_in_partition);
        // A partition key has at most 65535 bytes.
        out.put_u32(u32::try_from(self.partition_key.len()).unwrap_or(u32::MAX));
        out.put_slice(&self.partition_key);
        if let Some(entry) = &self.entry {
            out.put_u32(entry.index);
            out.put_u32(u32::try_from(entry.value.len()).unwrap_or(u32::MAX));
            out.put_slice(&entry.value);
        }
        out.put_slice(clustering);
        let check = check(&out);
        out.put_slice(&check);
        out.freeze()
    }

    /// Decodes a paging state.
    ///
    /// # Errors
    /// `Invalid value for the paging state`
    pub fn decode(bytes: &Bytes) -> Result<PagingState, CqlError> {
        let (body, found) = bytes.split_last_chunk::<CHECK_LEN>().ok_or_else(invalid)?;
        let (head, rest) = body.split_first_chunk::<HEAD_LEN>().ok_or_else(invalid)?;
        if *found != check(body) {
            return Err(invalid());
        }
        let [version, flags, numbers @ ..] = *head;
        let mut numbers = &numbers[..];
        let (table, remaining) = (numbers.get_u32(), numbers.get_u32());
        let (remaining_in_partition, key_len) = (numbers.get_u32(), numbers.get_u32() as usize);
        let (key, rest) = rest.split_at_checked(key_len).ok_or_else(invalid)?;
        if version != VERSION || flags & !(HAS_CLUSTERING | HAS_ENTRY) != 0 {
            return Err(invalid());
        }
        let (entry, clustering) = match flags & HAS_ENTRY {
            0 => (None, rest),
            _ => split_entry(bytes, rest).ok_or_else(invalid)?,
        };
        Ok(PagingState {
            partition_key: bytes.slice_ref(key),
            clustering: (flags & HAS_CLUSTERING != 0).then(|| bytes.slice_ref(clustering)),
            table,
            entry,
            remaining,
            remaining_in_partition,
        })
    }

    /// Returns the state, if it fits the table.
    ///
    /// # Errors
    /// `Invalid value for the paging state`, if the state is of another table, or its key can't be one of the table.
    pub fn of(self, table: &Table) -> Result<PagingState, CqlError> {
        let key = &self.partition_key;
        // A view may have a partition with an empty key.
        let is_key = (table.is_view() || !key.is_empty())
            && key.len() <= usize::from(u16::MAX)
            && split_partition_key(key, table.partition_key_count).is_ok();
        let is_clustering = match &self.clustering {
            Some(clustering) => table.layout.decode_clustering(clustering).is_ok(),
            None => true,
        };
        match self.table == mark(table.id) && is_key && is_clustering {
            true => Ok(self),
            false => Err(invalid()),
        }
    }
}

#[cfg(test)]
#[path = "paging_tests.rs"]
mod tests;
