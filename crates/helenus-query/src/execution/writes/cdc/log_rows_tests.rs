use std::cmp::Ordering;

use helenus_cql::value::compare::compare;

use super::*;

fn order(a: &Bytes, b: &Bytes) -> Ordering {
    compare(&CqlType::TIMEUUID, a, b)
}

/// Returns the least and the greatest time of a write, whatever its content.
fn bounds(write_us: i64, since_us: i64) -> (Bytes, Bytes) {
    let digests = [0, 1 << 38, u64::MAX, 0x8080_8080_8080_8080, 0x7f7f_7f7f_7f7f_7f7f];
    let mut times = digests.map(|digest| change_time(ChangeTime::of_write(write_us, since_us), digest));
    times.sort_by(order);
    let [least, .., greatest] = times;
    (least, greatest)
}

#[test]
fn changes_before_a_stream_sort_by_their_writes() {
    let since_us = 1_700_000_000_000_000;
    let writes = (-6_000_000..6_000_000)
        .step_by(9_973)
        .chain([5_999_999, 6_000_000]);
    let times: Vec<_> = writes
        .map(|after_us| bounds(since_us + after_us, since_us))
        .collect();
    for ((_, before), (after, _)) in times.iter().zip(&times[1..]) {
        assert_eq!(order(before, after), Ordering::Less, "{before:?} {after:?}");
    }
}
