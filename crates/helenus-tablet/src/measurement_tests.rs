use std::time::Duration;

use super::*;

#[test]
fn counts_go_to_the_request_that_is_polled() {
    let mut one = StoreMeasurement::default();
    let mut two = StoreMeasurement::default();
    count(|store| store.scans += 100);
    for _ in 0..2 {
        one.swap();
        count(|store| store.scans += 1);
        one.swap();
        two.swap();
        count(|store| store.row_cache_hits += 1);
        two.swap();
    }
    assert_eq!((one.scans, one.row_cache_hits), (2, 0));
    assert_eq!((two.scans, two.row_cache_hits), (0, 2));
}

#[tokio::test]
async fn only_waiting_is_timed() {
    let mut measurement = StoreMeasurement::default();
    measurement.swap();
    read_wait(std::future::ready(())).await;
    measurement.swap();
    assert_eq!(measurement.read_wait_ns, 0);
    measurement.swap();
    read_wait(tokio::time::sleep(Duration::from_millis(20))).await;
    measurement.swap();
    assert!(measurement.read_wait_ns >= 20_000_000, "{measurement:?}");
}
