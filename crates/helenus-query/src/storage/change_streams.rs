//! Streams of captured changes.
//!
//! A stream is a partition of every log table ([`crate::schema::cdc_log`]). Each tablet has one, so that a change and its record are written
//! to the same tablet, in one record of the node's log. A stream's id follows from the tablet's range, and its token lies in that
//! range.
//!
//! Streams close and open with their tablets, when these are split or merged. The document [`DOCUMENT`] lists these *generations*. The first
//! write to a new tablet records the generation. It begins in the near future: the new streams only get changes with a later time, and the
//! closed ones only have changes with an earlier time. So readers can finish a generation before they begin the next.
//!
//! A generation is forgotten at the next change of the document, once the changes in its streams have expired in all logs.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use bytes::Bytes;
use helenus_row::{TokenRange, key_with_token, murmur3_token};
use serde::{Deserialize, Serialize};

use super::shared_document::SharedDocument;
use crate::rows::PartitionKey;

/// Name of the document in the store.
const DOCUMENT: &str = "cdc-generations";

/// Time from the record of a generation to its beginning, in ms. It exceeds the difference of the nodes' clocks.
const AHEAD_MS: i64 = 1_000;

/// Maximum difference between a write's timestamp and the node's clock, in µs, with which the change may have the write's timestamp as its time.
/// Readers wait longer than that before they consider a time complete.
const TOLERANCE_US: u64 = 5_000_000;

/// The streams from a certain time on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct GenerationDoc {
    pub since_ms: i64,
    /// Ranges whose streams close.
    pub closed: Vec<TokenRange>,
    /// Ranges whose streams open.
    pub opened: Vec<TokenRange>,
}

/// A generation of streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Generation {
    /// Beginning in ms since 1970.
    pub since_ms: i64,
    pub current: Vec<Stream>,
    pub closed: Vec<Stream>,
    pub opened: Vec<Stream>,
}

/// A stream of changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stream {
    pub range: TokenRange,
    pub key: PartitionKey,
    /// Time in µs since 1970 at which the stream opened.
    pub since_us: i64,
}

/// All generations, oldest first.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(from = "Vec<GenerationDoc>", into = "Vec<GenerationDoc>")]
pub(super) struct Generations {
    documents: Vec<GenerationDoc>,
    /// Streams of the newest generation, by range.
    current: Vec<Arc<Stream>>,
}

impl From<Vec<GenerationDoc>> for Generations {
    fn from(documents: Vec<GenerationDoc>) -> Generations {
        let newest = replay(&documents).pop();
        let current = newest.map_or_else(Vec::new, |newest| newest.current);
        Generations {
            documents,
            current: current.into_iter().map(Arc::new).collect(),
        }
    }
}

impl From<Generations> for Vec<GenerationDoc> {
    fn from(generations: Generations) -> Vec<GenerationDoc> {
        generations.documents
    }
}

impl Generations {
    pub fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }

    /// Returns every generation with its streams, oldest first.
    pub fn all(&self) -> Vec<Generation> {
        replay(&self.documents)
    }

    /// Returns the stream of the tablet with that range. `None` if it is not in the newest generation.
    pub fn find(&self, range: TokenRange) -> Option<Arc<Stream>> {
        let at = self
            .current
            .binary_search_by_key(&range.first, |stream| stream.range.first)
            .ok()?;
        self.current
            .get(at)
            .filter(|stream| stream.range == range)
            .cloned()
    }

    pub fn current_ranges(&self) -> Vec<TokenRange> {
        self.current.iter().map(|stream| stream.range).collect()
    }

    /// Returns the generations after a change of the streams. Those that ended before `kept_ms` are forgotten. `None` keeps all of them.
    pub fn with(&self, change: Change, now_ms: i64, kept_ms: Option<i64>) -> Generations {
        let mut documents = match kept_ms {
            Some(kept_ms) => since(&self.documents, kept_ms),
            None => self.documents.clone(),
        };
        let since_ms = match documents.last() {
            Some(last) => (now_ms + AHEAD_MS).max(last.since_ms + 1),
            None => now_ms,
        };
        documents.push(GenerationDoc {
            since_ms,
            closed: change.closed.into_iter().collect(),
            opened: change.opened.into_iter().collect(),
        });
        Generations::from(documents)
    }
}

/// This node's copy of the generations. Reads of the tables about streams refresh the copy, and writes to new tablets do.
#[derive(Debug)]
pub(crate) struct ChangeStreams {
    pub(super) generations: SharedDocument<Generations>,
    /// Last time in µs that was assigned to a change because its write's timestamp is far from the clock.
    last_us: AtomicI64,
}

impl Default for ChangeStreams {
    fn default() -> ChangeStreams {
        ChangeStreams {
            generations: SharedDocument::new(DOCUMENT),
            last_us: AtomicI64::default(),
        }
    }
}

/// The time of a change in its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChangeTime {
    /// Time in µs since 1970.
    pub time_us: i64,
    /// Place among the changes at the beginning of the stream, less than 2^[`POSITION_BITS`]. `None` for changes with a time of their own.
    pub position: Option<u64>,
}

/// Bits of [`ChangeTime::position`]. That many microseconds exceed [`TOLERANCE_US`] and [`AHEAD_MS`] together.
pub(crate) const POSITION_BITS: u32 = 23;

