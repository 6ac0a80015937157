//! Logged batches over several tablets, and what rows are to become in views: written down before they are applied, and applied to the
//! end whatever happens.
//!
//! An entry is a row of a hidden table in the tablet of the batch's first row, so it is as durable as any row and moves with the tablet:
//! whoever opens the tablet applies the entries that it finds. Applying a batch twice is applying it once, for its operands have their
//! timestamps.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use helenus_cql::error::CqlError;
use helenus_row::row::{Deletion, Liveness};
use helenus_row::{Cell, CellRules, ColumnId, ColumnRef, RowBuilder, TableId, key};
use helenus_tablet::{Op, TokenRange};
use tokio::time::Instant;
use uuid::Uuid;

use super::writes::{apply_all, write_ops};
use super::{Cluster, ScanRange, reads};
use crate::dml::WriteSet;
use crate::engine::{Engine, store_error};
use crate::storage::read::{StoredRow, corrupt, corrupt_key};

/// The hidden table's number; schemas count theirs from 1.
const TABLE: TableId = TableId(0xFFFF_FFF0);
const CONTENT: ColumnId = ColumnId(0);
/// How long a batch that could not be applied is tried in the background. Then it is left to whoever opens the tablet next.
const FINISH_TIMEOUT: Duration = Duration::from_secs(600);
/// How long it waits between tries, first and at most.
const FINISH_PAUSE_MIN: Duration = Duration::from_millis(100);
const FINISH_PAUSE_MAX: Duration = Duration::from_secs(10);

/// A batch that is written down.
pub(crate) struct Entry {
    token: i64,
    key: Bytes,
}

impl Entry {
    /// Writes the batch down, durably.
    pub async fn write(
        engine: &Arc<Engine>,
        cluster: &Arc<dyn Cluster>,
        token: i64,
        writes: &WriteSet,
    ) -> Result<Entry, CqlError> {
        writes.note_headers(engine).await?;
        let (entry, op) = Entry::new(engine, token, &writes.clone().into_ops());
        write_ops(engine, cluster, vec![op], true, engine.deadline()).await?;
        Ok(entry)
    }

    /// An entry in the tablet of `token`, and the operand that writes it down.
    pub fn new(engine: &Engine, token: i64, ops: &[Op]) -> (Entry, Op) {
        let id = Uuid::new_v4();
        let entry = Entry {
            token,
            key: key::row_key(TABLE, token, id.as_bytes(), &[]),
        };
        let timestamp_us = engine.timestamps.next_us(engine.clock.as_ref());
        let mut row = RowBuilder::new();
        row.liveness(Liveness {
            timestamp_us,
            expiry: None,
        });
        row.cell(CONTENT, Cell::live(timestamp_us, encode(ops)));
        let op = entry.op(row.build());
        (entry, op)
    }

    /// Applies the operands that are written down.
    ///
    /// # Errors
    /// They could not be applied in the request's time; they are tried further in the background.
    pub async fn carry_out(
        self,
        engine: &Arc<Engine>,
        cluster: &Arc<dyn Cluster>,
        ops: Vec<Op>,
        durable: bool,
    ) -> Result<(), CqlError> {
        let applied = write_ops(engine, cluster, ops.clone(), durable, engine.deadline()).await;
        match &applied {
            Ok(()) => self.clear_later(engine, cluster),
            Err(_) => self.finish_later(engine, cluster, ops),
        }
        applied
    }

    fn op(&self, operand: Bytes) -> Op {
        Op {
            token: self.token,
            key: self.key.clone(),
            operand,
        }
    }

    /// Removes the entry of a batch that is applied. Nobody waits for it.
    pub fn clear_later(self, engine: &Arc<Engine>, cluster: &Arc<dyn Cluster>) {
        let (engine, cluster) = (engine.clone(), cluster.clone());
        tokio::spawn(async move {
            if let Err(error) = self.clear(&engine, &cluster).await {
                tracing::debug!(%error, "a batch that was applied stays in the log, to be applied again");
            }
        });
    }

