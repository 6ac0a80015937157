use super::*;

#[test]
fn lines_are_limited_and_the_others_counted() {
    let began = Instant::now();
    let mut window = Window {
        began,
        lines: 0,
        suppressed: 0,
    };
    for _ in 0..LINES_MAX {
        assert_eq!(window.take(began), Some(0));
    }
    assert_eq!(window.take(began), None);
    assert_eq!(window.take(began + WINDOW / 2), None);
    assert_eq!(window.take(began + WINDOW), Some(2));
    assert_eq!(window.take(began + WINDOW), Some(0));
}

#[test]
fn without_a_timeout_nothing_is_slow() {
    let hour = Duration::from_secs(3600);
    assert!(!SlowLog::new(None).is_slow(hour));
    let log = SlowLog::new(Some(Duration::from_millis(500)));
    assert!(log.is_slow(hour) && !log.is_slow(Duration::from_millis(500)));
}
