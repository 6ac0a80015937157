//! Values of counter cells: the shards of a counter, and their merge (`db.context.CounterContext`).
//!
//! A context has a header, which lists the shards that are global or local, and a body with one shard for each counter id:
//!
//! ```text
//! count of header elements (2 bytes) | elements (2 bytes each) | id (16) clock (8) count (8) | …
//! ```
//!
//! A header element is the index of a local shard, or the index of a global shard minus 32768. Other shards are remote. A negative count
//! of header elements marks a context whose local shards are to become remote; the elements are the same.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::cursor::Cursor;
use crate::error::SstableError;
use crate::file_name::DATA;

const SHARD_BYTES: usize = 32;

/// The kind of a shard, which determines how shards of the same id merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ShardKind {
    /// The shard of Cassandra 2.1 and later. The greater clock wins.
    Global,
    /// An increment of Cassandra 2.0 and before. Clocks and counts are added.
    Local,
    /// The copy of another node's shard, of Cassandra 2.0 and before. The greater clock wins.
    Remote,
}

/// The part of a counter that one node counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shard {
    /// Id of the counting node's part.
    pub id: [u8; 16],
    pub clock: i64,
    pub count: i64,
    pub kind: ShardKind,
}

/// Decodes the value of a counter cell. An empty value has no shards.
///
/// # Errors
/// If the bytes are no context.
pub fn decode_context(value: &[u8]) -> Result<Vec<Shard>, SstableError> {
    if value.is_empty() {
        return Ok(Vec::new());
    }
    let mut cursor = Cursor::new(value, DATA, 0);
    decode(&mut cursor).map_err(SstableError::within_item)
}

fn decode(cursor: &mut Cursor<'_>) -> Result<Vec<Shard>, SstableError> {
    let elements = i16::from_be_bytes(cursor.u16("size of a counter's header")?.to_be_bytes()).unsigned_abs();
    let mut header = cursor.sub_cursor(usize::from(elements) * 2, "header of a counter")?;
    if !cursor.remaining().is_multiple_of(SHARD_BYTES) {
        let len = cursor.remaining();
        return Err(cursor.corrupt(format!(
            "a counter's shards have {SHARD_BYTES} bytes each; {len} bytes are no multiple"
        )));
    }
    let mut shards = Vec::with_capacity(cursor.remaining() / SHARD_BYTES);
    while !cursor.is_empty() {
        shards.push(Shard {
            id: cursor.u128("counter id")?.to_be_bytes(),
            clock: cursor.i64("clock of a counter's shard")?,
            count: cursor.i64("count of a counter's shard")?,
            kind: ShardKind::Remote,
        });
    }
    while !header.is_empty() {
        let element = header.u16("header of a counter")?;
        let kind = if element & 0x8000 == 0 {
            ShardKind::Local
        } else {
            ShardKind::Global
        };
        let index = usize::from(element & 0x7fff);
        let Some(shard) = shards.get_mut(index) else {
            return Err(header.corrupt(format!(
                "a counter's header names shard {index} of {}",
                shards.len()
            )));
        };
        shard.kind = kind;
    }
    Ok(shards)
}

/// Merges the shards of several contexts of the same counter. The result has one shard for each id, in order of the ids.
pub fn merge_contexts<'s>(contexts: impl IntoIterator<Item = &'s [Shard]>) -> Vec<Shard> {
    let mut merged: BTreeMap<[u8; 16], Shard> = BTreeMap::new();
    for shard in contexts.into_iter().flatten() {
        merged
            .entry(shard.id)
            .and_modify(|left| *left = merge_shards(*left, *shard))
            .or_insert(*shard);
    }
    merged.into_values().collect()
}

/// Returns the value of the counter: the sum of its shards. The sum wraps around, as it does in Cassandra.
pub fn total(shards: &[Shard]) -> i64 {
    shards
        .iter()
        .fold(0, |sum: i64, shard| sum.wrapping_add(shard.count))
}

/// Merges two shards of the same id (`CounterContext.compare` and `merge`).
fn merge_shards(left: Shard, right: Shard) -> Shard {
    let order = match (left.kind, right.kind) {
        (ShardKind::Local, ShardKind::Local) => {
            return Shard {
                clock: left.clock.wrapping_add(right.clock),
                count: left.count.wrapping_add(right.count),
                ..left
            };
        }
        (ShardKind::Global, ShardKind::Global) => left.clock.cmp(&right.clock),
        (ShardKind::Global, _) | (ShardKind::Local, ShardKind::Remote) => Ordering::Greater,
        (_, ShardKind::Global) | (ShardKind::Remote, ShardKind::Local) => Ordering::Less,
        (ShardKind::Remote, ShardKind::Remote) => compare_remote_clocks(left.clock, right.clock),
    };
    // Equal clocks have equal counts, unless a disk has lost data. The greater count then wins, as in Cassandra.
    match order.then(left.count.cmp(&right.count)) {
        Ordering::Less => right,
        Ordering::Equal | Ordering::Greater => left,
    }
}

/// Compares the clocks of remote shards. Negative ones are those of ids that have been retired, and are greater the smaller they are.
fn compare_remote_clocks(left: i64, right: i64) -> Ordering {
    if left == right {
        return Ordering::Equal;
    }
    let is_greater = match left < 0 {
        true => left < right,
        false => right > 0 && left > right,
    };
    if is_greater {
        Ordering::Greater
    } else {
        Ordering::Less
    }
}

#[cfg(test)]
#[path = "counter_tests.rs"]
mod tests;
