use super::*;

fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

fn miss(cache: &RowCache, key: &[u8]) -> Ticket {
    match cache.lookup(key) {
        Lookup::Miss(ticket) => ticket,
        _ => panic!("expected a miss"),
    }
}

fn hit(cache: &RowCache, key: &[u8]) -> Option<Bytes> {
    match cache.lookup(key) {
        Lookup::Hit(value) => value,
        _ => panic!("expected a hit"),
    }
}

#[test]
fn fills_and_hits() {
    let cache = RowCache::new(1 << 20);
    let ticket = miss(&cache, b"a");
    cache.fill(&ticket, b"a", Some(&bytes("1")));
    assert_eq!(hit(&cache, b"a"), Some(bytes("1")));
    let ticket = miss(&cache, b"b");
    cache.fill(&ticket, b"b", None);
    assert_eq!(hit(&cache, b"b"), None);
    assert_eq!(cache.stats().rows, 2);
}

#[test]
fn a_fill_begun_before_a_write_is_void() {
    let cache = RowCache::new(1 << 20);
    let hash = cache.hash(b"a");
    let before = miss(&cache, b"a");
    assert!(cache.begin(hash, b"a").is_none());
    let during = miss(&cache, b"a");
    cache.fill(&before, b"a", Some(&bytes("old")));
    cache.fill(&during, b"a", Some(&bytes("old")));
    let _ = miss(&cache, b"a");
    cache.finish(hash, b"a", None);
    cache.fill(&before, b"a", Some(&bytes("old")));
    cache.fill(&during, b"a", Some(&bytes("old")));
    let after = miss(&cache, b"a");
    cache.fill(&after, b"a", Some(&bytes("new")));
    assert_eq!(hit(&cache, b"a"), Some(bytes("new")));
}

#[test]
fn a_row_being_written_is_read_from_the_tree() {
    let cache = RowCache::new(1 << 20);
    let hash = cache.hash(b"a");
    cache.insert(hash, b"a", Some(&bytes("1")));
    let known = cache.begin(hash, b"a").unwrap();
    assert_eq!(known.value, Some(bytes("1")));
    let ticket = miss(&cache, b"a");
    cache.fill(&ticket, b"a", Some(&bytes("1")));
    cache.finish(hash, b"a", Some((bytes("2"), 1)));
    assert_eq!(hit(&cache, b"a"), Some(bytes("2")));
    cache.begin(hash, b"a").unwrap();
    cache.finish(hash, b"a", None);
    let _ = miss(&cache, b"a");
}

#[test]
fn stays_within_its_capacity_and_keeps_what_is_read() {
    let cache = RowCache::new(1 << 20);
    let value = Bytes::from(vec![0; 100]);
    let hot = b"hot".as_slice();
    cache.insert(cache.hash(hot), hot, Some(&value));
    for index in 0..100_000u32 {
        let key = index.to_be_bytes();
        cache.insert(cache.hash(&key), &key, Some(&value));
        if index % 16 == 0 {
            assert_eq!(hit(&cache, hot), Some(value.clone()));
        }
    }
    let stats = cache.stats();
    assert!(stats.bytes <= 1 << 20, "{stats:?}");
    assert!(stats.bytes > 900 << 10, "{stats:?}");
    assert!(stats.rows > 3000, "{stats:?}");
}

#[test]
fn removed_slots_are_used_again() {
    let cache = RowCache::new(1 << 20);
    for round in 0..50u32 {
        for index in 0..100u32 {
            let key = index.to_be_bytes();
            let hash = cache.hash(&key);
            cache.insert(hash, &key, Some(&bytes("x")));
            if (index + round) % 3 == 0 {
                cache.begin(hash, &key);
                cache.finish(hash, &key, None);
            }
        }
    }
    for shard in &cache.shards {
        assert!(shard.lock().slots.len() < 100);
    }
}

#[test]
fn too_large_rows_are_left_out() {
    let cache = RowCache::new(1 << 20);
    let hash = cache.hash(b"a");
    cache.insert(hash, b"a", Some(&Bytes::from(vec![0; 1 << 19])));
    let _ = miss(&cache, b"a");
    cache.insert(hash, b"a", Some(&bytes("small")));
    cache.begin(hash, b"a");
    cache.finish(hash, b"a", Some((Bytes::from(vec![0; 1 << 19]), 0)));
    let _ = miss(&cache, b"a");
    assert_eq!(cache.stats().bytes, 0);
}
