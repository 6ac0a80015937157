use super::*;

#[test]
fn lag_grows_with_time_and_rate() {
    let progress = StreamProgress {
        completed_us: 4_000_000,
        rows_per_s: 50.0,
    };
    let lag = progress.lag(6_000_000);
    assert_eq!((lag.seconds, lag.rows), (2.0, 100.0));
    // The clock of the source may be set back.
    assert_eq!(progress.lag(3_000_000), Lag::default());
}
