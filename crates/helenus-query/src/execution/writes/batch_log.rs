//! The batch log: logged batches over several tablets, and rows of views in other tablets, are recorded before they are applied. Once
//! recorded, they are applied eventually, even if a node dies.
//!
//! An entry is a row of a hidden table in the tablet of the batch's first row. So it is as durable as any row, and moves with the tablet. A
//! node that opens the tablet applies the entries that it finds. Applying a batch twice has the same result as applying it once, because
//! its operands have their timestamps.

use std::sync::Arc;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use helenus_cql::error::CqlError;
use helenus_row::row::{Deletion, Liveness};
use helenus_row::{Cell, CellRules, ColumnId, ColumnRef, RowBuilder, TableId, key};
use helenus_tablet::Op;
use uuid::Uuid;

use super::WriteSet;
use crate::cluster::Cluster;
use crate::failure::says_undone;
use crate::rows::{StoredRow, corrupt};
use crate::storage::ExecutionContext;
use crate::storage::writes::write_ops;

/// Number of the hidden table. Numbers of a schema's tables start at 1.
pub(crate) const TABLE: TableId = TableId(0xFFFF_FFF0);
const CONTENT: ColumnId = ColumnId(0);

/// A batch in the log.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) token: i64,
    pub(crate) key: Bytes,
    /// The operand that records the batch. `None` once it is known to be written.
    pub(crate) unwritten: Option<Op>,
}

impl Entry {
    /// Records the batch durably.
    ///
    /// # Errors
    /// The batch could not be recorded in the request's time. If it may have been recorded, both the record and the batch are retried in
    /// the background. Otherwise the entry could be found and applied much later, when its tablet is opened next.
    pub async fn write(
        context: &Arc<ExecutionContext>,
        cluster: &Arc<dyn Cluster>,
        token: i64,
        writes: &WriteSet,
    ) -> Result<Entry, CqlError> {
        writes.note_headers(context).await?;
        let ops = writes.clone().into_ops();
        let (mut entry, op) = Entry::new(context, token, &ops);
        let written = write_ops(context, cluster, vec![op.clone()], true, context.deadline()).await;
        match written {
            Ok(()) => Ok(entry),
            Err(error) => {
                if !says_undone(&error) {
                    entry.unwritten = Some(op);
                    entry.finish_later(context, cluster, ops);
                }
                Err(error)
            }
        }
    }

    /// Returns an entry in the tablet of `token`, with the operand that records it.
    pub fn new(context: &ExecutionContext, token: i64, ops: &[Op]) -> (Entry, Op) {
        let id = Uuid::new_v4();
        let entry = Entry {
            token,
            key: key::row_key(TABLE, token, id.as_bytes(), &[]),
            unwritten: None,
        };
        let timestamp_us = context.next_timestamp_us();
        let mut row = RowBuilder::new();
        row.liveness(Liveness {
            timestamp_us,
            expiry: None,
        });
        row.cell(CONTENT, Cell::live(timestamp_us, encode(ops)));
        let op = entry.op(row.build());
        (entry, op)
    }

    fn op(&self, operand: Bytes) -> Op {
        Op {
            token: self.token,
            key: self.key.clone(),
            operand,
        }
    }

    /// Removes the entry of an applied batch, in the background.
    pub fn clear_later(self, context: &Arc<ExecutionContext>, cluster: &Arc<dyn Cluster>) {
        let (context, cluster) = (context.clone(), cluster.clone());
        tokio::spawn(async move {
            if let Err(error) = self.clear(&context, &cluster).await {
                tracing::debug!(%error, "a batch that was applied stays in the log, to be applied again");
            }
        });
    }

    pub(crate) async fn clear(
        &self,
        context: &Arc<ExecutionContext>,
        cluster: &Arc<dyn Cluster>,
    ) -> Result<(), CqlError> {
        let timestamp_us = context.next_timestamp_us();
        let mut row = RowBuilder::new();
        row.delete_row(Deletion {
            timestamp_us,
            local_deletion_s: timestamp_us.div_euclid(1_000_000),
        });
        let op = self.op(row.build());
        write_ops(context, cluster, vec![op], false, context.deadline()).await
    }
}

/// Returns the operands of an entry. `None` if it was removed.
pub(crate) fn content(packed: Bytes, now_s: i64) -> Result<Option<Vec<Op>>, CqlError> {
    let row = StoredRow::parse(packed, None, &CellRules::default())?;
    if row.live(now_s)?.is_none() {
        return Ok(None);
    }
    match row.packed.column(CONTENT).map_err(corrupt)? {
        Some(ColumnRef::Simple(cell)) => decode(row.packed.slice(cell.value)).map(Some),
        _ => Ok(None),
    }
}

/// Encodes operands as `count u32`, and for each operand `token i64 | key length u32 | key | operand length u32 | operand` (big-endian).
pub(crate) fn encode(ops: &[Op]) -> Bytes {
    let len = |bytes: &Bytes| u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    let size: usize = ops.iter().map(|op| 16 + op.key.len() + op.operand.len()).sum();
    let mut out = BytesMut::with_capacity(4 + size);
    out.put_u32(u32::try_from(ops.len()).unwrap_or(u32::MAX));
    for op in ops {
        out.put_i64(op.token);
        out.put_u32(len(&op.key));
        out.put_slice(&op.key);
        out.put_u32(len(&op.operand));
        out.put_slice(&op.operand);
    }
    out.freeze()
}

pub(crate) fn decode(mut bytes: Bytes) -> Result<Vec<Op>, CqlError> {
    let damaged = || CqlError::Server("an entry of the batch log is damaged".to_owned());
    let take = |bytes: &mut Bytes| {
        let len = bytes.try_get_u32().ok()? as usize;
        (len <= bytes.len()).then(|| bytes.split_to(len))
    };
    let count = bytes.try_get_u32().map_err(|_| damaged())?;
    let mut ops = Vec::new();
    for _ in 0..count {
        let token = bytes.try_get_i64().map_err(|_| damaged())?;
        let key = take(&mut bytes).ok_or_else(damaged)?;
        let operand = take(&mut bytes).ok_or_else(damaged)?;
        ops.push(Op { token, key, operand });
    }
    Ok(ops)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_round_trips_and_truncated_entry_is_refused() {
        let op = |token: i64| Op {
            token,
            key: Bytes::from(token.to_string()),
            operand: Bytes::from_static(b"operand"),
        };
        let ops = vec![op(-1), op(i64::MAX)];
        let written = encode(&ops);
        assert_eq!(decode(written.clone()).unwrap(), ops);
        for len in 0..written.len() {
            assert!(decode(written.slice(..len)).is_err(), "{len}");
        }
    }
}
