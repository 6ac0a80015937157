use super::*;

async fn time_taken(throttle: &Throttle, bytes: &[u64]) -> Duration {
    let began = Instant::now();
    for bytes in bytes {
        throttle.take(*bytes).await;
    }
    began.elapsed()
}

#[tokio::test(start_paused = true)]
async fn so_many_bytes_pass_each_second() {
    let throttle = Throttle::default();
    assert_eq!(time_taken(&throttle, &[u64::MAX, u64::MAX]).await, Duration::ZERO);
    throttle.set_rate(Some(1000));
    let took = time_taken(&throttle, &[500, 500, 500, 500, 1]).await;
    assert_eq!(took.as_millis().div_ceil(10), 200, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn what_does_not_wait_delays_what_does() {
    let throttle = Throttle::default();
    throttle.set_rate(Some(1000));
    throttle.charge(3000);
    let took = time_taken(&throttle, &[1]).await;
    assert!(took >= Duration::from_secs(3), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn waiting_requests_follow_new_rate() {
    let throttle = Arc::new(Throttle::default());
    throttle.set_rate(Some(1));
    throttle.charge(1_000_000);
    let waiting = tokio::spawn({
        let throttle = throttle.clone();
        async move { time_taken(&throttle, &[1000]).await }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    throttle.set_rate(None);
    let took = waiting.await.unwrap();
    assert!(took < Duration::from_secs(2), "{took:?}");
}
