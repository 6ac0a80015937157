use helenus_tablet::trace::TraceRecorder;

use super::*;

#[test]
fn steps_go_to_the_request_that_is_polled() {
    let (mut one, mut two) = (RequestMeasurement::default(), RequestMeasurement::default());
    let recording = TraceRecorder::begin(&mut one.store);
    one.swap();
    read(3, 4);
    one.swap();
    two.swap();
    read(5, 6);
    two.swap();
    let steps = recording.finish();
    let [step] = steps.as_slice() else {
        panic!("{steps:?}")
    };
    assert_eq!(step.what, "Read 3 live rows and 4 tombstone cells");
    assert_eq!((one.statement.live_rows, two.statement.live_rows), (3, 5));
}

#[test]
fn waits_for_owners_that_overlap_count_once() {
    let began = Instant::now();
    let at = |ms| began + Duration::from_millis(ms);
    let mut statement = StatementMeasurement::default();
    for (from, to) in [(0, 10), (0, 12), (5, 12), (20, 25)] {
        statement.add_owner_wait(at(from), at(to));
    }
    assert_eq!(statement.owner_ns, 17_000_000);
}
