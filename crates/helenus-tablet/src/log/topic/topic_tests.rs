use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use object_store::memory::InMemory;
use uuid::Uuid;

use super::fake::{Course, FakeTopic};
use super::format::{LogPlace, Part, RecordKey, split};
use super::{BegunLog, TopicAppender, TopicClient, TopicLogs, TopicRecord};
use crate::clock::StoreClock;
use crate::error::StoreError;
use crate::log::encode_record;
use crate::log::writer::{LogAppender, empty_frame};
use crate::operation::Op;

const STORE: Uuid = Uuid::from_u128(7);

struct Bench {
    topic: Arc<FakeTopic>,
    logs: TopicLogs,
}

impl Bench {
    fn new() -> Bench {
        let topic = Arc::new(FakeTopic::default());
        let logs = TopicLogs {
            client: topic.clone(),
            store_identity: STORE,
            bucket: Arc::new(InMemory::new()),
        };
        Bench { topic, logs }
    }

    async fn begin(&self) -> (BegunLog, TopicAppender) {
        let begun = self.logs.begin(&BTreeSet::new(), 1).await.unwrap();
        let appender = self.appender(&begun);
        (begun, appender)
    }

    fn appender(&self, begun: &BegunLog) -> TopicAppender {
        TopicAppender::new(
            self.topic.clone(),
            begun,
            Arc::default(),
            Arc::new(StoreClock::new(None)),
        )
    }

    /// Returns the numbers of the records that a new owner reads.
    async fn inherited(&self, place: LogPlace) -> Vec<u64> {
        let fenced = self.logs.fence(place).await.unwrap();
        let groups = self.logs.read(place, 1, fenced.end - 1).await.unwrap();
        let records = groups.into_iter().flat_map(|(_, group)| group.records);
        records.map(|record| record.lsn).collect()
    }
}

fn frame(lsn: u64, bytes: usize) -> Vec<u8> {
    let mut frame = empty_frame();
    let op = Op {
        token: 1,
        key: Bytes::from_static(b"k"),
        operand: Bytes::from(vec![7; bytes]),
    };
    encode_record(lsn, &[op], &mut frame);
    frame
}

/// Appends a frame, as the log thread does.
async fn append(mut appender: TopicAppender, lsn: u64) -> (TopicAppender, Result<u64, StoreError>) {
    append_bytes(&mut appender, lsn, 10).await
}

async fn append_bytes(
    appender: &mut TopicAppender,
    lsn: u64,
    bytes: usize,
) -> (TopicAppender, Result<u64, StoreError>) {
    let mut own = TopicAppender {
        client: appender.client.clone(),
        place: appender.place,
        key: appender.key,
        next_frame: appender.next_frame,
        next_offset: appender.next_offset,
        offsets: appender.offsets.clone(),
        ledger: appender.ledger.clone(),
        clock: appender.clock.clone(),
        interval: appender.interval,
        is_abandoned: appender.is_abandoned.clone(),
        part_bytes_max: appender.part_bytes_max,
        is_ended: appender.is_ended,
    };
    let result = own.append(&mut frame(lsn, bytes)).await;
    (own, result)
}

fn fence(epoch: u64) -> TopicRecord {
    let key = RecordKey {
        store: STORE,
        epoch,
        writer: Uuid::from_u128(99),
        part: None,
    };
    TopicRecord {
        key: key.encode(),
        value: Vec::new(),
    }
}

fn is_fenced(result: &Result<u64, StoreError>) -> bool {
    matches!(result, Err(StoreError::Fenced))
}

