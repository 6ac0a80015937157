//! Intents as rows of a hidden table, in the tablets of their partitions.
//!
//! The key of a row is the intent's token, with the transaction's id as the partition key. The column [`CONTENT`] has the encoded intent. The
//! column [`COMMITTED`] exists once the transaction is committed and its writes to these partitions have been applied.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use helenus_cql::error::CqlError;
use helenus_row::row::{Deletion, Liveness};
use helenus_row::{Cell, CellRules, ColumnId, ColumnRef, RowBuilder, TableId, key};
use helenus_tablet::Op;
use uuid::Uuid;

use crate::cluster::IntentState;
use crate::execution::writes::batch_log;
use crate::rows::{StoredRow, corrupt};
use crate::storage::undecided::Intent;

/// Number of the hidden table.
pub(crate) const TABLE: TableId = TableId(0xFFFF_FFF1);
const CONTENT: ColumnId = ColumnId(0);
const COMMITTED: ColumnId = ColumnId(1);
/// The first byte of an encoded intent.
const FORMAT: u8 = 1;

/// Returns the key of an intent.
pub(super) fn key_of(transaction: Uuid, token: i64) -> Bytes {
    key::row_key(TABLE, token, transaction.as_bytes(), &[])
}

fn op(transaction: Uuid, token: i64, row: &RowBuilder) -> Op {
    Op {
        token,
        key: key_of(transaction, token),
        operand: row.build(),
    }
}

/// Returns the operand that writes an intent.
pub(super) fn op_of(intent: &Intent) -> Op {
    let timestamp_us = intent.timestamp_us;
    let mut row = RowBuilder::new();
    row.liveness(Liveness {
        timestamp_us,
        expiry: None,
    });
    row.cell(CONTENT, Cell::live(timestamp_us, encode(intent)));
    op(intent.transaction, intent.token, &row)
}

/// Returns the operand that marks an intent as committed.
pub(super) fn mark_of(intent: &Intent) -> Op {
    let mut row = RowBuilder::new();
    row.cell(
        COMMITTED,
        Cell::live(intent.timestamp_us, Bytes::from_static(&[1])),
    );
    op(intent.transaction, intent.token, &row)
}

/// Returns the operand that removes an intent. `timestamp_us` is newer than that of the transaction.
pub(super) fn removal_of(transaction: Uuid, token: i64, timestamp_us: i64) -> Op {
    let mut row = RowBuilder::new();
    row.delete_row(Deletion {
        timestamp_us,
        local_deletion_s: timestamp_us.div_euclid(1_000_000),
    });
    op(transaction, token, &row)
}

/// Returns the state of an intent from its row.
///
/// # Errors
/// The row is damaged.
pub(super) fn state_of(packed: Option<Bytes>, now_s: i64) -> Result<IntentState, CqlError> {
    let Some(packed) = packed else {
        return Ok(IntentState::Absent);
    };
    let row = StoredRow::parse(packed, None, &CellRules::default())?;
    if row.live(now_s)?.is_none() {
        return Ok(IntentState::Absent);
    }
    Ok(match row.packed.column(COMMITTED).map_err(corrupt)? {
        Some(_) => IntentState::Committed,
        None => IntentState::Pending,
    })
}

/// Returns the intent of a row with its state. `None` if it was removed. A mark that was written late may be left of it.
///
/// # Errors
/// The row is damaged.
pub(super) fn stored(packed: Bytes, now_s: i64) -> Result<Option<(Intent, IntentState)>, CqlError> {
    let state = state_of(Some(packed.clone()), now_s)?;
    if state == IntentState::Absent {
        return Ok(None);
    }
    let row = StoredRow::parse(packed, None, &CellRules::default())?;
    match row.packed.column(CONTENT).map_err(corrupt)? {
        Some(ColumnRef::Simple(cell)) => Ok(Some((decode(row.packed.slice(cell.value))?, state))),
        _ => Ok(None),
    }
}

fn damaged() -> CqlError {
    CqlError::Server("an intent of a transaction is damaged".to_owned())
}

