use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::oneshot;

use super::{WritePlace, WriteTurn};
use crate::error::StoreError;
use crate::log::frame::FRAME_HEADER_LEN;
use crate::log::{Dispatch, Entry, Log, LogAppender, Route, Waiter, decode_records, start};
use crate::operation::Op;

struct AnyTablet;

impl Route for AnyTablet {
    fn check(&self, _ops: &[Op]) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Answers writers.
struct Answers;

#[async_trait]
impl Dispatch<AnyTablet> for Answers {
    type Group = Vec<Entry<AnyTablet>>;

    fn route(&self, entries: Vec<Entry<AnyTablet>>) -> Self::Group {
        entries
    }

    fn last_lsns(&self, _group: &Self::Group) -> Vec<(u32, u64)> {
        Vec::new()
    }

    async fn apply(&self, group: Self::Group) -> Duration {
        for waiter in group.into_iter().filter_map(|entry| entry.waiter) {
            waiter.done(Ok(()));
        }
        Duration::ZERO
    }

    fn fenced(&self) {}
}

/// Reports the keys of each frame, and returns the outcome that the test sends.
struct Frames {
    begun: Sender<Vec<Bytes>>,
    outcomes: Receiver<Result<(), StoreError>>,
}

#[async_trait]
impl LogAppender for Frames {
    async fn append(&mut self, frame: &mut Vec<u8>) -> Result<u64, StoreError> {
        let records = decode_records(Bytes::copy_from_slice(&frame[FRAME_HEADER_LEN..])).unwrap();
        let ops = records.into_iter().flat_map(|record| record.ops);
        self.begun.send(ops.map(|op| op.key).collect()).unwrap();
        self.outcomes.recv().unwrap().map(|()| 1)
    }
}

#[derive(Default)]
struct Turn {
    follows: Option<WritePlace>,
    place: OnceLock<WritePlace>,
}

impl WriteTurn for Turn {
    fn follows(&self) -> Option<WritePlace> {
        self.follows
    }

    fn queued(&self, place: WritePlace) {
        self.place.set(place).unwrap();
    }

    fn passed(&self) {}
}

type Outcome = oneshot::Receiver<Result<(), StoreError>>;

struct Writers {
    log: Arc<Log<AnyTablet>>,
    begun: Receiver<Vec<Bytes>>,
    outcomes: Sender<Result<(), StoreError>>,
}

impl Writers {
    fn new() -> Writers {
        let log = Log::new();
        let (frames, begun) = channel();
        let (outcomes, outcome) = channel();
        let appender = Frames {
            begun: frames,
            outcomes: outcome,
        };
        start(log.clone(), Arc::new(Answers), appender).unwrap();
        Writers { log, begun, outcomes }
    }

    /// Queues a write. With `follows`, it follows from the write at that place.
    fn write(&self, key: &'static str, follows: Option<WritePlace>) -> (Outcome, Arc<Turn>) {
        let turn = Arc::new(Turn {
            follows,
            place: OnceLock::new(),
        });
        let (sender, outcome) = oneshot::channel();
        let waiter = Waiter {
            turn: Some(turn.clone()),
            ..Waiter::new(sender)
        };
        let op = Op {
            token: 1,
            key: Bytes::from_static(key.as_bytes()),
            operand: Bytes::new(),
        };
        self.log.submit(vec![op], AnyTablet, true, waiter);
        (outcome, turn)
    }

    fn next_frame(&self) -> Vec<Bytes> {
        self.begun.recv().unwrap()
    }
}

fn place(turn: &Turn) -> Option<WritePlace> {
    Some(*turn.place.get().unwrap())
}

fn full() -> StoreError {
    StoreError::DiskFull("test".to_owned())
}

fn is_refused(outcome: Outcome) -> bool {
    matches!(outcome.blocking_recv(), Ok(Err(StoreError::DiskFull(_))))
}

#[test]
fn what_follows_from_a_failed_write_fails_and_nothing_else() {
    let writers = Writers::new();
    let (first, first_turn) = writers.write("first", None);
    assert_eq!(writers.next_frame(), ["first"]);
    let (second, second_turn) = writers.write("second", place(&first_turn));
    let (third, _) = writers.write("third", place(&second_turn));
    let (blind, _) = writers.write("blind", None);
    writers.outcomes.send(Err(full())).unwrap();
    assert!(is_refused(first) && is_refused(second) && is_refused(third));
    // A write that is queued later follows from the lost one.
    let (late, late_turn) = writers.write("late", place(&second_turn));
    assert!(is_refused(late));
    assert!(late_turn.place.get().is_none());
    assert_eq!(writers.next_frame(), ["blind"]);
    writers.outcomes.send(Ok(())).unwrap();
    assert!(matches!(blind.blocking_recv(), Ok(Ok(()))));
    writers.log.close(StoreError::Closed);
}

#[test]
fn what_follows_from_a_pending_write_shares_its_group() {
    let writers = Writers::new();
    let (before, _) = writers.write("before", None);
    assert_eq!(writers.next_frame(), ["before"]);
    let (first, turn) = writers.write("first", None);
    let (second, turn) = writers.write("second", place(&turn));
    let (third, _) = writers.write("third", place(&turn));
    writers.outcomes.send(Ok(())).unwrap();
    assert_eq!(writers.next_frame(), ["first", "second", "third"]);
    writers.outcomes.send(Ok(())).unwrap();
    for outcome in [before, first, second, third] {
        assert!(matches!(outcome.blocking_recv(), Ok(Ok(()))));
    }
    writers.log.close(StoreError::Closed);
}

#[test]
fn nothing_follows_from_a_write_of_another_log() {
    let (one, other) = (Writers::new(), Writers::new());
    let (_, turn) = one.write("first", None);
    for follows in [place(&turn), Some(WritePlace::NOWHERE)] {
        let (outcome, _) = other.write("second", follows);
        assert!(matches!(
            outcome.blocking_recv(),
            Ok(Err(StoreError::NotOwned(1)))
        ));
    }
    one.outcomes.send(Ok(())).unwrap();
    one.log.close(StoreError::Closed);
    other.log.close(StoreError::Closed);
}
