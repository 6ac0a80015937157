use std::time::Duration;

use super::*;

#[test]
fn counts_go_to_the_request_that_is_polled() {
    let mut one = StoreWork::default();
    let mut two = StoreWork::default();
    count(|work| work.scans += 100);
    for _ in 0..2 {
        one.swap();
        count(|work| work.scans += 1);
        one.swap();
        two.swap();
        count(|work| work.row_cache_hits += 1);
        two.swap();
    }
    assert_eq!((one.scans, one.row_cache_hits), (2, 0));
    assert_eq!((two.scans, two.row_cache_hits), (0, 2));
}

#[tokio::test]
async fn only_waiting_is_timed() {
    let mut work = StoreWork::default();
    work.swap();
    read_wait(std::future::ready(())).await;
    work.swap();
    assert_eq!(work.read_wait_ns, 0);
    work.swap();
    read_wait(tokio::time::sleep(Duration::from_millis(20))).await;
    work.swap();
    assert!(work.read_wait_ns >= 20_000_000, "{work:?}");
}
