use std::sync::Arc;

use super::*;
use crate::cache::generations::CacheGenerations;
use crate::cache::row_cache_handle::RowCacheHandle;

fn handle(capacity: u64) -> RowCacheHandle {
    RowCacheHandle::new(Arc::new(RowCache::new(capacity)))
}

fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

fn miss(cache: &RowCacheHandle, key: &[u8]) -> FillToken {
    match cache.lookup(cache.hash(key), key, Generation::NONE) {
        Lookup::Miss(token) => token,
        _ => panic!("expected a miss"),
    }
}

fn hit(cache: &RowCacheHandle, key: &[u8]) -> Option<Bytes> {
    match cache.lookup(cache.hash(key), key, Generation::NONE) {
        Lookup::Hit(value) => value,
        _ => panic!("expected a hit"),
    }
}

#[test]
fn fills_and_hits() {
    let cache = handle(1 << 20);
    let token = miss(&cache, b"a");
    cache.fill(&token, b"a", Some(&bytes("1")), Generation::NONE);
    assert_eq!(hit(&cache, b"a"), Some(bytes("1")));
    let token = miss(&cache, b"b");
    cache.fill(&token, b"b", None, Generation::NONE);
    assert_eq!(hit(&cache, b"b"), None);
    assert_eq!(cache.cache().stats().rows, 2);
}

fn put(cache: &RowCacheHandle, key: &[u8], value: &Bytes) {
    if let Lookup::Miss(token) = cache.lookup(cache.hash(key), key, Generation::NONE) {
        cache.fill(&token, key, Some(value), Generation::NONE);
    }
}

/// Folds an operation that is appended to the row.
fn append(cache: &RowCacheHandle, key: &[u8], operand: &str) -> UpdateOutcome {
    cache.fold(cache.hash(key), key, &bytes(operand), Generation::NONE, |value| {
        Some([value.as_ref(), operand.as_bytes()].concat().into())
    })
}

#[test]
fn a_fill_begun_before_a_write_is_void() {
    let cache = handle(1 << 20);
    let before = miss(&cache, b"a");
    assert_eq!(append(&cache, b"a", "new"), UpdateOutcome::Unknown);
    cache.fill(&before, b"a", Some(&bytes("old")), Generation::NONE);
    let after = miss(&cache, b"a");
    cache.fill(&after, b"a", Some(&bytes("new")), Generation::NONE);
    assert_eq!(hit(&cache, b"a"), Some(bytes("new")));
}

#[test]
fn a_write_is_folded_into_a_cached_row() {
    let cache = handle(1 << 20);
    put(&cache, b"a", &bytes("1"));
    assert_eq!(append(&cache, b"a", "2"), UpdateOutcome::Whole(bytes("12")));
    assert_eq!(hit(&cache, b"a"), Some(bytes("12")));
    let absent = miss(&cache, b"b");
    cache.fill(&absent, b"b", None, Generation::NONE);
    assert_eq!(append(&cache, b"b", "1"), UpdateOutcome::Whole(bytes("1")));
    let failed = cache.fold(cache.hash(b"a"), b"a", &bytes("3"), Generation::NONE, |_| None);
    assert_eq!(failed, UpdateOutcome::Unknown);
    let _ = miss(&cache, b"a");
}

#[test]
fn a_large_row_is_written_whole_now_and_then() {
    let cache = handle(4 << 20);
    put(&cache, b"a", &Bytes::from(vec![b'x'; 1000]));
    let folded: Vec<UpdateOutcome> = (0..70).map(|_| append(&cache, b"a", "y")).collect();
    let wholes: Vec<usize> = (0..70)
        .filter(|&at| folded[at] != UpdateOutcome::Cached)
        .collect();
    assert_eq!(wholes, [32, 65]);
}

