use helenus_query::measurement::{RequestMeasurement, StatementMeasurement};

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
    let mut measurement = RequestMeasurement {
        statement: StatementMeasurement {
            parsing_ns: 1_000_000,
            ..StatementMeasurement::default()
        },
        ..RequestMeasurement::default()
    };
    measurement.store.log_ns = 4_500_000;
    measurement.store.read_wait_ns = 10_000;
    let stage_times = StageTimes::new(&arrival, &measurement, at(15));
    assert_eq!(
        stage_times.to_string(),
        "receive 2.0, wait 3.0, parse 1.0, log 4.5, run 4.5"
    );
    let total: Duration = stage_times.stages().map(|(_, took)| took).sum();
    assert_eq!(total, Duration::from_millis(15));
}
