use std::time::Duration;

use helenus_row::TableId;

use super::{INTERVAL_MAX, INTERVAL_MIN, Unflushed, interval};

const TABLET: u32 = 3;
const TABLE: TableId = TableId(7);
const PERIOD: Duration = Duration::from_secs(10);
const INTERVAL: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_tablet_is_due_before_its_rows_are_older_than_the_period() {
    let mut unflushed = Unflushed::default();
    let periods = [(TABLE, PERIOD)];
    let mut is_due = |holds: bool| unflushed.is_due(TABLET, &periods, INTERVAL, |_| holds);
    assert!(!is_due(true));
    tokio::time::advance(Duration::from_secs(8)).await;
    assert!(!is_due(true));
    tokio::time::advance(INTERVAL).await;
    assert!(is_due(true));
    assert!(!is_due(true), "the time begins anew");
}

#[tokio::test(start_paused = true)]
async fn a_tablet_without_rows_of_the_table_is_never_due() {
    let mut unflushed = Unflushed::default();
    let periods = [(TABLE, PERIOD)];
    let mut is_due = |holds: bool| unflushed.is_due(TABLET, &periods, INTERVAL, |_| holds);
    assert!(!is_due(true));
    tokio::time::advance(PERIOD).await;
    assert!(!is_due(false));
    assert!(!is_due(true), "other rows came");
}

#[test]
fn tablets_are_looked_at_several_times_in_a_period() {
    let of = |millis| interval(&[(TABLE, Duration::from_millis(millis))]);
    assert_eq!(of(1000), Duration::from_millis(250));
    assert_eq!(of(1), INTERVAL_MIN);
    assert_eq!(of(3_600_000), INTERVAL_MAX);
    assert_eq!(interval(&[]), INTERVAL_MAX);
}
