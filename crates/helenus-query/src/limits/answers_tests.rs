use std::time::Duration;

use super::*;

#[test]
fn what_is_dropped_is_free_again() {
    let answers = Arc::new(ResultMemory::new(100));
    let first = answers.try_reserve(60).unwrap();
    assert!(answers.try_reserve(60).is_none());
    let mut second = answers.try_reserve(20).unwrap();
    second.add(answers.try_reserve(20).unwrap());
    drop(first);
    assert!(answers.try_reserve(60).is_some());
    drop(second);
    assert!(answers.try_reserve(1000).is_some(), "one that is alone has room");
}

#[tokio::test(start_paused = true)]
async fn waiting_request_gets_released_memory() {
    let answers = Arc::new(ResultMemory::new(100));
    let first = answers.try_reserve(100).unwrap();
    let soon = Instant::now() + Duration::from_millis(50);
    assert!(matches!(
        answers.reserve(50, soon).await,
        Err(CqlError::Overloaded(_))
    ));
    let waiting = tokio::spawn({
        let answers = answers.clone();
        async move { answers.reserve(50, Instant::now() + Duration::from_secs(5)).await }
    });
    tokio::task::yield_now().await;
    drop(first);
    assert!(waiting.await.unwrap().is_ok());
}
