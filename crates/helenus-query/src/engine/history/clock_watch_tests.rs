use super::*;

const HOUR: i64 = 3_600_000;
const LONG: Duration = Duration::from_secs(5);

/// Reads a clock each second. Returns the indexes of the readings that showed a step back.
fn watched(walls: &[i64]) -> (ClockWatch, Vec<usize>) {
    let mut watch = ClockWatch::default();
    let mut steps_back = Vec::new();
    for (second, &wall_ms) in walls.iter().enumerate() {
        if watch.read(Duration::from_secs(second as u64), wall_ms, Some(wall_ms)) {
            steps_back.push(second);
        }
    }
    (watch, steps_back)
}

#[test]
fn a_clock_that_runs_has_shown_one_run() {
    let (watch, steps_back) = watched(&[0, 1_000, 2_020, 2_990]);
    assert!(steps_back.is_empty());
    assert_eq!(watch.runs_since(None, 3_000), [Run::new(0, 3_000)]);
    assert_eq!(watch.runs_since(Some(500), 3_000), [Run::new(500, 3_000)]);
}

#[test]
fn steps_divide_what_a_clock_has_shown() {
    let (watch, steps_back) = watched(&[0, 1_000, 2 * HOUR, 2 * HOUR + 1_000, 4_000, 5_000]);
    assert_eq!(steps_back, [4]);
    let runs = watch.runs_since(None, 5_000);
    assert_eq!(runs.len(), 3);
    assert!(
        runs[0].last_ms <= 2_000 && runs[1].contains(2 * HOUR + 500),
        "{runs:?}"
    );
    assert_eq!(runs[2], Run::new(3_000, 5_000));
}

#[test]
fn commit_shows_clock_that_was_ahead_between_readings() {
    let mut watch = ClockWatch::default();
    watch.read(Duration::ZERO, 0, None);
    watch.restart(0);
    assert!(watch.read(Duration::from_secs(1), 1_000, Some(HOUR)));
    assert_eq!(
        watch.runs_since(None, 1_000),
        [Run::new(0, 0), Run::new(HOUR, HOUR), Run::new(0, 1_000)]
    );
    assert!(!watch.read(Duration::from_secs(2), 2_000, Some(1_500)));
}

#[test]
fn a_former_process_has_gone_on_until_its_last_commit() {
    let mut watch = ClockWatch::default();
    watch.read(Duration::ZERO, 10_000, Some(6_000));
    assert_eq!(
        watch.runs_since(Some(4_000), 10_000),
        [Run::new(4_000, 6_000), Run::new(10_000, 10_000)]
    );
    // The clock of the former process was ahead.
    assert_eq!(
        watch.runs_since(Some(HOUR), 10_000),
        [Run::new(HOUR, HOUR), Run::new(10_000, 10_000)]
    );
    watch.restart(10_000);
    assert_eq!(watch.runs_since(Some(10_000), 11_000), [Run::new(10_000, 11_000)]);
}

#[test]
fn a_commit_that_is_replayed_later_is_of_a_former_process() {
    let mut watch = ClockWatch::default();
    watch.read(Duration::ZERO, 10_000, None);
    assert!(watch.read(Duration::from_secs(1), 11_000, Some(HOUR)));
    assert_eq!(
        watch.runs_since(Some(HOUR - 500), 11_000),
        [Run::new(HOUR - 500, HOUR), Run::new(10_000, 11_000)]
    );
}

#[test]
fn a_step_forward_is_believed_once_it_has_lasted() {
    let mut watch = ClockWatch::default();
    let mut at = |second: u64, wall_ms: i64| {
        watch.read(Duration::from_secs(second), wall_ms, None);
        watch.settled_ms(LONG)
    };
    assert_eq!(at(0, 0), None);
    assert_eq!(at(5, 5_000), Some(5_000));
    assert_eq!(at(6, HOUR), Some(6_000));
    assert_eq!(at(8, HOUR + 2_000), Some(8_000));
    assert_eq!(at(9, 9_000), Some(9_000));
    assert_eq!(at(20, HOUR), Some(20_000));
    assert_eq!(at(25, HOUR + 5_000), Some(HOUR + 5_000));
    // A clock that is set back is believed at once, because that only keeps more history.
    assert_eq!(at(26, 26_000), Some(26_000));
}
