//! The timeuuids that order the elements of a list. Appended elements get later ones, prepended elements earlier ones (Cassandra's
//! `TimeUUID.Generator` and `Lists.Prepender`).

use std::sync::LazyLock;
use std::sync::atomic::{AtomicI64, Ordering};

use bytes::Bytes;
use helenus_cql::value::uuid::{from_ticks, ticks_at_micros};

use crate::clock::Clock;

/// 2010-01-01 in µs since 1970. The times of prepended elements are mirrored at this time, so that later elements come before earlier ones.
const REFERENCE_US: i64 = 1_262_304_000_000_000;

static LAST_APPENDED: AtomicI64 = AtomicI64::new(0);
static LAST_PREPENDED: AtomicI64 = AtomicI64::new(i64::MAX);

/// Clock sequence and node of the timeuuids. They are random, and the same for the whole process.
static NODE: LazyLock<u64> = LazyLock::new(|| {
    let random: u64 = rand::random();
    // The constant sets the variant, and the multicast bit that marks a node which is not a network address.
    (random & 0x3fff_ffff_ffff_ffff) | 0x8000_0100_0000_0000
});

fn path(ticks: i64) -> Bytes {
    Bytes::copy_from_slice(&from_ticks(ticks, *NODE).to_be_bytes())
}

/// Returns paths for `count` elements at the end of a list, in order.
pub fn appended(clock: &dyn Clock, count: usize) -> impl Iterator<Item = Bytes> {
    let count = count as i64;
    let now = ticks_at_micros(clock.now_us());
    let start = |last: i64| now.max(last.saturating_add(1));
    let last = LAST_APPENDED
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| {
            Some(start(last) + count)
        })
        .unwrap_or_else(|last| last);
    let first = start(last);
    (first..first + count).map(path)
}

/// Returns paths for `count` elements at the beginning of a list, in order.
pub fn prepended(clock: &dyn Clock, count: usize) -> impl Iterator<Item = Bytes> {
    let count = count as i64;
    let mirrored = ticks_at_micros(REFERENCE_US.saturating_mul(2).saturating_sub(clock.now_us()));
    let start = |last: i64| mirrored.min(last) - count;
    let last = LAST_PREPENDED
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(start(last)))
        .unwrap_or_else(|last| last);
    let first = start(last);
    (first..first + count).map(path)
}
