//! Keys: `table | token | partition key | kind | clustering`. Their byte order is the order of rows in CQL.

mod bounds;
mod component;
mod decimal;
mod layout;
mod murmur3;
mod scalar;
mod value_order;

#[cfg(test)]
mod key_tests;
#[cfg(test)]
mod value_order_tests;

pub(crate) use bounds::tidy;
pub use bounds::{ByteRange, ClusteringRange, TupleBound, successor};
pub use layout::{EncodedClustering, KeyLayout, Order};
pub use murmur3::{key_with_token, murmur3_token};
pub use value_order::{has_value_order, ordered_token, ordered_value};

use std::borrow::Cow;
use std::ops::Bound;

use bytes::Bytes;

use crate::error::KeyError;
use component::{MaskedReader, put_escaped};

/// Maximum bytes of a partition key, and of each component of a composite one.
const PARTITION_KEY_LEN_MAX: usize = 65535;

/// The id of a table, or of one generation of it: DROP and TRUNCATE assign a new id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableId(pub u32);

/// The kind of an entry within its partition; the discriminants are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum KeyKind {
    /// The deletions that cover several rows: a [`crate::header::PartitionHeader`].
    Header = 0,
    /// The static columns: a [`crate::row::Row`] without liveness.
    Static = 1,
    /// A row: a [`crate::row::Row`].
    Row = 2,
}

/// A key, split into all its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRef<'a> {
    pub table: TableId,
    pub token: i64,
    pub partition_key: Cow<'a, [u8]>,
    pub kind: KeyKind,
    /// The encoded clustering. Empty unless `kind` is `Row`.
    pub clustering: &'a [u8],
}

/// A key, split at its kind. Its partition is not split further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyParts<'a> {
    pub table: TableId,
    /// All bytes before the kind, as [`partition_prefix`] returns them.
    pub partition_prefix: &'a [u8],
    pub kind: KeyKind,
    pub clustering: &'a [u8],
}

/// Length of the table's id and the token, with which a key begins.
const TOKEN_PREFIX_LEN: usize = 12;

fn token_prefix(table: TableId, token: i64) -> [u8; TOKEN_PREFIX_LEN] {
    let mut prefix = [0; TOKEN_PREFIX_LEN];
    let (head, tail) = prefix.split_at_mut(4);
    head.copy_from_slice(&table.0.to_be_bytes());
    tail.copy_from_slice(&(token ^ i64::MIN).to_be_bytes());
    prefix
}

fn prefix_with_room(table: TableId, token: i64, partition_key: &[u8], room: usize) -> Vec<u8> {
    let mut key = Vec::with_capacity(TOKEN_PREFIX_LEN + partition_key.len() + 2 + room);
    key.extend_from_slice(&token_prefix(table, token));
    put_escaped(partition_key, &mut key);
    key
}

/// Returns the bytes that all keys of a partition start with, up to the kind.
pub fn partition_prefix(table: TableId, token: i64, partition_key: &[u8]) -> Bytes {
    prefix_with_room(table, token, partition_key, 0).into()
}

fn key_of(table: TableId, token: i64, partition_key: &[u8], kind: KeyKind, clustering: &[u8]) -> Bytes {
    let mut key = prefix_with_room(table, token, partition_key, 1 + clustering.len());
    key.push(kind as u8);
    key.extend_from_slice(clustering);
    key.into()
}

/// Returns the key of the partition's header.
pub fn header_key(table: TableId, token: i64, partition_key: &[u8]) -> Bytes {
    key_of(table, token, partition_key, KeyKind::Header, &[])
}

/// Returns the key of the partition's static row.
pub fn static_key(table: TableId, token: i64, partition_key: &[u8]) -> Bytes {
    key_of(table, token, partition_key, KeyKind::Static, &[])
}

/// Returns the key of a row. `clustering` is from [`KeyLayout::encode_clustering`], and empty for tables without clustering columns.
pub fn row_key(table: TableId, token: i64, partition_key: &[u8], clustering: &[u8]) -> Bytes {
    key_of(table, token, partition_key, KeyKind::Row, clustering)
}

/// Returns the key of the header of a stored key's partition.
///
/// # Errors
/// [`KeyError::Corrupt`] if `key` is no stored key.
pub fn header_of(key: &[u8]) -> Result<Bytes, KeyError> {
    let parts = split_key(key)?;
    Ok(key_in_partition(parts.partition_prefix, KeyKind::Header, &[]))
}

/// Returns the key of an entry of the given kind in the partition with this prefix.
pub fn key_in_partition(partition_prefix: &[u8], kind: KeyKind, clustering: &[u8]) -> Bytes {
    [partition_prefix, &[kind as u8], clustering].concat().into()
}