impl ChangeTime {
    /// Returns the time of a change by a write whose timestamp is near the clock. It is the timestamp, if that is after the beginning of the
    /// stream. Older writes have the time of the beginning, in the order of their timestamps. So the time follows from the write and the
    /// stream alone: it is the same if the write is repeated, by whichever node.
    pub fn of_write(write_us: i64, since_us: i64) -> ChangeTime {
        if write_us > since_us {
            return ChangeTime {
                time_us: write_us,
                position: None,
            };
        }
        let last = (1 << POSITION_BITS) - 1;
        ChangeTime {
            time_us: since_us,
            position: Some(u64::saturating_sub(last, since_us.abs_diff(write_us))),
        }
    }
}

impl ChangeStreams {
    /// Returns the time of a change in a stream that begins at `since_us`. If the write's timestamp is far from the node's clock, it is a new
    /// time of that clock.
    pub(crate) fn time(&self, write_us: i64, now_us: i64, since_us: i64) -> ChangeTime {
        if write_us.abs_diff(now_us) <= TOLERANCE_US {
            return ChangeTime::of_write(write_us, since_us);
        }
        let next = |last: i64| now_us.max(since_us).max(last.saturating_add(1));
        let last = self
            .last_us
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(next(last)));
        let (Ok(last) | Err(last)) = last;
        ChangeTime {
            time_us: next(last),
            position: None,
        }
    }
}

/// Returns the generations that had not ended by a time. The first one opens all its streams.
fn since(documents: &[GenerationDoc], time_ms: i64) -> Vec<GenerationDoc> {
    let begun = documents.partition_point(|document| document.since_ms < time_ms);
    let ended = begun.saturating_sub(1);
    let Some(first) = replay(documents).into_iter().nth(ended).filter(|_| ended > 0) else {
        return documents.to_vec();
    };
    let first = GenerationDoc {
        since_ms: first.since_ms,
        closed: Vec::new(),
        opened: first.current.iter().map(|stream| stream.range).collect(),
    };
    let later = documents.iter().skip(ended + 1).cloned();
    std::iter::once(first).chain(later).collect()
}

/// Returns every generation with its streams, oldest first.
fn replay(documents: &[GenerationDoc]) -> Vec<Generation> {
    let mut current: Vec<Stream> = Vec::new();
    let mut generations = Vec::with_capacity(documents.len());
    for document in documents {
        let since_us = document.since_ms * 1000;
        let (closed, kept): (Vec<Stream>, Vec<Stream>) = current
            .into_iter()
            .partition(|stream| document.closed.contains(&stream.range));
        let opened: Vec<Stream> = document
            .opened
            .iter()
            .map(|range| Stream {
                range: *range,
                key: stream_key(*range),
                since_us,
            })
            .collect();
        current = kept;
        current.extend(opened.iter().cloned());
        current.sort_unstable_by_key(|stream| stream.range.first);
        generations.push(Generation {
            since_ms: document.since_ms,
            current: current.clone(),
            closed,
            opened,
        });
    }
    generations
}

/// Returns the key of a range's stream, from a hash of the range. It has ScyllaDB's version of stream ids in its last bits.
fn stream_key(range: TokenRange) -> PartitionKey {
    let seed = murmur3_token(&[range.first.to_be_bytes(), range.last.to_be_bytes()].concat()).cast_unsigned();
    let width = range.last.wrapping_sub(range.first).cast_unsigned();
    let offset = width.checked_add(1).map_or(seed, |tokens| seed % tokens);
    // No key has the token `i64::MIN`.
    let token = range.first.wrapping_add_unsigned(offset).max(i64::MIN + 1);
    let mut choice = seed;
    loop {
        let id = key_with_token(token, choice);
        if id[15] & VERSION_MASK == VERSION {
            return PartitionKey::new(Bytes::copy_from_slice(&id));
        }
        choice = choice.wrapping_add(0x9e37_79b9_7f4a_7c15);
    }
}

/// Version of stream ids (`cdc::stream_id`).
const VERSION: u8 = 1;
const VERSION_MASK: u8 = 0xf;

/// Ranges whose streams close and open.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub closed: BTreeSet<TokenRange>,
    pub opened: BTreeSet<TokenRange>,
}

impl Change {
    /// Returns the change that opens the first streams. `needed` is the range of a tablet that this node has just seen.
    pub(super) fn first(tablets: BTreeSet<TokenRange>, needed: TokenRange) -> Change {
        let mut opened = tablets;
        opened.retain(|range| !overlap(range, &needed));
        opened.insert(needed);
        Change {
            closed: BTreeSet::new(),
            opened,
        }
    }

    /// Returns the change after which `needed` has a stream. Only streams that overlap it close: this node's view of other tablets may be
    /// old. The remainder of their ranges gets the streams of the tablets there.
    pub(super) fn of(current: &[TokenRange], tablets: &BTreeSet<TokenRange>, needed: TokenRange) -> Change {
        let closed: BTreeSet<TokenRange> = current
            .iter()
            .filter(|range| overlap(range, &needed))
            .copied()
            .collect();
        let is_remainder = |range: &TokenRange| {
            let bounds = closed.first().zip(closed.last());
            let is_within =
                bounds.is_some_and(|(low, high)| low.first <= range.first && range.last <= high.last);
            is_within && !overlap(range, &needed)
        };
        let mut opened: BTreeSet<TokenRange> = tablets
            .iter()
            .filter(|range| is_remainder(range))
            .copied()
            .collect();
        opened.insert(needed);
        Change { closed, opened }
    }
}

fn overlap(a: &TokenRange, b: &TokenRange) -> bool {
    a.first <= b.last && b.first <= a.last
}

#[cfg(test)]
#[path = "change_streams_tests.rs"]
mod tests;
