use super::*;

#[test]
fn without_a_timeout_nothing_is_slow() {
    let hour = Duration::from_secs(3600);
    assert!(!SlowLog::new(None, false).is_slow(hour));
    let log = SlowLog::new(Some(Duration::from_millis(500)), false);
    assert!(log.is_slow(hour) && !log.is_slow(Duration::from_millis(500)));
}
