use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bytes::Bytes;
use object_store::memory::InMemory;
use object_store::{ObjectStore, ObjectStoreExt};

use super::*;
use crate::clock::StoreClock;
use crate::error::StoreError;
use crate::log::{Ledger, LogAppender, encode_record};
use crate::operation::Op;

const ID: LogId = LogId::from_u128(7);

fn clock() -> Arc<StoreClock> {
    Arc::new(StoreClock::new(None))
}

fn appender(store: &Arc<dyn ObjectStore>, ledger: &Arc<Ledger>) -> ObjectAppender {
    ObjectAppender {
        store: store.clone(),
        id: ID,
        next: 2,
        ledger: ledger.clone(),
        clock: clock(),
        interval: Duration::ZERO,
        newest: None,
        is_abandoned: Arc::new(AtomicBool::new(false)),
    }
}

fn frame(lsn: u64) -> Vec<u8> {
    let mut frame = vec![0; crate::log::frame::FRAME_HEADER_LEN];
    let op = Op {
        token: 5,
        key: Bytes::from_static(b"key"),
        operand: Bytes::from(lsn.to_string()),
    };
    encode_record(lsn, &[op], &mut frame);
    frame
}

/// Appends a record.
async fn append(mut appender: ObjectAppender, lsn: u64) -> (ObjectAppender, Result<u64, StoreError>) {
    let appended = appender.append(&mut frame(lsn)).await;
    (appender, appended)
}

async fn begun() -> (Arc<dyn ObjectStore>, Arc<Ledger>, ObjectAppender) {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let ledger = Arc::<Ledger>::default();
    begin(&store, ID, &clock(), &ledger).await.unwrap();
    let appender = appender(&store, &ledger);
    (store, ledger, appender)
}

fn lsns(objects: &LogObjects) -> Vec<u64> {
    let groups = objects.iter().flat_map(|(_, group)| &group.records);
    groups.map(|record| record.lsn).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn fenced_writer_appends_nothing_and_keeps_earlier_data() {
    let (store, _, writer) = begun().await;
    let (writer, first) = append(writer, 10).await;
    let (writer, second) = append(writer, 11).await;
    assert!(first.is_ok() && second.is_ok());
    let fenced = fence(&store, ID, 1).await.unwrap();
    assert_eq!(fenced.end, 4);
    let (writer, refused) = append(writer, 12).await;
    assert!(matches!(refused, Err(StoreError::Fenced)), "{refused:?}");
    // A second node that fences the log finds the same fence.
    assert_eq!(fence(&store, ID, 1).await.unwrap(), fenced);
    assert!(matches!(append(writer, 13).await.1, Err(StoreError::Fenced)));
    let objects = read(&store, ID, 1, fenced.end - 1).await.unwrap();
    assert_eq!(lsns(&objects), [10, 11]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_that_is_taken_ends_the_log() {
    let (store, ledger, writer) = begun().await;
    append(writer, 10).await.1.unwrap();
    let there = store.get(&log_path(ID, 2)).await.unwrap().bytes().await.unwrap();
    let again = appender(&store, &ledger);
    assert!(matches!(append(again, 99).await.1, Err(StoreError::Fenced)));
    assert_eq!(
        store.get(&log_path(ID, 2)).await.unwrap().bytes().await.unwrap(),
        there
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_object_differs_from_deleted_object() {
    let (store, ledger, mut writer) = begun().await;
    for lsn in 10..14 {
        let appended;
        (writer, appended) = append(writer, lsn).await;
        appended.unwrap();
        if lsn == 12 {
            // No tablet needs the first two objects any more. The next object records that.
            ledger.segments.lock().drain(..2);
        }
    }
    for number in [1, 2] {
        store.delete(&log_path(ID, number)).await.unwrap();
    }
    assert_eq!(lsns(&read(&store, ID, 1, 5).await.unwrap()), [11, 12, 13]);
    store.delete(&log_path(ID, 4)).await.unwrap();
    let error = read(&store, ID, 1, 5).await.unwrap_err();
    assert!(error.to_string().contains("00000000000000000004"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn continued_log_part_is_read_after_truncation() {
    let (store, ledger, mut writer) = begun().await;
    for lsn in 10..18 {
        let appended;
        (writer, appended) = append(writer, lsn).await;
        appended.unwrap();
        if lsn == 14 {
            // A tablet was closed after object 5. Its unflushed records are in object 4 and later.
            ledger.segments.lock().drain(..3);
        }
    }
    for number in 1..4 {
        store.delete(&log_path(ID, number)).await.unwrap();
    }
    for is_fenced in [false, true] {
        if is_fenced {
            fence(&store, ID, 1).await.unwrap();
        }
        assert_eq!(lsns(&read(&store, ID, 2, 5).await.unwrap()), [12, 13]);
        assert_eq!(lsns(&read(&store, ID, 2, 3).await.unwrap()), [0; 0]);
    }
    store.delete(&log_path(ID, 4)).await.unwrap();
    let error = read(&store, ID, 2, 5).await.unwrap_err();
    assert!(error.to_string().contains("00000000000000000004"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_and_absence_are_refused() {
    let (store, _, writer) = begun().await;
    append(writer, 10).await.1.unwrap();
    let path = log_path(ID, 2);
    let mut bytes = store.get(&path).await.unwrap().bytes().await.unwrap().to_vec();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    store.put(&path, bytes.into()).await.unwrap();
    let error = read(&store, ID, 1, 2).await.unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
    let error = fence(&store, LogId::from_u128(8), 1).await.unwrap_err();
    assert!(error.to_string().contains("the log is missing"), "{error}");
}

#[test]
fn paths_of_objects() {
    let path = log_path(ID, 12);
    assert_eq!(
        path.as_ref(),
        "logs/00000000-0000-0000-0000-000000000007/00000000000000000012"
    );
    assert!(is_log_object(&path));
    assert!(!is_log_object(
        &"tablets/1/manifest/00000000000000000012.manifest".into()
    ));
}