/// Encodes an intent as `format u8 | transaction 16 | token i64 | timestamp i64 | count u32 | participants i64… | count u32 | tables u32…`,
/// and the operands as in the batch log. Numbers are big-endian.
pub(super) fn encode(intent: &Intent) -> Bytes {
    let count = |len: usize| u32::try_from(len).unwrap_or(u32::MAX);
    let ops = batch_log::encode(&intent.ops);
    let mut out = BytesMut::with_capacity(64 + 8 * intent.participants.len() + ops.len());
    out.put_u8(FORMAT);
    out.put_slice(intent.transaction.as_bytes());
    out.put_i64(intent.token);
    out.put_i64(intent.timestamp_us);
    out.put_u32(count(intent.participants.len()));
    intent.participants.iter().for_each(|token| out.put_i64(*token));
    out.put_u32(count(intent.tables.len()));
    intent.tables.iter().for_each(|table| out.put_u32(table.0));
    out.put_slice(&ops);
    out.freeze()
}

/// Decodes an intent.
///
/// # Errors
/// The bytes are no intent, or one of a newer version.
pub(super) fn decode(bytes: Bytes) -> Result<Intent, CqlError> {
    let (mut intent, ops) = decode_head(bytes).ok_or_else(damaged)?;
    intent.ops = batch_log::decode(ops)?;
    Ok(intent)
}

/// Returns an intent without its operands, and the encoded operands. `None` if the bytes are damaged.
fn decode_head(mut bytes: Bytes) -> Option<(Intent, Bytes)> {
    if bytes.try_get_u8().ok()? != FORMAT || bytes.len() < 16 {
        return None;
    }
    let transaction = Uuid::from_slice(&bytes.split_to(16)).ok()?;
    let token = bytes.try_get_i64().ok()?;
    let timestamp_us = bytes.try_get_i64().ok()?;
    let participants = (0..bytes.try_get_u32().ok()?).map(|_| bytes.try_get_i64().ok());
    let participants: Option<Vec<i64>> = participants.collect();
    let tables = (0..bytes.try_get_u32().ok()?).map(|_| bytes.try_get_u32().ok().map(TableId));
    let tables: Option<Vec<TableId>> = tables.collect();
    let intent = Intent {
        transaction,
        token,
        timestamp_us,
        participants: participants?.into(),
        tables: tables?,
        ops: Vec::new(),
    };
    Some((intent, bytes))
}

#[cfg(test)]
mod tests {
    use helenus_row::KeyKind;
    use helenus_row::merge::merge;

    use super::*;

    fn intent() -> Intent {
        Intent {
            transaction: Uuid::from_u128(7),
            token: -3,
            timestamp_us: 1_000_000,
            participants: [-3, 9].into(),
            tables: vec![TableId(4)],
            ops: vec![Op {
                token: -3,
                key: Bytes::from_static(b"key"),
                operand: Bytes::from_static(b"operand"),
            }],
        }
    }

    #[test]
    fn intent_round_trips_and_truncated_intent_is_refused() {
        let encoded = encode(&intent());
        assert_eq!(decode(encoded.clone()), Ok(intent()));
        for len in 0..encoded.len() {
            assert!(decode(encoded.slice(..len)).is_err(), "{len}");
        }
    }

    #[test]
    fn row_has_the_state_of_its_intent() {
        let merged = |ops: &[Op]| {
            let operands: Vec<Bytes> = ops.iter().map(|op| op.operand.clone()).collect();
            merge(KeyKind::Row, None, &operands).unwrap()
        };
        let (written, mark) = (op_of(&intent()), mark_of(&intent()));
        let removal = removal_of(intent().transaction, intent().token, 1_000_001);
        let state = |row: Option<Bytes>| state_of(row, 1).unwrap();
        assert_eq!(state(None), IntentState::Absent);
        assert_eq!(
            state(Some(merged(std::slice::from_ref(&written)))),
            IntentState::Pending
        );
        let committed = merged(&[written.clone(), mark.clone()]);
        let (intent_of_row, state_of_row) = stored(committed, 1).unwrap().unwrap();
        assert_eq!((intent_of_row, state_of_row), (intent(), IntentState::Committed));
        // A mark that is written again does not bring a removed intent back.
        assert_eq!(
            state(Some(merged(&[written, removal, mark]))),
            IntentState::Absent
        );
    }
}