#[test]
fn stays_within_its_capacity_and_keeps_what_is_read() {
    let cache = handle(1 << 20);
    let value = Bytes::from(vec![0; 100]);
    let hot = b"hot".as_slice();
    put(&cache, hot, &value);
    for index in 0..100_000u32 {
        let key = index.to_be_bytes();
        put(&cache, &key, &value);
        if index % 16 == 0 {
            assert_eq!(hit(&cache, hot), Some(value.clone()));
        }
    }
    let stats = cache.cache().stats();
    assert!(stats.bytes <= 1 << 20, "{stats:?}");
    assert!(stats.bytes > 900 << 10, "{stats:?}");
    assert!(stats.rows > 3000, "{stats:?}");
}

#[test]
fn removed_slots_are_used_again() {
    let cache = handle(1 << 20);
    for round in 0..50u32 {
        for index in 0..100u32 {
            let key = index.to_be_bytes();
            put(&cache, &key, &bytes("x"));
            if (index + round) % 3 == 0 {
                cache.fold(cache.hash(&key), &key, &bytes("x"), Generation::NONE, |_| None);
            }
        }
    }
    for shard in &cache.cache().shards {
        assert!(shard.lock().slots.len() < 100);
    }
}

#[test]
fn too_large_rows_are_left_out() {
    let cache = handle(1 << 20);
    let large = Bytes::from(vec![0; 1 << 19]);
    put(&cache, b"a", &large);
    let _ = miss(&cache, b"a");
    put(&cache, b"a", &bytes("small"));
    let grown = cache.fold(cache.hash(b"a"), b"a", &large, Generation::NONE, |_| {
        Some(large.clone())
    });
    assert_eq!(grown, UpdateOutcome::Whole(large.clone()));
    let _ = miss(&cache, b"a");
    assert_eq!(cache.cache().stats().bytes, 0);
}

#[test]
fn a_row_counts_only_behind_the_fence_that_it_was_read_behind() {
    let (cache, generations) = (handle(1 << 20), CacheGenerations::default());
    let place = CacheGenerations::slot(7);
    let miss = |key: &[u8]| match cache.lookup(cache.hash(key), key, generations.read(place)) {
        Lookup::Miss(token) => token,
        Lookup::Hit(_) => panic!("it is cached"),
    };
    let fill = |token: &FillToken| cache.fill(token, b"a", Some(&bytes("ghost")), generations.read(place));
    fill(&miss(b"a"));
    let begun_before = miss(b"b");
    generations.close(place);
    let begun_while_closed = miss(b"a");
    fill(&begun_while_closed);
    fill(&begun_before);
    let folded = cache.fold(
        cache.hash(b"a"),
        b"a",
        &bytes("x"),
        generations.read(place),
        |_| None,
    );
    assert_eq!(folded, UpdateOutcome::Unknown);
    generations.open(place);
    fill(&begun_while_closed);
    let after = miss(b"a");
    fill(&after);
    assert!(matches!(
        cache.lookup(cache.hash(b"a"), b"a", generations.read(place)),
        Lookup::Hit(Some(_))
    ));
    assert!(matches!(
        cache.lookup(cache.hash(b"a"), b"a", Generation::Closed),
        Lookup::Miss(_)
    ));
}

#[test]
fn an_opening_finds_only_the_rows_that_it_has_cached() {
    let cache = Arc::new(RowCache::new(1 << 20));
    let [first, second] = [(); 2].map(|()| RowCacheHandle::new(cache.clone()));
    put(&first, b"a", &bytes("old"));
    let begun = miss(&second, b"a");
    put(&second, b"a", &bytes("new"));
    assert_eq!(hit(&first, b"a"), Some(bytes("old")));
    assert_eq!(hit(&second, b"a"), Some(bytes("new")));
    assert_eq!(append(&first, b"a", "er"), UpdateOutcome::Whole(bytes("older")));
    assert_eq!(hit(&second, b"a"), Some(bytes("new")));
    assert_eq!(cache.stats().rows, 2);
    second.forget_all();
    second.fill(&begun, b"a", Some(&bytes("ghost")), Generation::NONE);
    let _ = miss(&second, b"a");
    assert_eq!(hit(&first, b"a"), Some(bytes("older")));
}
