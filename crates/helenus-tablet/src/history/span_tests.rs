use super::*;
use crate::log::Record;

fn at(offset: u64) -> LogPosition {
    LogPosition { segment: 1, offset }
}

/// Returns a segment with a commit for each time, in that order. Each commit has one operation, whose token is the commit's number.
fn segment(times: &[i64]) -> Segments {
    let frame = |(number, time_ms): (usize, &i64)| {
        let op = Op {
            token: number as i64,
            key: Bytes::from_static(b"k"),
            operand: Bytes::from_static(b"v"),
        };
        let frame = Frame {
            time_ms: *time_ms,
            records: vec![Record {
                lsn: number as u64 + 1,
                ops: vec![op],
            }],
        };
        (at(number as u64 * 10), frame)
    };
    Segments {
        previous: 0,
        first: 1,
        last: 1,
        frames: times.iter().enumerate().map(frame).collect(),
    }
}

/// Returns the numbers of the commits in a span.
fn read(times: &[i64], until: &HistoryUntil) -> Result<Vec<i64>, StoreError> {
    let span = Span::new(Uuid::nil(), &[], until);
    let mut ops = SpanOps::new(&span);
    ops.add(segment(times), &|_| true)?;
    Ok(ops.found.into_iter().map(|op| op.token).collect())
}

fn until(time_ms: i64, set_back: SetBack) -> HistoryUntil {
    HistoryUntil {
        time_ms,
        set_back,
        before: None,
    }
}

const HOUR: i64 = 3_600_000;

#[test]
fn commits_up_to_a_time_are_a_prefix() {
    let times = [10, 20, 30, 28, 40];
    let nowhere = |time_ms| read(&times, &until(time_ms, SetBack::Nowhere)).unwrap();
    assert_eq!(nowhere(9), Vec::<i64>::new());
    assert_eq!(nowhere(20), [0, 1]);
    // A small step back does not reorder commits.
    assert_eq!(nowhere(29), [0, 1]);
    assert_eq!(nowhere(30), [0, 1, 2, 3]);
    assert_eq!(nowhere(40), [0, 1, 2, 3, 4]);
}

#[test]
fn a_clock_that_was_an_hour_ahead_hides_no_commit() {
    let times = [10, HOUR + 20, HOUR + 30, 40, 50];
    let before = |time_ms| read(&times, &until(time_ms, SetBack::Before { from_ms: HOUR })).unwrap();
    assert_eq!(before(45), [0, 1, 2, 3], "those of the hour ahead came first");
    assert_eq!(before(35), [0, 1, 2], "before the first commit since");
    assert_eq!(read(&times, &until(35, SetBack::After)).unwrap(), [0]);
    assert_eq!(
        read(&times, &until(HOUR + 40, SetBack::After)).unwrap(),
        [0, 1, 2],
        "what follows the step is later"
    );
    let refused = read(&times, &until(45, SetBack::Nowhere)).unwrap_err();
    assert!(
        matches!(refused, StoreError::HistoryUncertain { from_ms: 40, to_ms } if to_ms == HOUR + 30),
        "{refused}"
    );
    // Times before and after the repeated span are not uncertain.
    assert_eq!(read(&times, &until(10, SetBack::Nowhere)).unwrap(), [0]);
    assert_eq!(
        read(&times, &until(HOUR + 30, SetBack::Nowhere)).unwrap(),
        [0, 1, 2, 3, 4]
    );
}

#[test]
fn nothing_is_read_behind_the_place_that_is_known_to_be_later() {
    let place = |offset| HistoryPosition {
        log: Uuid::nil(),
        segment: 1,
        offset,
    };
    let bounded = |offset, set_back| HistoryUntil {
        before: Some(vec![place(offset)]),
        ..until(100, set_back)
    };
    for set_back in [SetBack::Nowhere, SetBack::Before { from_ms: 200 }, SetBack::After] {
        assert_eq!(read(&[10, 20, 30], &bounded(20, set_back)).unwrap(), [0, 1]);
    }
    let of_a_later_log = HistoryUntil {
        before: Some(Vec::new()),
        ..until(100, SetBack::Nowhere)
    };
    assert_eq!(read(&[10], &of_a_later_log).unwrap(), Vec::<i64>::new());
}

#[test]
fn time_of_the_first_segment_ends_no_span() {
    let position = HistoryPosition {
        log: Uuid::nil(),
        segment: 2,
        offset: 171,
    };
    let span = Span::new(Uuid::nil(), &[position], &until(20, SetBack::Nowhere));
    assert!(
        !span.is_beyond(2, HOUR),
        "its frames before the offset had a clock ahead"
    );
    assert!(span.is_beyond(3, HOUR));
}
