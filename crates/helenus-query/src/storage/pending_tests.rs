use bytes::Bytes;
use helenus_row::{Cell, ColumnId, RowBuilder, TableId, key};
use helenus_tablet::{Op, WriteTurn};

use super::over;
use crate::storage::{Access, PartitionGuard, PartitionLocks};

const TABLE: TableId = TableId(1);

fn op(token: i64, row: &'static [u8], timestamp_us: i64, value: &'static [u8]) -> Op {
    let mut built = RowBuilder::new();
    built.cell(ColumnId(1), Cell::live(timestamp_us, Bytes::from_static(value)));
    Op {
        token,
        key: key::row_key(TABLE, token, b"p", row),
        operand: built.build(),
    }
}

async fn alone(locks: &PartitionLocks, tokens: &[i64]) -> PartitionGuard {
    locks
        .lock(tokens.iter().map(|token| (TABLE, *token, Access::Alone)))
        .await
}

#[tokio::test]
async fn the_next_sees_what_is_pending_until_it_ends() {
    let locks = PartitionLocks::default();
    let (first, second) = (op(7, b"a", 1, b"one"), op(7, b"a", 2, b"two"));
    let guard = alone(&locks, &[7]).await;
    let turn = guard.publish(std::slice::from_ref(&first)).unwrap().unwrap();
    guard.unlock();
    let guard = alone(&locks, &[7]).await;
    assert_eq!(guard.pending_operand(&first.key), Some(first.operand.clone()));
    let next = guard.publish(std::slice::from_ref(&second)).unwrap().unwrap();
    guard.unlock();
    // The first write has ended. Its operand stays merged with that of the second.
    drop(turn);
    let guard = alone(&locks, &[7]).await;
    let both = over(&first.key, Some(&first.operand), &second.operand).unwrap();
    assert_eq!(guard.pending_operand(&first.key), Some(both));
    drop((guard, next));
    let guard = alone(&locks, &[7]).await;
    assert!(!guard.has_pending());
    assert_eq!(guard.pending_operand(&first.key), None);
}

#[tokio::test]
async fn nothing_can_follow_from_a_write_that_was_never_queued() {
    let locks = PartitionLocks::default();
    let guard = alone(&locks, &[7]).await;
    let turn = guard.publish(&[op(7, b"a", 1, b"one")]).unwrap().unwrap();
    turn.unlock();
    let guard = alone(&locks, &[7]).await;
    let next = guard.publish(&[op(7, b"b", 2, b"two")]).unwrap().unwrap();
    drop(turn);
    next.await_turn().await;
    assert_eq!(next.follows(), Some(helenus_tablet::WritePlace::NOWHERE));
}

#[tokio::test]
async fn partitions_that_are_not_locked_alone_publish_nothing() {
    let locks = PartitionLocks::default();
    let shared = locks.lock([(TABLE, 7, Access::Shared)]).await;
    assert!(shared.publish(&[op(7, b"a", 1, b"one")]).unwrap().is_none());
    drop(shared);
    let mixed = locks
        .lock([(TABLE, 7, Access::Alone), (TABLE, 8, Access::Shared)])
        .await;
    let writes = [op(7, b"a", 1, b"one"), op(8, b"b", 1, b"one")];
    let turn = mixed.publish(&writes).unwrap().unwrap();
    turn.unlock();
    let next = alone(&locks, &[7]).await;
    assert!(next.pending_operand(&writes[0].key).is_some());
    assert_eq!(next.pending_operand(&writes[1].key), None);
    // A shared lock keeps other requests from locking the partition alone.
    let waits = locks.lock([(TABLE, 8, Access::Alone)]);
    assert!(futures::FutureExt::now_or_never(waits).is_none());
}

#[tokio::test]
async fn pending_rows_of_a_range_come_in_order() {
    let locks = PartitionLocks::default();
    let guard = alone(&locks, &[7]).await;
    let written: Vec<Op> = [b"c".as_slice(), b"a", b"b"]
        .map(|row| op(7, row, 1, b"v"))
        .into();
    let _turn = guard.publish(&written).unwrap();
    guard.unlock();
    let guard = alone(&locks, &[7]).await;
    let range = helenus_row::ByteRange {
        start: written[1].key.clone(),
        end: Some(written[0].key.clone()),
    };
    let found: Vec<Bytes> = guard
        .pending_operands(&range)
        .into_iter()
        .map(|(key, _)| key)
        .collect();
    assert_eq!(found, [written[1].key.clone(), written[2].key.clone()]);
}
