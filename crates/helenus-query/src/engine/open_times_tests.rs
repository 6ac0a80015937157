use std::sync::atomic::AtomicUsize;

use futures::FutureExt;
use futures::future::join_all;
use tokio::sync::{Barrier, Notify};

use super::*;
use crate::execution::modification::dml_tests::Session;
use crate::schema::Schema;

const ALL: u64 = 256 << 20;

fn key(time_ms: i64) -> AsOfKey {
    AsOfKey::Time {
        time_ms,
        keyspace: "ks".to_owned(),
    }
}

/// Returns an opened time that holds `held` bytes of the logs in memory.
fn opened(session: &Session, held: u64) -> Opened {
    let context = &session.engine.context;
    let schema = Schema::clone(&context.schema());
    Ok(OpenedTime {
        context: context.as_of(context.store.clone(), schema, context.clock.clone()),
        held,
        all: ALL,
    })
}

/// Returns an opened time that holds `held` bytes, if the share is large enough.
fn opened_within(session: &Session, share: Share, held: u64) -> Opened {
    match held > share.bytes(ALL) {
        true => Err(NotOpened::TooLarge(CqlError::invalid("too large"))),
        false => opened(session, held),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_is_opened_once_for_all_that_wait() {
    let session = &Session::new().await;
    let (times, may_open) = (OpenTimes::default(), Notify::new());
    let open = |_| {
        async {
            may_open.notified().await;
            opened(session, 0)
        }
        .boxed()
    };
    let time = key(1);
    let waiting = join_all((0..12).map(|_| times.get_or_open(&time, open)));
    let release = async {
        tokio::task::yield_now().await;
        may_open.notify_one();
    };
    let (found, ()) = tokio::join!(waiting, release);
    assert!(found.iter().all(Result::is_ok));
    assert_eq!(times.opened(), 1);
    assert!(times.get(&time).is_some() && times.get(&key(2)).is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn times_are_opened_side_by_side() {
    let session = &Session::new().await;
    let (times, all) = (OpenTimes::default(), Barrier::new(OPENINGS as usize));
    let open = |_| {
        async {
            all.wait().await;
            opened(session, 0)
        }
        .boxed()
    };
    let keys: Vec<AsOfKey> = (0..i64::from(OPENINGS)).map(key).collect();
    let found = join_all(keys.iter().map(|key| times.get_or_open(key, open))).await;
    assert!(found.iter().all(Result::is_ok));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_that_needs_more_than_its_share_is_opened_alone() {
    let session = &Session::new().await;
    let (times, running) = (OpenTimes::default(), AtomicUsize::new(0));
    let open = |share| {
        let running = &running;
        async move {
            let others = running.fetch_add(1, Ordering::Relaxed);
            assert!(share == Share::Part || others == 0, "{others} run beside it");
            tokio::task::yield_now().await;
            running.fetch_sub(1, Ordering::Relaxed);
            opened_within(session, share, ALL / 4)
        }
        .boxed()
    };
    let keys: Vec<AsOfKey> = (0..8).map(key).collect();
    // An opened time makes room for others once its reader has ended.
    let read = async |key| times.get_or_open(key, open).await.is_ok();
    let found = join_all(keys.iter().map(read)).await;
    assert!(found.into_iter().all(|is_read| is_read));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_least_recently_used_time_makes_room() {
    let session = &Session::new().await;
    let times = OpenTimes::default();
    let open = |share| async move { opened_within(session, share, ALL / 8) }.boxed();
    for time_ms in 0..8 {
        times.get_or_open(&key(time_ms), open).await.unwrap();
    }
    assert!(times.get(&key(0)).is_some(), "eight of an eighth fit");
    times.get_or_open(&key(8), open).await.unwrap();
    assert!(times.get(&key(1)).is_none(), "it was used least recently");
    assert!(
        (0..9)
            .filter(|time_ms| times.get(&key(*time_ms)).is_some())
            .count()
            == 8
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_that_is_read_counts_until_it_is_left() {
    let session = &Session::new().await;
    let times = OpenTimes::default();
    let whole = |share| async move { opened_within(session, share, ALL) }.boxed();
    let reader = times.get_or_open(&key(1), whole).await.unwrap();
    let small = |_| async move { opened(session, 0) }.boxed();
    let time = key(2);
    let waiting = times.get_or_open(&time, small);
    tokio::pin!(waiting);
    assert!(waiting.as_mut().now_or_never().is_none(), "the reader holds all");
    // The reader's time stays open.
    assert!(Arc::ptr_eq(&times.get(&key(1)).unwrap(), &reader));
    drop(reader);
    waiting.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_opening_that_fails_is_tried_by_the_next() {
    let session = &Session::new().await;
    let (times, tries) = (OpenTimes::default(), AtomicUsize::new(0));
    let open = |_| {
        async {
            match tries.fetch_add(1, Ordering::Relaxed) {
                0 => Err(NotOpened::Failed(CqlError::invalid("gone"))),
                _ => opened(session, 0),
            }
        }
        .boxed()
    };
    assert!(times.get_or_open(&key(1), open).await.is_err());
    assert!(times.get_or_open(&key(1), open).await.is_ok());
    assert_eq!(times.opened(), 1);
}