/// Returns the length of the partition prefix of `key`, in bytes. `None` if the key ends before its partition prefix does. The result holds
/// for all keys that start with `key`.
pub fn partition_prefix_len(key: &[u8]) -> Option<usize> {
    let mut at = TOKEN_PREFIX_LEN;
    loop {
        at += key.get(at..)?.iter().position(|&byte| byte == 0)? + 2;
        if *key.get(at - 1)? == 0 {
            return Some(at);
        }
    }
}

/// Splits a key at its kind.
///
/// # Errors
/// [`KeyError::Corrupt`] if no encoder writes such a key.
pub fn split_key(key: &[u8]) -> Result<KeyParts<'_>, KeyError> {
    split_key_at(key, partition_prefix_len(key).ok_or(TOO_SHORT)?)
}

/// Splits a key of the partition with the given prefix at its kind. `None` if the key belongs to another partition.
///
/// # Errors
/// As [`split_key`].
pub fn split_key_within<'a>(
    key: &'a [u8],
    partition_prefix: &[u8],
) -> Result<Option<KeyParts<'a>>, KeyError> {
    // No partition prefix begins another one, because each ends with bytes that occur only at its end.
    match !partition_prefix.is_empty() && key.starts_with(partition_prefix) {
        true => split_key_at(key, partition_prefix.len()).map(Some),
        false => Ok(None),
    }
}

const TOO_SHORT: KeyError = KeyError::Corrupt("key ends too early");

fn split_key_at(key: &[u8], end: usize) -> Result<KeyParts<'_>, KeyError> {
    let (table, _) = key.split_first_chunk::<4>().ok_or(TOO_SHORT)?;
    let (partition_prefix, rest) = key.split_at_checked(end).ok_or(TOO_SHORT)?;
    let (&kind, clustering) = rest.split_first().ok_or(TOO_SHORT)?;
    let kind = match kind {
        0 => KeyKind::Header,
        1 => KeyKind::Static,
        2 => KeyKind::Row,
        _ => return Err(KeyError::Corrupt("unknown kind of key")),
    };
    Ok(KeyParts {
        table: TableId(u32::from_be_bytes(*table)),
        partition_prefix,
        kind,
        clustering,
    })
}

/// Splits a key into all its parts.
///
/// # Errors
/// [`KeyError::Corrupt`] if no encoder writes such a key.
pub fn decode_key(key: &[u8]) -> Result<KeyRef<'_>, KeyError> {
    let parts = split_key(key)?;
    let (token, partition_key) = decode_partition_prefix(parts.partition_prefix)?;
    Ok(KeyRef {
        table: parts.table,
        token,
        partition_key,
        kind: parts.kind,
        clustering: parts.clustering,
    })
}

/// Returns the token in a key. `None` if the key is too short to have one.
pub fn token_of(key: &[u8]) -> Option<i64> {
    let token = key.get(4..12)?.first_chunk()?;
    Some(i64::from_be_bytes(*token) ^ i64::MIN)
}

/// Returns the token and the partition key of a prefix from [`partition_prefix`].
///
/// # Errors
/// [`KeyError::Corrupt`] if no encoder writes such a prefix.
pub fn decode_partition_prefix(prefix: &[u8]) -> Result<(i64, Cow<'_, [u8]>), KeyError> {
    let mut reader = MaskedReader::new(prefix);
    let _table = reader.array::<4>()?;
    let token = i64::from_be_bytes(reader.array()?) ^ i64::MIN;
    let escaped = reader.rest();
    let raw = escaped.get(..escaped.len().saturating_sub(2)).unwrap_or_default();
    if !raw.contains(&0) {
        return Ok((token, Cow::Borrowed(raw)));
    }
    let mut partition_key = Vec::with_capacity(raw.len());
    reader.unescape(&mut partition_key)?;
    Ok((token, Cow::Owned(partition_key)))
}

/// A token, a partition key, and the bytes behind them.
pub type LeadingPartition<'a> = (i64, Cow<'a, [u8]>, &'a [u8]);

/// Returns the partition with which an encoded clustering begins: its first columns are an ascending `bigint` with the token and an
/// ascending `blob` with the partition key.
///
/// # Errors
/// [`KeyError::Corrupt`] if the clustering does not begin with such columns.
pub fn decode_leading_partition(clustering: &[u8]) -> Result<LeadingPartition<'_>, KeyError> {
    let mut reader = MaskedReader::new(clustering);
    if reader.byte()? != component::VALUE {
        return Err(KeyError::Corrupt("no token at the beginning of a clustering"));
    }
    let token = i64::from_be_bytes(reader.array()?) ^ i64::MIN;
    let escaped = reader.rest();
    let zero = escaped.iter().position(|byte| *byte == 0);
    let zero = zero.unwrap_or(escaped.len());
    if let Some((raw, [0, 0, rest @ ..])) = escaped.split_at_checked(zero) {
        return Ok((token, Cow::Borrowed(raw), rest));
    }
    let mut partition_key = Vec::with_capacity(escaped.len());
    reader.unescape(&mut partition_key)?;
    Ok((token, Cow::Owned(partition_key), reader.rest()))
}