#[test]
fn bytes_of_keys_and_ids() {
    let key = RecordKey {
        store: STORE,
        epoch: 3,
        writer: Uuid::from_u128(9),
        part: Some(Part {
            frame: 5,
            index: 1,
            count: 2,
        }),
    };
    let hex: String = key.encode().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(
        hex,
        "484c4e53544f503100000000000000000000000000000007030000000000000005000000000000000100000002000000\
         00000000000000000000000000000009"
    );
    assert_eq!(RecordKey::decode(&key.encode()), Some(key));
    assert_eq!(RecordKey::decode(b"something else"), None);
    let place = LogPlace {
        partition: 12,
        epoch: 34,
    };
    assert_eq!(place.id().to_string(), "0000000c-4854-804c-8000-000000000022");
    assert_eq!(LogPlace::of(place.id()), Some(place));
    assert_eq!(LogPlace::of(Uuid::new_v4()), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn heir_reads_acknowledged_records_and_writer_is_fenced() {
    let bench = Bench::new();
    let (begun, appender) = bench.begin().await;
    let (appender, first) = append(appender, 1).await;
    let (appender, second) = append(appender, 2).await;
    assert!(first.is_ok() && second.is_ok());
    assert_eq!(bench.inherited(begun.place).await, [1, 2]);
    let (appender, late) = append(appender, 3).await;
    assert!(is_fenced(&late), "{late:?}");
    let (_, later) = append(appender, 4).await;
    assert!(is_fenced(&later), "{later:?}");
    // The records of the fenced writer lie behind the fence.
    assert_eq!(bench.inherited(begun.place).await, [1, 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_arrives_behind_the_fence_is_not_acknowledged() {
    let bench = Bench::new();
    let (begun, appender) = bench.begin().await;
    // The fence is appended first, while the record is being sent.
    bench.topic.script([Course::Fails, Course::After(vec![fence(1)])]);
    let (_, result) = append(appender, 1).await;
    assert!(is_fenced(&result), "{result:?}");
    assert_eq!(bench.inherited(begun.place).await, [0u64; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_before_the_fence_counts_though_its_answer_was_lost() {
    let bench = Bench::new();
    let (begun, appender) = bench.begin().await;
    bench.topic.script([Course::AnswerLostBefore(vec![fence(1)])]);
    let (appender, result) = append(appender, 1).await;
    assert!(result.is_ok(), "{result:?}");
    assert_eq!(bench.inherited(begun.place).await, [1]);
    let (_, result) = append(appender, 2).await;
    assert!(is_fenced(&result), "{result:?}");
    assert_eq!(bench.inherited(begun.place).await, [1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_was_sent_twice_is_read_once() {
    let bench = Bench::new();
    let (begun, appender) = bench.begin().await;
    bench
        .topic
        .script([Course::AnswerLost, Course::Fails, Course::AnswerLost]);
    let (appender, first) = append(appender, 1).await;
    // An earlier try of the first record arrives between later records.
    let again = bench.topic.records()[1].clone();
    bench.topic.script([Course::After(vec![again.clone()])]);
    let (appender, second) = append(appender, 2).await;
    bench.topic.push(again);
    let (_, third) = append(appender, 3).await;
    assert!(first.is_ok() && second.is_ok() && third.is_ok());
    assert_eq!(bench.inherited(begun.place).await, [1, 2, 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn records_of_older_epochs_do_not_end_a_log_and_are_not_of_it() {
    let bench = Bench::new();
    let (old, writer) = bench.begin().await;
    let (writer, _) = append(writer, 1).await;
    assert_eq!(bench.inherited(old.place).await, [1]);
    let (new, appender) = bench.begin().await;
    assert_eq!((new.place.partition, new.place.epoch), (0, 2));
    // The former writer does not know about the new log yet, and its record arrives in between.
    let (_, late) = append(writer, 2).await;
    assert!(is_fenced(&late), "{late:?}");
    let (appender, result) = append(appender, 10).await;
    assert!(result.is_ok(), "{result:?}");
    // A slow new owner fences the former log.
    bench.topic.push(fence(1));
    let (_, result) = append(appender, 11).await;
    assert!(result.is_ok(), "{result:?}");
    assert_eq!(bench.inherited(old.place).await, [1]);
    assert_eq!(bench.inherited(new.place).await, [10, 11]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_frame_is_parts_that_count_together() {
    let bench = Bench::new();
    let (begun, mut appender) = bench.begin().await;
    bench.topic.limit(6000);
    let (appender, result) = append_bytes(&mut appender, 1, 20_000).await;
    assert!(result.is_ok(), "{result:?}");
    assert!(bench.topic.records().len() > 4);
    // A frame without its last part.
    let mut parts = split(appender.key, 3, &vec![1; 9000], 4000);
    parts.pop();
    parts.into_iter().for_each(|part| bench.topic.push(part));
    assert_eq!(bench.inherited(begun.place).await, [1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_writer_whose_records_were_deleted_claims_nothing() {
    let bench = Bench::new();
    let (begun, appender) = bench.begin().await;
    bench
        .topic
        .script([Course::AnswerLostBefore(vec![fence(1)]), Course::Fails]);
    let deleting = bench.topic.clone();
    deleting.script([Course::After(Vec::new())]);
    let emptied = tokio::spawn(async move {
        while deleting.records().len() < 3 {
            tokio::task::yield_now().await;
        }
        deleting.delete_before(0, begun.offset + 3).await.unwrap();
    });
    let (_, result) = append(appender, 1).await;
    emptied.await.unwrap();
    assert!(matches!(result, Err(StoreError::Unknown(_))), "{result:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_ends_without_its_brokers_leaves_the_outcome_open() {
    let bench = Bench::new();
    let (_, appender) = bench.begin().await;
    appender.is_abandoned.store(true, Ordering::Release);
    bench.topic.script([Course::Fails]);
    let (appender, result) = append(appender, 1).await;
    assert!(matches!(result, Err(StoreError::Unknown(_))), "{result:?}");
    // A part of the first frame may be there, so no other frame may get its number.
    let (_, result) = append(appender, 2).await;
    assert!(is_fenced(&result), "{result:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_frames_are_told() {
    let bench = Bench::new();
    let (begun, appender) = bench.begin().await;
    let (appender, _) = append(appender, 1).await;
    let (_, _) = append(appender, 2).await;
    let fenced = bench.logs.fence(begun.place).await.unwrap();
    assert_eq!(fenced.end, 4);
    // The topic's retention would delete records like this.
    bench.topic.delete_before(0, begun.offset + 2).await.unwrap();
    let read = bench.logs.read(begun.place, 1, 3).await;
    assert!(matches!(read, Err(StoreError::Corrupt { .. })), "{read:?}");
    assert_eq!(bench.logs.read(begun.place, 3, 3).await.unwrap().len(), 1);
    bench.topic.delete_before(0, begun.offset + 3).await.unwrap();
    let fenced = bench.logs.fence(begun.place).await;
    assert!(matches!(fenced, Err(StoreError::Corrupt { .. })), "{fenced:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_needed_partition_and_that_of_another_store_are_refused() {
    let bench = Bench::new();
    let (begun, _) = bench.begin().await;
    bench.logs.fence(begun.place).await.unwrap();
    let needed = BTreeSet::from([begun.place.id()]);
    let refused = bench.logs.begin(&needed, 1).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))));
    let other = TopicLogs {
        client: bench.topic.clone(),
        store_identity: Uuid::from_u128(8),
        bucket: Arc::new(InMemory::new()),
    };
    let refused = other.begin(&BTreeSet::new(), 1).await;
    assert!(matches!(refused, Err(StoreError::InvalidConfig(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_beginning_that_comes_too_late_is_not_used() {
    let bench = Bench::new();
    // The epoch of the claim is fenced already.
    bench.topic.push(fence(1));
    let refused = bench.logs.begin(&BTreeSet::new(), 1).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))));
    let (begun, _) = bench.begin().await;
    assert_eq!(begun.place.epoch, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_log_that_has_ended_the_last_frame_and_the_fence_stay() {
    let bench = Bench::new();
    let (begun, appender) = bench.begin().await;
    let (appender, _) = append(appender, 1).await;
    let (_, _) = append(appender, 2).await;
    assert!(bench.logs.ended_logs().await.unwrap().is_empty());
    bench.logs.fence(begun.place).await.unwrap();
    assert_eq!(bench.logs.ended_logs().await.unwrap(), [begun.place]);
    bench.logs.delete_fenced(begun.place).await.unwrap();
    assert_eq!(bench.topic.records().len(), 2);
    assert_eq!(bench.logs.fence(begun.place).await.unwrap().end, 4);
    // A later log begins in the partition, so none of this one is needed. A suspended process may still name it.
    let (later, _) = bench.begin().await;
    bench.logs.delete_former(&later).await;
    assert_eq!(bench.logs.fence(begun.place).await.unwrap().end, 1);
}
