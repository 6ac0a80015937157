use super::*;

fn ticks_of(serialized: &[u8]) -> i64 {
    ticks(u128::from_be_bytes(serialized.try_into().unwrap()))
}

#[test]
fn last_of_a_time_follows_all_its_ticks() {
    for time_us in [0, 1_700_000_000_000_000, TIME_US_MAX] {
        assert_eq!(ticks_of(&last_of(time_us)), ticks_at_micros(time_us) + 9);
    }
}

#[test]
fn later_times_have_later_ends() {
    assert!(ticks_of(&last_of(i64::MAX)) > ticks_of(&last_of(TIME_US_MAX - 1)));
}
