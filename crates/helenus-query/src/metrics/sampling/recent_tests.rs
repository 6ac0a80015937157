use uuid::Uuid;

use super::super::sample_key;
use super::*;

fn key(item: &str) -> Vec<u8> {
    sample_key(Uuid::nil(), item.as_bytes()).to_vec()
}

#[test]
fn one_request_in_so_many_is_counted_on_average() {
    let recent = RecentPartitions::default();
    recent.set_interval(64);
    let due = (0..64_000).filter(|_| recent.is_due()).count();
    assert!((800..1200).contains(&due), "{due}");
    recent.set_interval(1);
    // Requests that were to be skipped under the old interval are still skipped.
    let first = (0..200).position(|_| recent.is_due());
    assert!(first.is_some());
    assert!((0..100).all(|_| recent.is_due()));
}

#[test]
fn minutes_are_added_up_and_forgotten() {
    let mut windows = VecDeque::new();
    let began = Instant::now();
    for minute in 0..8_u32 {
        let now = began + WINDOW * minute;
        record(&mut windows, now, SamplerKind::Reads, &key("always"));
        record(
            &mut windows,
            now,
            SamplerKind::Reads,
            &key(&format!("in minute {minute}")),
        );
        record(&mut windows, now, SamplerKind::Writes, &key("written"));
    }
    assert_eq!(windows.len(), WINDOWS_KEPT + 1);
    let reads = sum(windows.iter().map(|window| &window.reads), 64, 2);
    assert_eq!(reads.total, 2 * 5 * 64);
    assert_eq!(
        (reads.top[0].item.as_slice(), reads.top[0].count),
        (&b"always"[..], 5 * 64)
    );
    assert_eq!(reads.top[1].item, b"in minute 3");
    forget(&mut windows, began + WINDOW * 20);
    assert!(windows.is_empty());
}
