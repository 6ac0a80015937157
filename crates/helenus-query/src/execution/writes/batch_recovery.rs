//! Completion of batches of the batch log: those that could not be applied in their client's time, and those in the log of a tablet that is
//! opened.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use helenus_cql::error::CqlError;
use helenus_row::key;
use helenus_tablet::{Op, TokenRange};
use tokio::time::Instant;

use super::batch_log::{Entry, TABLE, content};
use crate::cluster::{Cluster, ScanRange};
use crate::execution::writes::WriteSet;
use crate::execution::writes::commit::apply_all;
use crate::failure::{ExecutionError, store_error};
use crate::rows::corrupt_key;
use crate::storage::ExecutionContext;
use crate::storage::key_reads::{self, Undecided};
use crate::storage::writes::write_ops;

/// Time for which a batch is retried in the background. After that, it is left to the next node that opens the tablet.
const FINISH_TIMEOUT: Duration = Duration::from_secs(600);
/// Pause between two attempts: at first, and in the next constant at most.
const FINISH_PAUSE_MIN: Duration = Duration::from_millis(100);
const FINISH_PAUSE_MAX: Duration = Duration::from_secs(10);

impl Entry {
    /// Applies the recorded operands.
    ///
    /// # Errors
    /// The operands could not be applied in the request's time. The batch is then retried in the background.
    pub async fn carry_out(
        self,
        context: &Arc<ExecutionContext>,
        cluster: &Arc<dyn Cluster>,
        ops: Vec<Op>,
        durable: bool,
    ) -> Result<(), CqlError> {
        let applied = write_ops(context, cluster, ops.clone(), durable, context.deadline()).await;
        match &applied {
            Ok(()) => self.clear_later(context, cluster),
            Err(_) => self.finish_later(context, cluster, ops),
        }
        applied
    }

    /// Continues in the background with a batch that could not be applied in its client's time.
    pub fn finish_later(self, context: &Arc<ExecutionContext>, cluster: &Arc<dyn Cluster>, ops: Vec<Op>) {
        tokio::spawn(self.finish(context.clone(), cluster.clone(), ops));
    }

    /// Retries a batch until it is applied, or [`FINISH_TIMEOUT`] is over.
    pub fn finish(
        self,
        context: Arc<ExecutionContext>,
        cluster: Arc<dyn Cluster>,
        ops: Vec<Op>,
    ) -> BoxFuture<'static, ()> {
        let finish = async move {
            let deadline = Instant::now() + FINISH_TIMEOUT;
            let mut pause = FINISH_PAUSE_MIN;
            while let Err(error) = self.try_to_finish(&context, &cluster, ops.clone()).await {
                if Instant::now() + pause >= deadline {
                    tracing::warn!(%error, "a logged batch is left to the next owner of its tablet");
                    return;
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(FINISH_PAUSE_MAX);
            }
        };
        Box::pin(finish)
    }

    /// Applies a batch with the current indexes and views of its tables.
    async fn try_to_finish(
        &self,
        context: &Arc<ExecutionContext>,
        cluster: &Arc<dyn Cluster>,
        ops: Vec<Op>,
    ) -> Result<(), CqlError> {
        let _epoch = context.writing.epochs.enter();
        if let Some(op) = self.unwritten.clone() {
            write_ops(context, cluster, vec![op], true, context.deadline()).await?;
        }
        let writes = WriteSet::from_ops(&context.schema(), ops)?;
        apply_all(context, cluster, writes, true, context.deadline()).await?;
        self.clear(context, cluster).await
    }
}

/// Returns the operands of batches that were being applied at the cut of the pinned tablets, and adds them to these tablets.
///
/// # Errors
/// The log cannot be read, or the rows from which index entries and views are computed.
pub(crate) async fn under_way(context: &ExecutionContext) -> Result<Vec<Op>, CqlError> {
    let now_s = context.clock.now_us().div_euclid(1_000_000);
    let mut found = Vec::new();
    for tablet in context.store.tablets().iter() {
        let scan = key_reads::scan_table(tablet, TABLE).await;
        let mut scan = scan.map_err(ExecutionError::into_client_error)?;
        while let Some((_, packed)) = scan.next().await.map_err(store_error)? {
            let Some(ops) = content(packed, now_s)? else {
                continue;
            };
            let writes = WriteSet::from_ops(&context.schema(), ops)?;
            found.extend(writes.add_to_cut(context).await?);
        }
    }
    Ok(found)
}

/// Applies the entries in the log of a tablet that was opened on this node. Returns their number.
///
/// # Errors
/// The log cannot be read. Batches that cannot be applied are retried in the background.
pub(crate) async fn recover(context: &Arc<ExecutionContext>, tokens: TokenRange) -> Result<usize, CqlError> {
    let Some(cluster) = context.cluster().cloned() else {
        return Ok(0);
    };
    let range = key_reads::keys_of(TABLE, tokens);
    let range = ScanRange {
        tokens,
        start: range.start,
        end: range.end,
        reversed: false,
    };
    let scan = key_reads::scan_here(context, &range, Undecided::Awaited).await;
    let mut scan = scan.map_err(ExecutionError::into_client_error)?;
    let now_s = context.clock.now_us().div_euclid(1_000_000);
    let mut found = 0;
    while let Some((key, packed)) = scan.next().await.map_err(store_error)? {
        let Some(ops) = content(packed, now_s)? else {
            continue;
        };
        let token = key::decode_key(&key).map_err(corrupt_key)?.token;
        found += 1;
        let entry = Entry {
            token,
            key,
            unwritten: None,
        };
        entry.finish_later(context, &cluster, ops);
    }
    Ok(found)
}
