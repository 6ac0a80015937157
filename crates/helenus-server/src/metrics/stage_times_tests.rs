use helenus_query::trace::{StatementWork, Work};

use super::*;

#[test]
fn unaccounted_time_counts_as_running() {
    let first_byte = Instant::now();
    let at = |ms| first_byte + Duration::from_millis(ms);
    let arrival = Arrival {
        first_byte,
        last_byte: at(2),
        begun: at(5),
    };
    let mut work = Work {
        statement: StatementWork {
            parsing_ns: 1_000_000,
            ..StatementWork::default()
        },
        ..Work::default()
    };
    work.store.log_ns = 4_500_000;
    work.store.read_wait_ns = 10_000;
    let stage_times = StageTimes::new(&arrival, &work, at(15));
    assert_eq!(
        stage_times.to_string(),
        "receive 2.0, wait 3.0, parse 1.0, log 4.5, run 4.5"
    );
    let total: Duration = stage_times.stages().map(|(_, took)| took).sum();
    assert_eq!(total, Duration::from_millis(15));
}
