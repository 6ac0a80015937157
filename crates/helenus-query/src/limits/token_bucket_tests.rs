use super::*;

/// Takes all tokens that a bucket has. Returns their number and the bucket afterwards.
fn drain(mut full_at_ns: u64, rate: u32, now_ns: u64) -> (u32, u64) {
    let mut taken = 0;
    while let Some(next) = take(full_at_ns, rate, now_ns) {
        full_at_ns = next;
        taken += 1;
    }
    (taken, full_at_ns)
}

#[test]
fn a_full_bucket_has_the_tokens_of_a_second() {
    for rate in [1, 2, 3, 7, 10, 1_000, 33_333] {
        assert_eq!(drain(0, rate, 5 * FILL_NS).0, rate);
    }
}

#[test]
fn an_empty_bucket_fills_at_its_rate() {
    let now_ns = 5 * FILL_NS;
    let (_, full_at_ns) = drain(0, 10, now_ns);
    assert_eq!(drain(full_at_ns, 10, now_ns + FILL_NS / 20).0, 0);
    assert_eq!(drain(full_at_ns, 10, now_ns + FILL_NS / 10).0, 1);
    assert_eq!(drain(full_at_ns, 10, now_ns + FILL_NS / 2).0, 5);
    assert_eq!(drain(full_at_ns, 10, now_ns + 60 * FILL_NS).0, 10);
}

#[test]
fn over_a_long_time_the_rate_is_kept() {
    let (mut full_at_ns, mut taken) = (0, 0);
    // One request each millisecond for ten seconds.
    for ms in 0..10_000 {
        if let Some(next) = take(full_at_ns, 100, ms * 1_000_000) {
            full_at_ns = next;
            taken += 1;
        }
    }
    // The bucket began with the tokens of one second.
    assert!((1_099..=1_100).contains(&taken), "{taken}");
}

#[test]
fn a_rate_of_none_gives_no_token_and_a_great_one_always_one() {
    assert_eq!(take(0, 0, 1), None);
    assert_eq!(take(7, u32::MAX, 7), Some(7));
}