    async fn clear(&self, engine: &Arc<Engine>, cluster: &Arc<dyn Cluster>) -> Result<(), CqlError> {
        let timestamp_us = engine.timestamps.next_us(engine.clock.as_ref());
        let mut row = RowBuilder::new();
        row.delete_row(Deletion {
            timestamp_us,
            local_deletion_s: timestamp_us.div_euclid(1_000_000),
        });
        let op = self.op(row.build());
        write_ops(engine, cluster, vec![op], false, engine.deadline()).await
    }

    /// Goes on with a batch that could not be applied in its client's time.
    pub fn finish_later(self, engine: &Arc<Engine>, cluster: &Arc<dyn Cluster>, ops: Vec<Op>) {
        let (engine, cluster) = (engine.clone(), cluster.clone());
        tokio::spawn(async move { self.finish(&engine, &cluster, ops).await });
    }

    async fn finish(&self, engine: &Arc<Engine>, cluster: &Arc<dyn Cluster>, ops: Vec<Op>) {
        let deadline = Instant::now() + FINISH_TIMEOUT;
        let mut pause = FINISH_PAUSE_MIN;
        while let Err(error) = self.try_to_finish(engine, cluster, ops.clone()).await {
            if Instant::now() + pause >= deadline {
                tracing::warn!(%error, "a logged batch is left to the next owner of its tablet");
                return;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(FINISH_PAUSE_MAX);
        }
    }

    /// Each try sees what the tables' indexes and views are by then.
    async fn try_to_finish(
        &self,
        engine: &Arc<Engine>,
        cluster: &Arc<dyn Cluster>,
        ops: Vec<Op>,
    ) -> Result<(), CqlError> {
        let _epoch = engine.writes.enter();
        let writes = WriteSet::from_ops(&engine.schema(), ops)?;
        apply_all(engine, cluster, writes, true, engine.deadline()).await?;
        self.clear(engine, cluster).await
    }
}

impl Engine {
    /// Applies what stands in the log of a tablet that was opened here.
    ///
    /// # Errors
    /// The log can't be read. Batches that can't be applied are tried further in the background.
    pub async fn recover_batches(self: &Arc<Self>, tokens: TokenRange) -> Result<usize, CqlError> {
        let Some(cluster) = self.cluster().cloned() else {
            return Ok(0);
        };
        let range = key::token_range(
            TABLE,
            std::ops::Bound::Included(tokens.first),
            std::ops::Bound::Included(tokens.last),
        );
        let range = ScanRange {
            tokens,
            start: range.start,
            end: range.end,
            reversed: false,
        };
        let mut scan = reads::scan_here(self, &range).await?;
        let now_s = self.clock.now_us().div_euclid(1_000_000);
        let mut found = 0;
        while let Some((key, packed)) = scan.next().await.map_err(store_error)? {
            let Some(ops) = content(packed, now_s)? else {
                continue;
            };
            let token = key::decode_key(&key).map_err(corrupt_key)?.token;
            found += 1;
            Entry { token, key }.finish_later(self, &cluster, ops);
        }
        Ok(found)
    }
}

/// The operands of an entry; none if it was removed.
fn content(packed: Bytes, now_s: i64) -> Result<Option<Vec<Op>>, CqlError> {
    let row = StoredRow::parse(packed, None, &CellRules::default())?;
    if row.live(now_s)?.is_none() {
        return Ok(None);
    }
    match row.packed.column(CONTENT).map_err(corrupt)? {
        Some(ColumnRef::Simple(cell)) => decode(row.packed.slice(cell.value)).map(Some),
        _ => Ok(None),
    }
}

/// `count u32`, then of each `token i64 | key length u32 | key | operand length u32 | operand` (big-endian).
fn encode(ops: &[Op]) -> Bytes {
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

fn decode(mut bytes: Bytes) -> Result<Vec<Op>, CqlError> {
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
    fn an_entry_reads_back_as_it_was_written_and_half_of_one_is_refused() {
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