/// Appends the partition key of a prefix from [`partition_prefix`].
///
/// # Errors
/// As [`decode_partition_prefix`].
pub fn append_partition_key(prefix: &[u8], out: &mut Vec<u8>) -> Result<(), KeyError> {
    let mut reader = MaskedReader::new(prefix.get(TOKEN_PREFIX_LEN..).ok_or(TOO_SHORT)?);
    reader.unescape(out)
}

/// Returns the kind of a key, which is all that a merge needs to know of the key.
///
/// # Errors
/// [`KeyError::Corrupt`] if no encoder writes such a key.
pub fn key_kind(key: &[u8]) -> Result<KeyKind, KeyError> {
    split_key(key).map(|parts| parts.kind)
}

/// Returns the range of all keys of a table.
pub fn table_range(table: TableId) -> ByteRange {
    ByteRange::with_prefix(&table.0.to_be_bytes())
}

/// Returns the range of all keys of a table whose tokens lie within the bounds.
pub fn token_range(table: TableId, start: Bound<i64>, end: Bound<i64>) -> ByteRange {
    let before = |token| Bytes::copy_from_slice(&token_prefix(table, token));
    let after = |token| successor(&token_prefix(table, token));
    let whole = table_range(table);
    let start = match start {
        Bound::Unbounded => Some(whole.start),
        Bound::Included(token) => Some(before(token)),
        Bound::Excluded(token) => after(token),
    };
    let end = match end {
        Bound::Unbounded => whole.end,
        Bound::Included(token) => after(token),
        Bound::Excluded(token) => Some(before(token)),
    };
    match start {
        Some(start) => ByteRange { start, end },
        // The range is empty: no key is above the greatest token of the greatest table id.
        None => ByteRange {
            start: Bytes::new(),
            end: Some(Bytes::new()),
        },
    }
}

/// Returns the range of all keys of a partition: header, static row, rows.
pub fn partition_range(table: TableId, token: i64, partition_key: &[u8]) -> ByteRange {
    ByteRange::with_prefix(&prefix_with_room(table, token, partition_key, 0))
}

/// Returns Cassandra's serialized partition key. A single component is unchanged; several form a `CompositeType`.
///
/// # Errors
/// [`KeyError::PartitionKeyTooLong`] beyond 65535 bytes.
pub fn compose_partition_key<B: AsRef<[u8]>>(components: &[B]) -> Result<Bytes, KeyError> {
    let key = match components {
        [single] => single.as_ref().to_vec(),
        several => {
            let mut key = Vec::new();
            for component in several {
                let component = component.as_ref();
                let length = component.len();
                let short = u16::try_from(length).map_err(|_| KeyError::PartitionKeyTooLong { length })?;
                key.extend_from_slice(&short.to_be_bytes());
                key.extend_from_slice(component);
                key.push(0);
            }
            key
        }
    };
    if key.len() > PARTITION_KEY_LEN_MAX {
        return Err(KeyError::PartitionKeyTooLong { length: key.len() });
    }
    Ok(key.into())
}

/// Returns the components of a serialized partition key that has `count` columns.
///
/// # Errors
/// [`KeyError::Corrupt`] if the bytes aren't such a key.
pub fn split_partition_key(partition_key: &Bytes, count: usize) -> Result<Vec<Bytes>, KeyError> {
    if count == 1 {
        return Ok(vec![partition_key.clone()]);
    }
    let mut components = Vec::with_capacity(count);
    let mut rest: &[u8] = partition_key;
    for _ in 0..count {
        let (component, after) = split_component(rest)?;
        components.push(partition_key.slice_ref(component));
        rest = after;
    }
    if rest.is_empty() {
        Ok(components)
    } else {
        Err(NOT_COMPOSITE)
    }
}

/// Returns one component of a serialized partition key that has `count` columns.
///
/// # Errors
/// As [`split_partition_key`].
pub fn partition_key_component(
    partition_key: &[u8],
    count: usize,
    position: usize,
) -> Result<&[u8], KeyError> {
    if count == 1 {
        return Ok(partition_key);
    }
    let mut rest = partition_key;
    for _ in 0..position {
        rest = split_component(rest)?.1;
    }
    split_component(rest).map(|(component, _)| component)
}

const NOT_COMPOSITE: KeyError = KeyError::Corrupt("not a composite partition key");

/// Splits off the first component of a composite partition key.
fn split_component(composite: &[u8]) -> Result<(&[u8], &[u8]), KeyError> {
    let (len, after) = composite.split_first_chunk::<2>().ok_or(NOT_COMPOSITE)?;
    let len = usize::from(u16::from_be_bytes(*len));
    let (component, after) = after.split_at_checked(len).ok_or(NOT_COMPOSITE)?;
    let (_, after) = after.split_first().ok_or(NOT_COMPOSITE)?;
    Ok((component, after))
}
